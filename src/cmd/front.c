#include "cmd/front.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"

enum { ROUTES_MAX = 32 };

struct route {
    const char *path;
    bool below;
    bool local; /* only for this machine, and not for pages of other origins */
    front_handler_fn *handler;
    void *owner;
};

struct front {
    const struct config *config;
    struct http_server *server;
    struct route routes[ROUTES_MAX];
    size_t n_routes;
    bool (*wants_page)(const struct http_request *req);
    void (*on_page)(void *owner, struct http_exchange *x, const struct http_request *req);
    void *page_owner;
    bool open_to_all; /* some address is not loopback: the configuration says so on purpose */
};

void front_refuse(struct http_exchange *x, int status, const char *error, const char *hint)
{
    struct buf *out = http_respond_begin(x, status, "application/json", SPAN_EMPTY);

    buf_str(out, "{\"error\":");
    json_quote(out, span_str(error));
    buf_str(out, ",\"hint\":");
    json_quote(out, span_str(hint));
    buf_str(out, "}\n");
    http_respond_end(x);
}

/* "localhost:8765" -> "localhost", "[::1]:80" -> "[::1]" */
static struct span host_of(struct span authority)
{
    if (authority.n && authority.p[0] == '[')
        return span_cut(authority, 0, span_find(authority, ']') + 1);
    return span_cut(authority, 0, span_find(authority, ':'));
}

static bool is_loopback(struct span host)
{
    return span_eq_nocase(host, SPAN("localhost")) || span_starts(host, SPAN("127.")) ||
           span_is(host, "[::1]") || span_is(host, "::1");
}

/* An IP address that starts with "127." must not be a name like 127.0.0.1.evil.example. */
static bool is_trusted_host(struct span host)
{
    if (!is_loopback(host))
        return false;
    for (size_t i = 0; i < host.n; i++)
        if (host.p[0] == '1' && !strchr("0123456789.", host.p[i]))
            return false;
    return true;
}

/* Extensions are programs that the user installed; sites are let in by name. */
static bool admits_page(const struct front *f, struct span origin)
{
    if (span_starts(origin, SPAN("chrome-extension://")))
        return true;
    for (size_t i = 0; i < f->config->browser.origins.n; i++)
        if (span_eq_nocase(origin, span_str(f->config->browser.origins.items[i])))
            return true;
    return false;
}

static bool admits(const struct front *f, const struct http_exchange *x,
                   const struct http_request *req, bool page)
{
    struct span host = http_header(req, "host"), origin = http_header(req, "origin");
    /* No browser reaches a Unix socket, so there is no name that could have been rebound to it. */
    bool through_socket = strncmp(http_exchange_peer(x), "unix:", 5) == 0;

    if (!f->open_to_all && !through_socket && !is_trusted_host(host_of(host)))
        return false;
    if (!origin.p || (page && admits_page(f, origin)))
        return true;
    size_t scheme = 0;
    if (span_starts(origin, SPAN("http://")))
        scheme = 7;
    else if (span_starts(origin, SPAN("https://")))
        scheme = 8;
    else
        return false;
    struct span from = span_from(origin, scheme);
    return is_trusted_host(host_of(from)) || (f->open_to_all && span_eq_nocase(from, host));
}

/*
 * Whoever controls the bridge sits at this machine. On an open address the name that a browser was
 * given says nothing, and a page of another site is never let in, whatever site that is.
 */
static bool is_local(const struct http_exchange *x, const struct http_request *req)
{
    struct span peer = span_str(http_exchange_peer(x));
    struct span host = http_header(req, "host"), origin = http_header(req, "origin");

    if (span_starts(peer, SPAN("unix:")))
        return true;
    bool near = is_trusted_host(host_of(peer)) || span_starts(peer, SPAN("[::ffff:127."));
    if (!near || !is_trusted_host(host_of(host)))
        return false;
    return !origin.p ||
           (span_starts(origin, SPAN("http://")) && span_eq_nocase(span_from(origin, 7), host));
}

/* --- CORS: what a page of an admitted Origin may send and read --- */

static const char *const cors_headers[] = {
    "Authorization",        "Content-Type",  "Accept",        "Mcp-Session-Id",
    "MCP-Protocol-Version", "Last-Event-ID", "Mcp-Method",    "Mcp-Name",
    "X-Session-ID",         "X-Client-ID",   "X-Client-Type",
};

static bool may_send(struct span header)
{
    static const struct span params = {"Mcp-Param-", 10};

    for (size_t i = 0; i < COUNT_OF(cors_headers); i++)
        if (span_eq_nocase(header, span_str(cors_headers[i])))
            return true;
    return span_eq_nocase(span_cut(header, 0, params.n), params);
}

static void allow_origin(struct http_exchange *x, struct span origin)
{
    struct buf lines = {0};

    http_put_header(&lines, "Access-Control-Allow-Origin", origin);
    http_put_header(&lines, "Access-Control-Expose-Headers",
                    SPAN("Mcp-Session-Id, WWW-Authenticate"));
    http_put_header(&lines, "Vary", SPAN("Origin"));
    http_exchange_add_headers(x, buf_view(&lines));
    buf_fini(&lines);
}

static bool is_preflight(const struct http_request *req)
{
    return span_is(req->method, "OPTIONS") && http_header(req, "origin").p &&
           http_header(req, "access-control-request-method").p;
}

