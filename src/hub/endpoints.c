/* The list of endpoints, by caller and by view; an endpoint is opened when it is first asked for.
 * Called by hub.c for each MCP request, by web_pages.c for requests that select a session of pages,
 * and by cmd/browser.c. */
#include "hub/endpoints.h"

#include "base/mem.h"
#include "hub/graph/narrowings.h"

#include <stdio.h>

/* The endpoint of one caller to one view. */
struct caller_endpoint {
    struct list node;
    struct endpoints *all;
    struct principal *principal; /* held; NULL: callers that need no token */
    bool by_socket;              /* the callers come by a Unix socket */
    bool shown;                  /* see struct caller */
    const struct view *view;     /* before a narrowing */
    const struct narrowing *narrowing;
    struct bridge_server *server; /* held; NULL when the view is not of a single server */
    struct exposure *narrowed;    /* what the narrowing leaves; NULL: no narrowing */
    struct lease *lease;          /* the owner's own instances; NULL: there are none */
    struct exposure *seen;        /* with the narrowing; NULL: what is seen are no servers */
    bool has_own;                 /* of some of them the owner has instances of its own */
    struct endpoint *endpoint;    /* NULL once closing */
    char path[96];                /* for records */
    char *view_name;              /* of the token; or NULL */
    char *home;                   /* key of sessions that outlive this daemon; NULL: none does */
};

struct endpoints {
    struct loop *loop;
    struct bridge *bridge;
    struct endpoint_options options;
    struct principal *operator; /* owner of the calls that a person makes without a token */
    struct list open;
    struct bridge_watch watch;
    void (*closed)(void *arg); /* NULL until endpoints_close */
    void *closed_arg;
};

static struct caller_endpoint *entry(struct list *it)
{
    return LIST_ENTRY(it, struct caller_endpoint, node);
}

/* --- one endpoint --- */

static void finish(struct endpoints *e)
{
    if (!e->closed || !list_empty(&e->open))
        return;
    principal_release(e->operator);
    e->closed(e->closed_arg);
    mem_free(e);
}

static void on_closed(void *arg)
{
    struct caller_endpoint *c = arg;
    struct endpoints *e = c->all;

    list_remove(&c->node);
    if (c->lease)
        bridge_leave(c->lease);
    if (c->narrowed)
        exposure_free(c->narrowed);
    if (c->server)
        bridge_server_release(c->server);
    principal_release(c->principal);
    mem_free(c->view_name);
    mem_free(c->home);
    mem_free(c);
    finish(e);
}

static void close_one(struct caller_endpoint *c, const char *why)
{
    struct endpoint *endpoint = c->endpoint;

    c->endpoint = NULL;
    if (endpoint)
        endpoint_close(endpoint, why, on_closed, c);
}

static bool is_by_socket(const struct caller *caller)
{
    return caller->way == CALLER_SOCKET;
}

static struct endpoint *find(const struct endpoints *e, const struct caller *caller,
                             const struct view *view, const struct narrowing *narrowing)
{
    LIST_EACH (&e->open, it) {
        const struct caller_endpoint *c = entry(it);
        if (c->endpoint && c->view == view && c->narrowing == narrowing &&
            c->principal == caller->principal && c->by_socket == is_by_socket(caller) &&
            c->shown == caller->shown)
            return c->endpoint;
    }
    return NULL;
}

/* The next daemon makes the same text for the same caller and view, and for no other. */
static void put_home(struct caller_endpoint *c)
{
    const char *owner = principal_name(c->principal);
    struct buf home = {0};

    buf_printf(&home, "%s\n%s\n%s\n%s", c->path, c->narrowing ? c->narrowing->name : "",
               c->by_socket ? "socket" : "", owner ? owner : "");
    c->home = buf_take(&home);
}

static struct caller_endpoint *add(struct endpoints *e, const struct caller *caller,
                                   const struct view *view, const struct narrowing *narrowing,
                                   struct mcp_host host, const char *path)
{
    struct caller_endpoint *c = MEM_NEW(struct caller_endpoint);

    c->all = e;
    c->principal = host.principal = principal_hold(caller->principal);
    if (caller->shown && !caller->principal)
        host.principal = e->operator;
    host.redacts = c->shown = caller->shown;
    c->by_socket = is_by_socket(caller);
    c->view = view;
    snprintf(c->path, sizeof c->path, "%s/mcp%s%s", c->shown ? "/api" : "",
             *path && *path != '?' ? "/" : "", path);
    host.endpoint = c->path;
    host.view_name = c->view_name = mem_str(caller->view);
    c->narrowing = narrowing;
    if (*path != '?')
        put_home(c);
    host.home = c->home;
    host.inherited = c->home ? e->options.inherited : NULL;
    c->endpoint = endpoint_new(e->loop, &host, &e->options, c->home);
    list_append(&e->open, &c->node);
    return c;
}

/* Open an endpoint to the server `s`, taking over the caller's hold on it; NULL: to all servers. */
static struct endpoint *open_to(struct endpoints *e, const struct caller *caller,
                                struct bridge_server *s, const struct narrowing *narrowing,
                                const char *path)
{
    struct exposure *whole = s ? bridge_server_exposure(s) : bridge_all(e->bridge);
    struct exposure *narrowed = narrowing ? bridge_narrow(e->bridge, s, narrowing) : NULL;
    struct exposure *seen = narrowed ? narrowed : whole;
    struct mcp_host host = bridge_host(e->bridge, seen);
    struct lease *lease = NULL;
    struct view *own = bridge_enter_owner(seen, caller->principal, &lease);

    if (own)
        host.view = own;
    struct caller_endpoint *c = add(e, caller, exposure_view(whole), narrowing, host, path);
    c->lease = lease;
    c->seen = seen;
    c->has_own = lease != NULL;
    c->server = s;
    c->narrowed = narrowed;
    return c->endpoint;
}

