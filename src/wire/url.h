/*
 * url: addresses of http and https that a peer has named, taken apart strictly.
 *
 * Whatever two readers of URLs might understand differently is refused: a user and password, a
 * backslash, blanks, control characters, bytes beyond ASCII, a fragment. So the host that is
 * checked here is the host that the HTTP client connects to.
 */
#ifndef RIALTO_WIRE_URL_H
#define RIALTO_WIRE_URL_H

#include "base/buf.h"

enum { URL_MAX = 2048 };

/* Spans are parts of the text that was read. */
struct url_parts {
    bool secure;        /* https */
    struct span origin; /* "https://host:8443" */
    struct span host;   /* IPv6 addresses in brackets */
    int port;           /* the scheme's default when none is given */
    struct span path;   /* with its first slash; empty when there is none */
    struct span query;  /* with its question mark; empty when there is none */
};

bool url_read(struct url_parts *out, struct span text);
/* The same scheme, host (whatever its case) and port? */
bool url_same_origin(const struct url_parts *a, const struct url_parts *b);
/* May secrets be sent there: by https, or within this machine? */
bool url_is_safe(const struct url_parts *u);
/* "https://host/path" as OAuth names a resource: scheme and host in lower case, no path "/". */
void url_put_resource(struct buf *out, const struct url_parts *u);

#endif
