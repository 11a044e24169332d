/*
 * line_conn: one connection of the line server, fed lines; see line_server.h.
 *
 * It knows nothing of sockets: it writes into a buffer and says when the connection is to be
 * closed. So tests and the fuzzer use it without a socket.
 */
#ifndef RIALTO_BUS_LINE_CONN_H
#define RIALTO_BUS_LINE_CONN_H

#include "bus/broker.h"

struct line_conn;

struct line_conn_events {
    /* The buffer to append to; line_conn calls `wrote` afterwards. */
    struct buf *(*out)(void *owner);
    void (*wrote)(void *owner);
    bool (*is_ready)(void *owner); /* may more be sent to the client? */
    /* Read no more from the client; a `bye` is written already. */
    void (*end)(void *owner, const char *why);
    /* The client has said hello, with the token where one is needed. */
    void (*welcomed)(void *owner);
};

/* `token`: what the client's hello must show; NULL = no hello is needed. */
struct line_conn *line_conn_new(struct broker *broker, const char *token,
                                const struct line_conn_events *on, void *owner);
void line_conn_free(struct line_conn *c);
void line_conn_line(struct line_conn *c, struct span line);
void line_conn_too_long(struct line_conn *c);
/* The client has read: more can be sent. */
void line_conn_ready(struct line_conn *c);
/* Writes a `bye` and calls `end`. */
void line_conn_bye(struct line_conn *c, const char *why);

#endif
