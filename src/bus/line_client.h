/*
 * line_client: the engine that joins an embedded bus hosted by another process.
 *
 * `line_engine` (engine.h) uses it for tcp:// URLs, the embedded engine when another process hosts
 * the bus at its socket.
 */
#ifndef RIALTO_BUS_LINE_CLIENT_H
#define RIALTO_BUS_LINE_CLIENT_H

#include "bus/engine.h"

/* `address` is unix:PATH or HOST:PORT. */
struct line_client *line_client_open(struct bus *b, struct loop *loop,
                                     const struct bus_options *options, const char *address);

#endif