/* Of the headers the page wants to send, those it may; all that we know if it names none. */
static void put_allowed_headers(struct buf *lines, struct span wanted)
{
    struct buf allowed = {0};
    struct span item;

    for (size_t i = 0; !wanted.p && i < COUNT_OF(cors_headers); i++)
        buf_printf(&allowed, "%s%s", i ? ", " : "", cors_headers[i]);
    while (http_next_item(&wanted, &item))
        if (may_send(item))
            buf_printf(&allowed, "%s" SPAN_FMT, allowed.n ? ", " : "", SPAN_ARG(item));
    http_put_header(lines, "Access-Control-Allow-Headers", buf_view(&allowed));
    buf_fini(&allowed);
}

static void answer_preflight(struct http_exchange *x, const struct http_request *req)
{
    struct buf lines = {0};

    http_put_header(&lines, "Access-Control-Allow-Methods", SPAN("GET, POST, DELETE"));
    put_allowed_headers(&lines, http_header(req, "access-control-request-headers"));
    http_put_header(&lines, "Access-Control-Max-Age", SPAN("600"));
    /* A page of another network asks whether it may reach into this one. */
    if (http_header(req, "access-control-request-private-network").p)
        http_put_header(&lines, "Access-Control-Allow-Private-Network", SPAN("true"));
    http_respond(x, 204, NULL, buf_view(&lines), SPAN_EMPTY);
    buf_fini(&lines);
}

/* --- routes --- */

static bool route_matches(const struct route *r, struct span path)
{
    struct span own = span_str(r->path);

    if (span_eq(path, own))
        return true;
    return r->below && span_starts(path, own) && path.p[own.n] == '/';
}

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct front *f = owner;
    const struct route *best = NULL;
    bool page = f->wants_page && f->wants_page(req);

    if (!admits(f, x, req, page)) {
        log_warn("http", "refused a request from %s: Host or Origin is not of this machine",
                 http_exchange_peer(x));
        front_refuse(
            x, 403, "Host or Origin not allowed",
            page ? "use a loopback name such as localhost or 127.0.0.1, also as the Origin, "
                   "or name the Origin in browser.origins of the configuration"
                 : "use a loopback name such as localhost or 127.0.0.1, also as the Origin");
        return;
    }
    if (http_header(req, "origin").p)
        allow_origin(x, http_header(req, "origin"));
    if (is_preflight(req)) {
        answer_preflight(x, req);
        return;
    }
    if (page) {
        f->on_page(f->page_owner, x, req);
        return;
    }
    for (size_t i = 0; i < f->n_routes; i++) {
        const struct route *r = &f->routes[i];
        if (route_matches(r, req->path) && (!best || strlen(r->path) > strlen(best->path)))
            best = r;
    }
    if (best && best->local && !is_local(x, req))
        front_refuse(x, 403, "only for this machine",
                     "ask from the machine itself, or use the control socket (rialto status)");
    else if (best)
        best->handler(best->owner, x, req, span_from(req->path, strlen(best->path)));
    else
        front_refuse(x, 404, "no such path", "MCP is at /mcp and at /mcp/<server>");
}

struct front *front_new(struct loop *loop, const struct config *c)
{
    struct front *f = MEM_NEW(struct front);

    f->config = c;
    f->server =
        http_server_new(loop,
                        &(struct http_server_options){.max_body = c->limits.message,
                                                      .head_timeout = c->limits.head_timeout,
                                                      .body_timeout = c->limits.body_timeout,
                                                      .idle_timeout = c->limits.idle_timeout,
                                                      .max_connections = c->limits.connections},
                        on_request, f);
    return f;
}

void front_route(struct front *f, const char *path, bool below, front_handler_fn *handler,
                 void *owner)
{
    if (f->n_routes < ROUTES_MAX)
        f->routes[f->n_routes++] =
            (struct route){.path = path, .below = below, .handler = handler, .owner = owner};
}

void front_route_local(struct front *f, const char *path, bool below, front_handler_fn *handler,
                       void *owner)
{
    size_t n = f->n_routes;

    front_route(f, path, below, handler, owner);
    if (f->n_routes > n)
        f->routes[n].local = true;
}

void front_route_pages(struct front *f, bool (*wants)(const struct http_request *req),
                       void (*handler)(void *owner, struct http_exchange *x,
                                       const struct http_request *req),
                       void *owner)
{
    f->wants_page = wants;
    f->on_page = handler;
    f->page_owner = owner;
}

int front_listen_control(struct front *f, const char *address, struct err *err)
{
    return http_server_listen(f->server, address, err);
}

int front_listen(struct front *f, struct err *err)
{
    for (size_t i = 0; i < f->config->listen.n; i++) {
        const char *address = f->config->listen.items[i].address;
        int code = http_server_listen(f->server, address, err);
        if (code)
            return code;
        struct span host = host_of(span_str(http_server_address(f->server, i)));
        if (!span_is(host, "unix") && !is_trusted_host(host)) {
            log_warn("http", "%s can be reached from other machines", address);
            f->open_to_all = true;
        }
    }
    return 0;
}

const char *front_address(const struct front *f, size_t n)
{
    return http_server_address(f->server, n);
}

void front_close(struct front *f, void (*closed)(void *arg), void *arg)
{
    http_server_close(f->server, closed, arg);
    f->server = NULL; /* it frees itself */
}

void front_free(struct front *f)
{
    mem_free(f);
}
