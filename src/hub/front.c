/* The checks of Host, Origin and token, the table of routes and the listening
 * addresses of the HTTP server. Called by hub.c, web_pages.c, cmd/serve.c and cmd/browser.c, which
 * add routes. */
#include "hub/front.h"

#include "base/log.h"
#include "base/mem.h"
#include "hub/auth/gate.h"
#include "hub/cors.h"
#include "io/ws.h"
#include "wire/host.h"
#include "wire/url.h"

#include <errno.h>

enum { ROUTES_MAX = 48, WAITING_MAX = 1000 };

struct http_route {
    const char *path;
    size_t path_n;
    bool below;
    bool local; /* only for callers on this machine, and not for pages of other origins */
    bool (*wants)(const struct http_request *req); /* NULL: every request */
    enum front_access access;
    bool all_origins; /* pages of every site may ask, and read the answer */
    front_handler_fn *handler;
    void *owner;
};

struct front {
    const struct config *config;
    struct http_server *server;
    struct http_route routes[ROUTES_MAX];
    size_t n_routes;
    bool (*wants_page)(const struct http_request *req);
    struct http_route page; /* of requests of web pages */
    struct gate *gate;
    struct list waiting; /* requests whose tokens are being checked */
    size_t n_waiting;
    void (*ended)(void *arg);
    void *ended_arg;
    /* Of the addresses of the configuration, in its order: */
    const struct config_listen **open; /* those that we listen on, before any control socket */
    const char **taken;                /* those that other programs have */
    size_t n_open, n_taken;
    bool spares_taken;
};

struct waiting {
    struct list node;
    struct front *front;
    const struct http_route *route; /* NULL for requests of pages, and when no route matches */
    bool page;
    struct http_exchange *x;
    const struct http_request *req;
};

static bool is_extension(struct span origin)
{
    static const char *const schemes[] = {"chrome-extension://", "moz-extension://",
                                          "safari-web-extension://"};

    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        if (span_starts(origin, span_str(schemes[i])))
            return true;
    return false;
}

/* Is this one of the sites and extensions that the configuration names? */
static bool knows_origin(const struct front *f, struct span origin)
{
    for (size_t i = 0; i < f->config->browser.origins.n; i++)
        if (span_eq_nocase(origin, span_str(f->config->browser.origins.items[i])))
            return true;
    return false;
}

static bool is_by_socket(const struct http_exchange *x)
{
    return strncmp(http_exchange_peer(x), "unix:", 5) == 0;
}

/* The file mode lets only the user open the socket. The servers that run here are the user's
 * processes as well, but not operators. */
static bool is_by_operators_socket(const struct http_exchange *x)
{
    return is_by_socket(x) && !http_exchange_is_by_kin(x);
}

/* Is the client on this machine? */
static bool is_near(const struct http_exchange *x)
{
    struct span peer = span_str(http_exchange_peer(x));

    return host_is_loopback(host_name(peer)) || span_starts(peer, SPAN("[::ffff:127."));
}

/* The `listen` entry of the address that the request came to. */
static const struct config_listen *address_of(const struct front *f, const struct http_exchange *x)
{
    static const struct config_listen control = {0};
    size_t n = http_exchange_came_by(x);

    return n < f->n_open ? f->open[n] : &control;
}

/*
 * Is this a name of ours, at the address that the request came to? A page whose site name leads to
 * this machine (DNS rebinding) sends that name as Host: so Host must be a name that nobody else can
 * have (a loopback name, the address itself) or one from the configuration.
 */
static bool admits_host(const struct front *f, const struct http_exchange *x, struct span authority,
                        bool secure)
{
    const struct config_listen *l = address_of(f, x);
    struct span name = host_name(authority), usual = secure ? SPAN("443") : SPAN("80");
    struct span public = span_str(gate_public_url(f->gate));
    struct url_parts own;

    if (host_is_loopback(name) && (!l->open || !l->hosts.n || is_near(x)))
        return true;
    for (size_t i = 0; i < l->hosts.n; i++)
        if (host_matches(authority, span_str(l->hosts.items[i]), usual))
            return true;
    if (public.n && url_read(&own, public) &&
        span_eq_nocase(host_name(span_from(own.origin, own.secure ? 8 : 7)), name))
        return true;
    return l->open && http_exchange_is_to(x, name);
}

