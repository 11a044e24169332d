/*
 * front: the one HTTP door of the daemon.
 *
 * It checks who may come in (Host and Origin: a page that a browser loaded from elsewhere must not
 * reach the bridge, not even by a rebound name; bearer tokens, if the configuration has any),
 * answers what browsers ask before they let a page of an admitted Origin in (CORS), and finds the
 * path in its table of routes. Unix sockets need no token: their files' modes guard them. The
 * servers that run here are the user's as well, but no operators: what is for those is refused.
 */
#ifndef RIALTO_HUB_FRONT_H
#define RIALTO_HUB_FRONT_H

#include "config/config.h"
#include "core/caller.h"
#include "io/http_server.h"

struct front;

/* `rest` is what follows the route's path: "" or "/files". */
typedef void front_handler_fn(void *owner, const struct caller *caller, struct http_exchange *x,
                              const struct http_request *req, struct span rest);

struct front *front_new(struct loop *loop, const struct config *c);
/* Requests for `path` itself; with `below` also for everything under it. Longest path wins. */
void front_route(struct front *f, const char *path, bool below, front_handler_fn *handler,
                 void *owner);
/* The same, for callers on this machine only: who may look after the daemon. */
void front_route_local(struct front *f, const char *path, bool below, front_handler_fn *handler,
                       void *owner);
/* Who may use the route of this path when tokens are asked for; at first only FRONT_OPERATORS. */
enum front_access {
    FRONT_OPERATORS, /* a token of role: operator */
    FRONT_AGENTS,    /* any token */
    FRONT_ANYBODY,   /* also none */
};
void front_let_in(struct front *f, const char *path, enum front_access who);
/*
 * For everybody, with or without a token: the requests for `path` that `wants` says yes to. Others
 * go to the route of that path that is told afterwards.
 */
void front_route_open(struct front *f, const char *path,
                      bool (*wants)(const struct http_request *req), front_handler_fn *handler,
                      void *owner);
/*
 * What no route is for: requests that `wants` claims. These may come from pages of the sites in
 * `browser.origins` and from browser extensions as well: CALLER_SITE, CALLER_EXTENSION. `rest` is
 * the whole path.
 */
void front_route_pages(struct front *f, bool (*wants)(const struct http_request *req),
                       front_handler_fn *handler, void *owner);
/* All addresses of the configuration; 0 or a negative code with `err` filled. */
MUST_CHECK int front_listen(struct front *f, struct err *err);
/* One more address, a Unix socket; after front_listen. */
MUST_CHECK int front_listen_control(struct front *f, const char *address, struct err *err);
const char *front_address(const struct front *f, size_t n);
/* The n-th as the start of a URL: "https://127.0.0.1:8765"; a Unix socket as its address. */
void front_put_origin(struct buf *out, const struct front *f, size_t n);
/* Read the certificates anew; what cannot be used stays as it was, and the log says so. */
void front_renew_certificates(struct front *f);
/* `closed` is called from the loop when the last connection is gone; then front_free. */
void front_close(struct front *f, void (*closed)(void *arg), void *arg);
void front_free(struct front *f);

#endif
