/*
 * traffic: the last messages of the connection to a server, for people: the handshake, lists,
 * notifications and pings, but no calls: the recorder has those.
 *
 * A ring, bounded in messages and in bytes; of a long message only the beginning is kept. Messages
 * are kept as they came: code that shows one must redact it.
 */
#ifndef RIALTO_MCP_SERVER_TRAFFIC_H
#define RIALTO_MCP_SERVER_TRAFFIC_H

#include "base/list.h"
#include "base/span.h"

#include <stdint.h>

enum {
    TRAFFIC_MOST = 200,
    TRAFFIC_BODY = 8 * 1024,   /* bytes of one message */
    TRAFFIC_BYTES = 256 * 1024 /* of all messages */
};

struct traffic {
    struct list messages; /* oldest first */
    size_t n, bytes;
    uint64_t last; /* the number of the newest message */
};

struct traffic_message {
    struct list node;
    uint64_t number, at; /* `at` on the router's clock */
    bool in;             /* from the server */
    size_t whole, n;     /* bytes of the message, and how many are kept */
    char bytes[];
};

void traffic_init(struct traffic *t);
void traffic_fini(struct traffic *t);
void traffic_add(struct traffic *t, uint64_t now, bool in, struct span message);
/* The message before `m`, or the newest for NULL; NULL when there is none. */
const struct traffic_message *traffic_before(const struct traffic *t,
                                             const struct traffic_message *m);

#endif
