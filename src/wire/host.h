/*
 * host: names of hosts as HTTP writes them, with or without a port ("localhost:8765", "[::1]").
 */
#ifndef RIALTO_WIRE_HOST_H
#define RIALTO_WIRE_HOST_H

#include "base/span.h"

/* "localhost:8765" -> "localhost", "[::1]:80" -> "[::1]" */
struct span host_name(struct span authority);
/* localhost, 127.x.y.z or [::1], without a port. */
bool host_is_loopback(struct span name);
/*
 * Does `allowed` name this authority? HOST allows every port, HOST:PORT only that port; `usual` is
 * the port of an authority without one. Case is ignored.
 */
bool host_matches(struct span authority, struct span allowed, struct span usual);

#endif