static bool admits(const struct front *f, const struct http_exchange *x,
                   const struct http_request *req, bool page)
{
    struct span host = http_header(req, "host"), origin = http_header(req, "origin");

    /* Browsers cannot reach a Unix socket, so no name can have been rebound to it. */
    if (!is_by_socket(x) && !admits_host(f, x, host, http_exchange_is_secure(x)))
        return false;
    /* An extension that is not in the configuration must show the pairing token, which browser/
     * asks for. */
    if (!origin.p || (page && (knows_origin(f, origin) || is_extension(origin))))
        return true;
    if (span_starts(origin, SPAN("http://")))
        return admits_host(f, x, span_from(origin, 7), false);
    return span_starts(origin, SPAN("https://")) && admits_host(f, x, span_from(origin, 8), true);
}

/*
 * Only requests from this machine with a loopback Host may control the bridge, whatever names the
 * configuration allows: such a name may belong to a reverse proxy here that serves people
 * elsewhere. A page of another site is never let in, not even one of browser.origins.
 */
static bool is_local(const struct http_exchange *x, const struct http_request *req)
{
    struct span host = http_header(req, "host"), origin = http_header(req, "origin");
    struct span scheme = http_exchange_is_secure(x) ? SPAN("https://") : SPAN("http://");

    if (is_by_operators_socket(x))
        return true;
    if (!is_near(x) || !host_is_loopback(host_name(host)))
        return false;
    return !origin.p ||
           (span_starts(origin, scheme) && span_eq_nocase(span_from(origin, scheme.n), host));
}

/* --- routes --- */

static bool route_matches(const struct http_route *r, const struct http_request *req)
{
    struct span own = span_of(r->path, r->path_n), path = req->path;

    if (path.n < own.n || (path.n > own.n && (!r->below || path.p[own.n] != '/')) ||
        !span_starts(path, own))
        return false;
    return !r->wants || r->wants(req);
}

static const struct http_route *find_route(const struct front *f, const struct http_request *req)
{
    const struct http_route *best = NULL;

    for (size_t i = 0; i < f->n_routes; i++) {
        const struct http_route *r = &f->routes[i];
        if (route_matches(r, req) && (!best || r->path_n > best->path_n))
            best = r;
    }
    return best;
}

static void refuse_stranger(const struct front *f, struct http_exchange *x, bool page)
{
    BUF_SCOPED hint = {0};

    log_warn("http", "refused a request from %s: its Host or Origin is not let in at this address",
             http_exchange_peer(x));
    buf_str(&hint, address_of(f, x)->open
                       ? "use the IP address that you connect to, or a name that listen[].hosts of "
                         "the configuration has for this address, also as the Origin"
                       : "use a loopback name such as localhost or 127.0.0.1, also as the Origin, "
                         "or name the host in listen[].hosts of the configuration");
    if (page)
        buf_str(&hint, "; pages of other sites are let in by browser.origins");
    http_refuse(x, 403, "Host or Origin not allowed", buf_cstr(&hint));
}

static bool looks_only(const struct http_request *req)
{
    return span_is(req->method, "GET") || span_is(req->method, "HEAD");
}

/* Is this request for operators only? Finding the process behind a TCP connection takes long, so
 * requests by TCP that change nothing are let through. */
static bool is_for_operators(const struct http_route *r, const struct http_exchange *x,
                             const struct http_request *req)
{
    if (is_by_socket(x))
        return !r || r->access == FRONT_OPERATORS;
    return r && r->local && !looks_only(req);
}

static void refuse_server(struct http_exchange *x)
{
    log_warn("http", "refused a request from %s: it is of one of the servers that run here",
             http_exchange_peer(x));
    http_refuse(x, 403, "not for the servers that this Rialto runs",
                "run the command from a shell that no server started; MCP is at /mcp for all");
}

static bool role_allows(enum config_role role, enum front_access access,
                        const struct http_request *req)
{
    if (access == FRONT_ANYBODY || role == ROLE_OPERATOR)
        return true;
    if (role == ROLE_VIEWER)
        return access == FRONT_OPERATORS && looks_only(req) && !ws_is_wanted(req);
    return access == FRONT_AGENTS;
}

/* May the caller use this route, with this token and from where it is? If not, the request has been
 * refused. */
