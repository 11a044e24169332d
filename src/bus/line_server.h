/*
 * line_server: the embedded bus for other processes, one JSON object a line.
 *
 * On a Unix socket (0600) for processes of the same user, and on a loopback TCP address for those
 * that show the token. docs/bus.md describes the lines. Each connection is a member of the broker;
 * when it ends, what it had not settled goes back to its groups.
 */
#ifndef RIALTO_BUS_LINE_SERVER_H
#define RIALTO_BUS_LINE_SERVER_H

#include "bus/broker.h"

struct line_server;

struct line_server_options {
    const char *address; /* unix:PATH */
    const char *listen;  /* HOST:PORT on the loopback; NULL = none */
    const char *token;   /* needed for `listen` */
    uint64_t patience;   /* ms: a member that does not read for so long is cut off; 0 = 30 s */
};

/* The texts in `options` must outlive the server. */
struct line_server *line_server_open(struct loop *loop, struct broker *broker,
                                     const struct line_server_options *options, struct err *err);
/* Says bye to everybody; `closed` is called from the loop when all have gone. */
void line_server_close(struct line_server *s, void (*closed)(void *owner), void *owner);
/* The TCP address really bound; NULL without one. */
const char *line_server_tcp(const struct line_server *s);

#endif
