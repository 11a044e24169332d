/*
 * front: the HTTP front door of the daemon.
 *
 * Checks who may come in (Host and Origin: a page that a browser loaded from elsewhere must not
 * reach the bridge, not even by a rebound name; bearer tokens, if the configuration has any),
 * answers CORS preflights of admitted Origins, and finds the path in the table of routes. Unix
 * sockets need no token: the file modes guard them. The servers that run here are processes of the
 * same user, but not operators: requests for operators are refused to them.
 */
#ifndef RIALTO_HUB_FRONT_H
#define RIALTO_HUB_FRONT_H

#include "config/config.h"
#include "core/caller.h"
#include "io/http_server.h"

struct front;
struct issuer;

/* `rest` is the part of the path after the route's: "" or "/files". */
typedef void front_handler_fn(void *owner, const struct caller *caller, struct http_exchange *x,
                              const struct http_request *req, struct span rest);

struct front *front_new(struct loop *loop, const struct config *c);
/* Use the tokens of `c` from now on; `c` need not outlive the call. */
void front_apply_auth(struct front *f, const struct config *c);
/* `ended` is called whenever tokens have ended (hub/auth/gate.h), or the first one was added. */
void front_on_ended(struct front *f, void (*ended)(void *arg), void *arg);
/* Our own authorization server, which may be switched off. */
struct issuer *front_issuer(const struct front *f);
/* Must callers over the network show a token? */
bool front_asks_tokens(const struct front *f);
/* Requests for `path` itself; with `below` also for every path under it. The longest path wins. */
void front_route(struct front *f, const char *path, bool below, front_handler_fn *handler,
                 void *owner);
/* The same, but only for callers on this machine: for routes that control the daemon. */
void front_route_local(struct front *f, const char *path, bool below, front_handler_fn *handler,
                       void *owner);
/* For the handover of connections to another daemon, and from one (io/http_server.h). */
void front_leave(struct front *f, http_give_fn *give, void *arg);
size_t front_left(const struct front *f);
void front_hurry(struct front *f);
MUST_CHECK bool front_adopt(struct front *f, const struct http_given *given);

/* Who may use the route of this path when tokens are required; FRONT_OPERATORS unless set. */
enum front_access {
    FRONT_OPERATORS, /* a token of role: operator; to look (GET), also one of role: viewer */
    FRONT_AGENTS,    /* any token but one of role: viewer */
    FRONT_ANYBODY,   /* also callers without a token */
};
void front_let_in(struct front *f, const char *path, enum front_access who);
/*
 * For everybody, with or without a token: requests for `path` for which `wants` returns true. Other
 * requests go to the route of the same path that is added after this one.
 */
void front_route_open(struct front *f, const char *path,
                      bool (*wants)(const struct http_request *req), front_handler_fn *handler,
                      void *owner);
/*
 * Requests for which `wants` returns true go to this handler, before any route. They may also come
 * from pages of the sites in `browser.origins` and from browser extensions: CALLER_SITE,
 * CALLER_EXTENSION. `rest` is the whole path.
 */
void front_route_pages(struct front *f, bool (*wants)(const struct http_request *req),
                       front_handler_fn *handler, void *owner);
/* Listen on all addresses of the configuration; 0 or a negative code with `err` filled. After
 * front_spare_taken, an address that another program listens on is left to that program. */
MUST_CHECK int front_listen(struct front *f, struct err *err);
void front_spare_taken(struct front *f);
/* How many addresses of the configuration are open: the first ones of front_address. */
size_t front_open_count(const struct front *f);
/* The n-th address that was left to another program; NULL past the end. */
const char *front_taken(const struct front *f, size_t n);
/* Listen on one more address, a Unix socket; after front_listen. */
MUST_CHECK int front_listen_control(struct front *f, const char *address, struct err *err);
const char *front_address(const struct front *f, size_t n);
/* The n-th address as the start of a URL, "https://127.0.0.1:8765"; a Unix socket as it is. */
void front_put_origin(struct buf *out, const struct front *f, size_t n);
/* Read the certificates again. If the new one cannot be used, the old one stays (see the log). */
void front_renew_certificates(struct front *f);
/* `closed` is called from the loop when the last connection is gone; then call front_free. */
void front_close(struct front *f, void (*closed)(void *arg), void *arg);
void front_free(struct front *f);

#endif
