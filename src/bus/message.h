/*
 * message: what travels on a bus, whichever bus it is.
 *
 * The fields are those of RockBot's envelope; every engine maps them to its own properties and
 * headers. Header keys are the envelope's ("rb-content-trust"); an engine may write them
 * differently on its wire (RabbitMQ doubles the prefix). Spans are valid only during the call they
 * are passed to: copy what is needed longer.
 */
#ifndef RIALTO_BUS_MESSAGE_H
#define RIALTO_BUS_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

enum { MESSAGE_MAX_HEADERS = 32, MESSAGE_MAX_WORD = 255 /* ids, types, topics: AMQP's shortstr */ };

struct message_header {
    struct span key, value;
};

struct message {
    struct span id;          /* 32 hex digits; empty when publishing: one is made */
    struct span type;        /* full name of the record in the body */
    struct span correlation; /* empty = none, as all below */
    struct span reply_to;    /* a topic */
    struct span source;
    struct span destination;
    uint64_t sent_ms; /* Unix time in ms; 0 when publishing: now. Some engines keep seconds only */
    struct message_header headers[MESSAGE_MAX_HEADERS];
    size_t n_headers;
    struct span body; /* JSON as a rule */
};

/* False, and nothing added, when there are too many. */
bool message_add_header(struct message *m, const char *key, struct span value);
/* Bytes of all its texts. */
size_t message_size(const struct message *m);
/* Empty when there is none. */
struct span message_header(const struct message *m, const char *key);

/*
 * The JSON form for engines without an envelope of their own: one line, camelCase members, `body`
 * as it is when it is JSON, else `bodyBase64`.
 */
void message_put_json(struct buf *out, const struct message *m);
/* `env` is a validated object. Texts that need unescaping are put into `scratch`. */
MUST_CHECK int message_from_json(struct message *m, struct span env, struct buf *scratch,
                                 struct err *err);

/* A copy of a message that outlives the call, in one block of exactly the size that is needed. */
struct message_pack;
struct message_pack *message_pack_new(const struct message *m);
void message_pack_free(struct message_pack *p);
/* `m` points into the pack. */
void message_pack_read(const struct message_pack *p, struct message *m);
/* The memory that a pack of this message takes. */
size_t message_pack_size(const struct message *m);

/* A pack together with the message that points into it. */
struct message_copy {
    struct message m;
    struct message_pack *pack;
};
void message_copy(struct message_copy *copy, const struct message *m);
void message_copy_fini(struct message_copy *copy);

#endif
