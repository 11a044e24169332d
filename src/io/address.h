/*
 * address: "HOST:PORT", "[::1]:PORT", ":PORT" and "unix:PATH" parsed, and addresses of sockets
 * written as text. For the files of io/ only.
 */
#ifndef RIALTO_IO_ADDRESS_H
#define RIALTO_IO_ADDRESS_H

#include "base/err.h"
#include "base/span.h"

#include <uv.h>

enum { ADDRESS_TEXT_SIZE = 64 }; /* "[IPv6%zone]:port" */

struct address {
    const char *path; /* of a Unix socket; points into the parsed text; NULL = TCP */
    char host[256];   /* ":PORT" gives the loopback address */
    int port;
    char digits[6]; /* the port as text, for the name lookup */
};

MUST_CHECK int address_parse(struct address *a, const char *text, struct err *err);

/* The socket address of a numeric host; a negative code for a name, which must be looked up. */
MUST_CHECK int address_numeric(const struct address *a, struct sockaddr_storage *sa);

/* Is `sa` the address in `host`, which is numeric (IPv6 in brackets)? The port is ignored. */
bool address_is(const struct sockaddr_storage *sa, struct span host);

/* "127.0.0.1:80" or "[::1]:80". */
void address_format(const struct sockaddr_storage *sa, char out[ADDRESS_TEXT_SIZE]);
/* Reads what address_format wrote. */
MUST_CHECK int address_read(struct sockaddr_storage *sa, const char *text);
int address_port(const struct sockaddr_storage *sa);

#endif