static bool passes(const struct front *f, const struct http_route *r,
                   const struct gate_verdict *verdict, struct http_exchange *x,
                   const struct http_request *req)
{
    const struct pass *token = verdict->pass;
    bool asked = gate_asks(f->gate) && !is_by_operators_socket(x);

    if (!asked && is_for_operators(r, x, req) && http_exchange_is_by_kin(x)) {
        refuse_server(x);
        return false;
    }
    if (asked && !token && (!r || r->access != FRONT_ANYBODY)) {
        gate_refuse(f->gate, x, req, verdict);
        return false;
    }
    if (asked && r && token && !role_allows(token->role, r->access, req)) {
        if (token->role == ROLE_VIEWER)
            http_refuse(x, 403, "this token is read-only",
                        "its role is viewer (auth.tokens.*.role): GET the page, /status and /api");
        else
            http_refuse(x, 403, "this token is for MCP alone",
                        "its role is agent (auth.tokens.*.role); one of role: operator may do "
                        "this");
        return false;
    }
    if (r && r->local && !is_local(x, req)) {
        http_refuse(x, 403, "only for this machine",
                    "ask from the machine itself, or use the control socket (rialto status)");
        return false;
    }
    return true;
}

static enum caller_way way_of(const struct front *f, const struct http_exchange *x,
                              const struct http_request *req, bool page)
{
    struct span origin = http_header(req, "origin");

    if (page && is_extension(origin) && !knows_origin(f, origin))
        return CALLER_EXTENSION;
    if (page && !admits(f, x, req, false))
        return CALLER_SITE;
    return is_by_operators_socket(x) ? CALLER_SOCKET : CALLER_NETWORK;
}

static bool may_do_all(const struct pass *token)
{
    return token && !token->view && token->role != ROLE_VIEWER;
}

/* --- requests --- */

static const struct http_route *let_in(struct front *f, const struct http_route *r, bool page,
                                       struct http_exchange *x, const struct http_request *req,
                                       struct caller *caller);

static void stop_waiting(struct waiting *w)
{
    list_remove(&w->node);
    w->front->n_waiting--;
    mem_free(w);
}

static void on_gone(void *owner)
{
    stop_waiting(owner);
}

/* The token is being checked: go on when the result is known. */
static void wait_for_news(struct front *f, const struct http_route *r, bool page,
                          struct http_exchange *x, const struct http_request *req)
{
    struct waiting *w = MEM_NEW(struct waiting);

    *w = (struct waiting){.front = f, .route = r, .page = page, .x = x, .req = req};
    list_append(&f->waiting, &w->node);
    f->n_waiting++;
    http_exchange_on_gone(x, on_gone, w);
}

static void on_news(void *arg)
{
    struct front *f = arg;

    /* Only the first n: requests that must wait again are appended to the list. */
    for (size_t n = f->n_waiting; n && !list_empty(&f->waiting); n--) {
        struct waiting *w = LIST_FIRST(&f->waiting, struct waiting, node), was = *w;
        stop_waiting(w);
        http_exchange_on_gone(was.x, NULL, NULL);
        struct caller caller;
        const struct http_route *r = let_in(f, was.route, was.page, was.x, was.req, &caller);
        if (r)
            r->handler(r->owner, &caller, was.x, was.req, span_from(was.req->path, r->path_n));
    }
}

static void on_ended(void *arg)
{
    const struct front *f = arg;

    if (f->ended)
        f->ended(f->ended_arg);
}

/* Host and Origin are fine: check the token. Returns the route whose handler is to be called now;
 * NULL: the request waits, or was refused. */
static const struct http_route *let_in(struct front *f, const struct http_route *r, bool page,
                                       struct http_exchange *x, const struct http_request *req,
                                       struct caller *caller)
{
    bool anybody = r && r->access == FRONT_ANYBODY;
    bool asks = gate_asks(f->gate), asked = asks && !is_by_operators_socket(x);
    struct gate_verdict verdict = {.answer = GATE_NO_TOKEN};

    if (asked)
        verdict = gate_judge(f->gate, x, req);
    if (verdict.answer == GATE_WAIT && !anybody && f->n_waiting < WAITING_MAX) {
        wait_for_news(f, r, page, x, req);
        return NULL;
    }
    const struct pass *token = verdict.pass;
    *caller = (struct caller){.way = way_of(f, x, req, page),
                              .principal = token ? token->who : NULL,
                              .view = token ? token->view : NULL,
                              .trusted = asks && (!asked || may_do_all(token)),
                              .viewer = token && token->role == ROLE_VIEWER};
    if (page) /* the browser family checks the pairing token itself: some pages send no header */
        return &f->page;
    if (!passes(f, r, &verdict, x, req))
        return NULL;
    if (!r)
        http_refuse(x, 404, "no such path", "MCP is at /mcp and at /mcp/<server>");
    return r;
}

