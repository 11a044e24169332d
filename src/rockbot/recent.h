/*
 * recent: the last messages, so that a message that comes again does not run again.
 *
 * Found by sender and id. While a message is worked on, its entry points to the job; afterwards it
 * has the reply, as long as there is room, to be sent once more. Bounded in entries and bytes; the
 * oldest entries are dropped first.
 */
#ifndef RIALTO_ROCKBOT_RECENT_H
#define RIALTO_ROCKBOT_RECENT_H

#include "base/list.h"
#include "base/map.h"
#include "bus/message.h"

enum { RECENT_ENTRIES = 8192, RECENT_BYTES = 8 * 1024 * 1024 };

struct recent {
    struct map by_key;
    struct list order; /* oldest first */
    struct list kept;  /* entries with a reply, oldest first */
    size_t n, bytes;
};

struct recent_entry {
    struct list node, in_kept;
    void *work;                 /* NULL once the work is done */
    struct message_pack *reply; /* NULL when it is not kept */
    size_t reply_bytes;
    char *topic; /* of the reply */
    size_t key_n;
    char key[];
};

void recent_init(struct recent *r);
void recent_fini(struct recent *r);
struct recent_entry *recent_find(const struct recent *r, struct span source, struct span id);
/* The message must not be in the table yet. */
struct recent_entry *recent_add(struct recent *r, struct span source, struct span id, void *work);
/* The work is done; the reply is copied. When too many messages are being worked on, the entry is
 * dropped at once. */
void recent_finish(struct recent *r, struct recent_entry *e, struct span topic,
                   const struct message *reply);

#endif
