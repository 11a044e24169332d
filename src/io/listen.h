/*
 * listen: a listening socket on "HOST:PORT", "[::1]:PORT", ":PORT" or "unix:PATH".
 *
 * ":PORT" is the loopback address, port 0 takes a free one. A stale Unix socket (no process accepts
 * on it) is replaced, a live one is an error; the socket file is created 0600 and removed on close.
 * A socket on that address that a service manager handed over (service.h) is taken instead.
 *
 * Nouns: listen_, listener_.
 */
#ifndef RIALTO_IO_LISTEN_H
#define RIALTO_IO_LISTEN_H

#include "base/err.h"
#include "io/stream.h"

struct listener;

typedef void listen_accept_fn(void *owner, struct stream *s);

struct listener *listener_open(struct loop *l, const char *address, listen_accept_fn *on_accept,
                               void *owner, struct err *err);
/* The address that was bound, e.g. "127.0.0.1:8765". */
const char *listener_address(const struct listener *ls);
int listener_port(const struct listener *ls); /* 0 for Unix sockets */
/* `on_accept` is not called after this returns. */
void listener_close(struct listener *ls);
/* Was a socket for this address handed over to us, and has nobody taken it yet? */
bool listen_is_given(const struct loop *l, const char *address);

/* Calls `show` for each listening socket of the loop, with the address that was asked for. `ours`:
 * the file of a Unix socket is removed with the listener. */
typedef void listen_show_fn(void *arg, const char *asked, int fd, bool ours);
void listen_show_all(const struct loop *l, listen_show_fn *show, void *arg);
/* Another process accepts from now on: `on_accept` is not called any more, and socket files
 * stay. */
void listen_leave_all(struct loop *l);
/* Does a process accept connections on this Unix socket? */
bool listen_is_live(const char *path);

#endif