/* Is this for pages of every site: what must be known before signing in, or signing in itself? */
static bool is_for_all_origins(const struct front *f, const struct http_route *r,
                               const struct http_exchange *x, const struct http_request *req)
{
    return r && r->all_origins &&
           (is_by_socket(x) ||
            admits_host(f, x, http_header(req, "host"), http_exchange_is_secure(x)));
}

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct front *f = owner;
    bool page = f->wants_page && f->wants_page(req);
    const struct http_route *r = page ? NULL : find_route(f, req);

    if (is_for_all_origins(f, r, x, req)) {
        http_exchange_add_headers(x, SPAN("Access-Control-Allow-Origin: *\r\n"));
    } else if (!admits(f, x, req, page) || (!page && http_is_embedded(req))) {
        refuse_stranger(f, x, page);
        return;
    } else if (http_header(req, "origin").p) {
        cors_allow_origin(x, http_header(req, "origin"));
    }
    if (cors_is_preflight(req)) {
        cors_answer_preflight(x, req);
        return;
    }
    struct caller caller;
    r = let_in(f, r, page, x, req, &caller);
    if (r)
        r->handler(r->owner, &caller, x, req, span_from(req->path, r->path_n));
}

static void on_metadata(void *owner, const struct caller *caller, struct http_exchange *x,
                        const struct http_request *req, struct span rest)
{
    const struct front *f = owner;

    (void)caller;
    if (!gate_asks(f->gate))
        http_refuse(x, 404, "no such path", "no token is needed here; MCP is at /mcp");
    else if (looks_only(req))
        gate_describe(f->gate, x, req, rest);
    else
        http_refuse(x, 405, "method not allowed", "this can only be looked at: GET");
}

/* Open the routes of this path to callers without a token and to pages of every site. */
static void open_to_pages(struct front *f, const char *path)
{
    for (size_t i = 0; i < f->n_routes; i++)
        if (strcmp(f->routes[i].path, path) == 0) {
            f->routes[i].access = FRONT_ANYBODY;
            f->routes[i].all_origins = true;
        }
}

static void on_issuer(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    const struct front *f = owner;

    (void)caller, (void)rest;
    issuer_handle(gate_issuer(f->gate), x, req);
}

static void add_issuer_routes(struct front *f)
{
    for (const char *const *path = issuer_paths; *path; path++) {
        front_route(f, *path, strncmp(*path, "/.well-known", 12) == 0, on_issuer, f);
        open_to_pages(f, *path);
    }
    front_route(f, ISSUER_AUTHORIZE, false, on_issuer, f);
    front_let_in(f, ISSUER_AUTHORIZE, FRONT_ANYBODY);
    /* Programs also look for documents that do not exist here: even pages may read the 404. */
    front_route(f, "/.well-known", true, on_issuer, f);
    open_to_pages(f, "/.well-known");
}

struct issuer *front_issuer(const struct front *f)
{
    return gate_issuer(f->gate);
}

struct front *front_new(struct loop *loop, const struct config *c)
{
    struct front *f = MEM_NEW(struct front);

    f->config = c;
    f->open = MEM_ARRAY(const struct config_listen *, c->listen.n + 1);
    f->taken = MEM_ARRAY(const char *, c->listen.n + 1);
    f->server =
        http_server_new(loop,
                        &(struct http_server_options){.max_body = c->limits.message,
                                                      .head_timeout = c->limits.head_timeout,
                                                      .body_timeout = c->limits.body_timeout,
                                                      .idle_timeout = c->limits.idle_timeout,
                                                      .max_connections = c->limits.connections},
                        on_request, f);
    list_init(&f->waiting);
    f->gate = gate_new(loop);
    gate_apply(f->gate, c);
    gate_on_change(f->gate, on_ended, on_news, f);
    front_route(f, GATE_METADATA, true, on_metadata, f);
    open_to_pages(f, GATE_METADATA);
    add_issuer_routes(f);
    return f;
}

void front_apply_auth(struct front *f, const struct config *c)
{
    gate_apply(f->gate, c);
}

void front_on_ended(struct front *f, void (*ended)(void *arg), void *arg)
{
    f->ended = ended;
    f->ended_arg = arg;
}

bool front_asks_tokens(const struct front *f)
{
    return gate_asks(f->gate);
}