/* --- finding an endpoint --- */

struct endpoint *endpoints_all(struct endpoints *e, const struct caller *caller,
                               const struct narrowing *narrowing)
{
    struct endpoint *found = find(e, caller, exposure_view(bridge_all(e->bridge)), narrowing);

    return found ? found : open_to(e, caller, NULL, narrowing, "");
}

struct endpoint *endpoints_one(struct endpoints *e, const struct caller *caller,
                               const struct narrowing *narrowing, struct span alias)
{
    const struct exposure *one =
        narrowing_shows(narrowing, alias) ? bridge_one(e->bridge, alias) : NULL;

    if (!one)
        return NULL;
    struct endpoint *found = find(e, caller, exposure_view(one), narrowing);
    if (found)
        return found;
    char *path = mem_span(alias);
    found = open_to(e, caller, bridge_server_hold(e->bridge, alias), narrowing, path);
    mem_free(path);
    return found;
}

struct endpoint *endpoints_at(struct endpoints *e, const struct caller *caller,
                              const struct mcp_host *host)
{
    struct endpoint *found = find(e, caller, host->view, NULL);

    return found ? found : add(e, caller, host->view, NULL, *host, "?session")->endpoint;
}

size_t endpoints_sessions(const struct endpoints *e)
{
    size_t n = 0;

    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint)
            n += endpoint_sessions(entry(it)->endpoint);
    return n;
}

bool endpoints_in_use(const struct endpoints *e, const struct view *v)
{
    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint && entry(it)->view == v && endpoint_in_use(entry(it)->endpoint))
            return true;
    return false;
}

void endpoints_leave(struct endpoints *e, const struct view *v)
{
    LIST_EACH_SAFE (&e->open, it)
        if (entry(it)->view == v)
            close_one(entry(it), "what it showed is gone");
}

void endpoints_review(struct endpoints *e,
                      bool (*stays)(void *arg, const struct principal *principal, bool by_socket,
                                    const struct narrowing *narrowing),
                      void *arg, const char *why)
{
    LIST_EACH_SAFE (&e->open, it) {
        struct caller_endpoint *c = entry(it);
        if (!stays(arg, c->principal, c->by_socket, c->narrowing))
            close_one(c, why);
    }
}

/* --- another daemon takes over --- */

void endpoints_show(const struct endpoints *e, inherited_show_fn *show, void *arg)
{
    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint)
            endpoint_show(entry(it)->endpoint, show, arg);
}

void endpoints_show_parked(struct endpoints *e, modern_parked_fn *show, void *arg)
{
    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint)
            endpoint_show_parked(entry(it)->endpoint, show, arg);
}

void endpoints_end_streams(struct endpoints *e)
{
    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint)
            endpoint_end_streams(entry(it)->endpoint);
}

void endpoints_pass(struct endpoints *e, uint64_t session, struct span message)
{
    LIST_EACH (&e->open, it)
        if (entry(it)->endpoint)
            endpoint_pass(entry(it)->endpoint, session, message);
}

/* --- life --- */

/* An endpoint that shows the first server to which each caller signs in for itself, and the
 * sessions there, have no instance of it for their caller. They get one when they are opened anew.
 */
static void review_own(struct caller_endpoint *c)
{
    bool had = c->has_own;

    c->has_own = c->seen && bridge_has_own(c->seen, c->principal);
    if (c->has_own && !had)
        close_one(c, "each caller signs in to a server for itself now");
}

static void on_change(struct bridge_watch *w)
{
    struct endpoints *e = CONTAINER_OF(w, struct endpoints, watch);

    LIST_EACH_SAFE (&e->open, it) {
        if (entry(it)->server && bridge_server_is_gone(entry(it)->server))
            close_one(entry(it), "the server was taken out of the configuration");
        else
            review_own(entry(it));
    }
}

struct endpoints *endpoints_new(struct loop *loop, struct bridge *bridge, const struct config *c,
                                struct inherited *inherited)
{
    struct endpoints *e = MEM_NEW(struct endpoints);

    e->loop = loop;
    e->bridge = bridge;
    e->options = (struct endpoint_options){.max_sessions = c->limits.sessions,
                                           .session_ttl = c->limits.session_ttl,
                                           .max_message = c->limits.message,
                                           .inherited = inherited};
    e->operator= principal_new_tokenless("operator");
    list_init(&e->open);
    /* endpoints_close reports when the last endpoint has closed, so there must be one: the endpoint
     * of the Unix sockets, which does not close before. */
    endpoints_all(e, &(struct caller){.way = CALLER_SOCKET}, NULL);
    e->watch.changed = on_change;
    bridge_watch(bridge, &e->watch);
    return e;
}

void endpoints_close(struct endpoints *e, void (*closed)(void *arg), void *arg)
{
    bridge_unwatch(&e->watch);
    e->closed = closed;
    e->closed_arg = arg;
    LIST_EACH_SAFE (&e->open, it)
        close_one(entry(it), "the bridge is shutting down");
}
