/*
 * reach: where connections made for an untrusted agent may go.
 *
 * Two questions, and both must be answered with yes: is the host of the URL among those that the
 * operator has named, and is the address that is connected to in the end, whatever name led there,
 * a public one? Addresses of this machine and of its own networks are let through only if the
 * operator has written that very address, or, for this machine, `localhost`.
 *
 * An entry is HOST, HOST:PORT or *.DOMAIN; IPv6 addresses are in brackets. Case is ignored. With
 * `everywhere` the first question is always answered with yes, and the entries only name exceptions
 * to the second.
 */
#ifndef RIALTO_IO_REACH_H
#define RIALTO_IO_REACH_H

#include "base/span.h"

struct sockaddr;

/* Users borrow it: a reach must outlive the connections and clients that use it. */
struct reach {
    const char *const *hosts;
    size_t n;
    bool everywhere;
    bool near; /* addresses of this machine and of its own networks are let through, too */
};

bool reach_has_host(const struct reach *r, struct span host, int port);
/* The same for the host in an http, https, ws or wss URL; false when the text is no URL. */
bool reach_has_url(const struct reach *r, const char *url);
bool reach_has_address(const struct reach *r, const struct sockaddr *sa);
/* The same for an address as text: "127.0.0.1" or "::1". */
bool reach_has_ip(const struct reach *r, const char *ip, int port);

#endif