void front_let_in(struct front *f, const char *path, enum front_access who)
{
    for (size_t i = 0; i < f->n_routes; i++)
        if (strcmp(f->routes[i].path, path) == 0)
            f->routes[i].access = who;
}

void front_route(struct front *f, const char *path, bool below, front_handler_fn *handler,
                 void *owner)
{
    if (f->n_routes < ROUTES_MAX)
        f->routes[f->n_routes++] = (struct http_route){.path = path,
                                                       .path_n = strlen(path),
                                                       .below = below,
                                                       .handler = handler,
                                                       .owner = owner};
}

void front_route_local(struct front *f, const char *path, bool below, front_handler_fn *handler,
                       void *owner)
{
    size_t n = f->n_routes;

    front_route(f, path, below, handler, owner);
    if (f->n_routes > n)
        f->routes[n].local = true;
}

void front_route_open(struct front *f, const char *path,
                      bool (*wants)(const struct http_request *req), front_handler_fn *handler,
                      void *owner)
{
    size_t n = f->n_routes;

    front_route(f, path, false, handler, owner);
    if (f->n_routes > n) {
        f->routes[n].wants = wants;
        f->routes[n].access = FRONT_ANYBODY;
    }
}

void front_route_pages(struct front *f, bool (*wants)(const struct http_request *req),
                       front_handler_fn *handler, void *owner)
{
    f->wants_page = wants;
    f->page = (struct http_route){.path = "", .handler = handler, .owner = owner};
}

int front_listen_control(struct front *f, const char *address, struct err *err)
{
    return http_server_listen(f->server, address, err);
}

static int listen_on(struct front *f, const struct config_listen *l, struct err *err)
{
    if (!l->tls_cert)
        return http_server_listen(f->server, l->address, err);
    return http_server_listen_tls(f->server, l->address, l->tls_cert, l->tls_key, err);
}

int front_listen(struct front *f, struct err *err)
{
    for (size_t i = 0; i < f->config->listen.n; i++) {
        const struct config_listen *l = &f->config->listen.items[i];
        int code = listen_on(f, l, err);
        if (code && err->code == -EADDRINUSE && f->spares_taken) {
            f->taken[f->n_taken++] = l->address;
            log_warn("http", "%s is taken by another program, so it is not served here",
                     l->address);
            continue;
        }
        if (code)
            return code;
        f->open[f->n_open++] = l;
        if (l->open)
            log_warn("http", "%s can be reached from other machines%s", l->address,
                     gate_asks(f->gate) ? "" : ", and everybody there is let in (auth.anonymous)");
    }
    return 0;
}

void front_spare_taken(struct front *f)
{
    f->spares_taken = true;
}

size_t front_open_count(const struct front *f)
{
    return f->n_open;
}

const char *front_taken(const struct front *f, size_t n)
{
    return n < f->n_taken ? f->taken[n] : NULL;
}

void front_renew_certificates(struct front *f)
{
    struct err err;

    for (size_t i = 0; i < f->n_open; i++) {
        const struct config_listen *l = f->open[i];
        if (!l->tls_cert)
            continue;
        if (http_server_renew_tls(f->server, i, l->tls_cert, l->tls_key, &err))
            log_error("http", "%s: the certificate stays as it was: %s", l->address, err.text);
        else
            log_info("http", "%s: the certificate was read again", l->address);
    }
}

const char *front_address(const struct front *f, size_t n)
{
    return http_server_address(f->server, n);
}

void front_put_origin(struct buf *out, const struct front *f, size_t n)
{
    const char *address = front_address(f, n);

    if (strncmp(address, "unix:", 5) != 0)
        buf_str(out, http_server_is_secure(f->server, n) ? "https://" : "http://");
    buf_str(out, address);
}

void front_leave(struct front *f, http_give_fn *give, void *arg)
{
    http_server_leave(f->server, give, arg);
}

size_t front_left(const struct front *f)
{
    return http_server_left(f->server);
}

void front_hurry(struct front *f)
{
    http_server_hurry(f->server);
}

bool front_adopt(struct front *f, const struct http_given *given)
{
    return http_server_adopt(f->server, given);
}

void front_close(struct front *f, void (*closed)(void *arg), void *arg)
{
    http_server_close(f->server, closed, arg);
    f->server = NULL; /* the server frees itself */
}

void front_free(struct front *f)
{
    gate_free(f->gate);
    mem_free(f->open);
    mem_free(f->taken);
    mem_free(f);
}
