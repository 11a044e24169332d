/* Shims that attach by the control socket: the upgrade, and the agent that speaks from then on.
 * Called by hub.c. */
#include "hub/shims.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/units.h"
#include "hub/greeting.h"
#include "hub/narrowings.h"

struct shims {
    struct loop *loop;
    struct bridge *bridge;
    size_t max_message;
    struct list open;
    size_t n;
    struct bridge_watch watch;
    struct timer end;          /* reports the end, from the loop */
    void (*closed)(void *arg); /* NULL until shims_close */
    void *closed_arg;
};

struct attached {
    struct list node;
    struct shims *all;
    struct bridge_server *server; /* held; NULL: all servers */
    const struct narrowing *narrowing;
    struct exposure *narrowed; /* what the narrowing leaves; NULL: no narrowing */
    struct stdio_agent *agent;
    struct held_greeting greeting;
};

static struct attached *entry(struct list *it)
{
    return LIST_ENTRY(it, struct attached, node);
}

/* --- the end --- */

static void on_end(struct timer *t)
{
    struct shims *ss = CONTAINER_OF(t, struct shims, end);

    ss->closed(ss->closed_arg);
    mem_free(ss);
}

static void finish(struct shims *ss)
{
    if (ss->closed && list_empty(&ss->open))
        timer_set(loop_timers(ss->loop), &ss->end, 0);
}

/* The stream is closed. */
static void on_gone(void *arg)
{
    struct attached *a = arg;
    struct shims *ss = a->all;

    greeting_forget(&a->greeting);
    list_remove(&a->node);
    ss->n--;
    if (a->narrowed)
        exposure_free(a->narrowed);
    if (a->server)
        bridge_server_release(a->server);
    mem_free(a);
    finish(ss);
}

/* --- attaching --- */

static void begin(struct attached *a, struct stream *stream, uint64_t wait)
{
    struct shims *ss = a->all;
    struct exposure *whole = a->server ? bridge_server_exposure(a->server) : bridge_all(ss->bridge);
    struct mcp_host host = bridge_host(ss->bridge, a->narrowed ? a->narrowed : whole);

    host.endpoint = "stdio";
    a->agent = stdio_agent_new(ss->loop, stream, &host, ss->max_message, on_gone, a);
    bridge_wake(ss->bridge); /* a host asks for lists right away: lazy servers are started */
    if (wait && !bridge_is_known(ss->bridge))
        greeting_hold(&a->greeting, ss->loop, ss->bridge, a->agent, wait);
}

static bool is_wanted(const struct http_request *req)
{
    return req->upgrade && span_eq_nocase(http_header(req, "upgrade"), SPAN("rialto-shim"));
}

/* The server that the request names, held; *known is false when there is no such server. */
static struct bridge_server *find_server(const struct shims *ss, const struct http_request *req,
                                         const struct narrowing *narrowing, bool *known)
{
    BUF_SCOPED scratch = {0};
    struct span alias = http_query(req->query, "server", &scratch);
    bool shown = alias.p && narrowing_shows(narrowing, alias);
    struct bridge_server *s = shown ? bridge_server_hold(ss->bridge, alias) : NULL;

    *known = s || !alias.p;
    return s;
}

static uint64_t wait_of(const struct http_request *req)
{
    BUF_SCOPED scratch = {0};
    struct span text = http_query(req->query, "wait", &scratch);
    uint64_t wait = GREETING_WAIT_MS;

    return text.p && units_read_duration(text, &wait) ? 0 : wait;
}

void shims_handle(struct shims *ss, const struct caller *caller, struct http_exchange *x,
                  const struct http_request *req, const struct narrowing *narrowing)
{
    struct span early;
    bool known;

    if (caller->way != CALLER_SOCKET) {
        http_refuse(x, 403, "only by the control socket", "'rialto stdio' attaches there");
        return;
    }
    if (!is_wanted(req)) {
        http_refuse_with(x, 426, SPAN("Upgrade: rialto-shim\r\nConnection: Upgrade\r\n"),
                         "this address is for 'rialto stdio'", "MCP is at /mcp");
        return;
    }
    struct bridge_server *server = find_server(ss, req, narrowing, &known);
    if (!known) {
        http_refuse(x, 404, "no such server", "--server takes a name from the configuration");
        return;
    }
    struct attached *a = MEM_NEW(struct attached);
    a->all = ss;
    a->server = server;
    a->narrowing = narrowing;
    a->narrowed = narrowing ? bridge_narrow(ss->bridge, server, narrowing) : NULL;
    uint64_t wait = wait_of(req);
    list_append(&ss->open, &a->node);
    ss->n++;
    struct stream *stream =
        http_upgrade(x, SPAN("Upgrade: rialto-shim\r\nConnection: Upgrade\r\n"), &early);
    stream_pause(stream); /* it is read already, and the agent starts to read it */
    begin(a, stream, wait);
    stream_resume(stream);
    if (early.n)
        stdio_agent_feed(a->agent, early, false);
}

/* --- life --- */

static void on_change(struct bridge_watch *w)
{
    struct shims *ss = CONTAINER_OF(w, struct shims, watch);

    LIST_EACH_SAFE (&ss->open, it)
        if (entry(it)->server && bridge_server_is_gone(entry(it)->server))
            stdio_agent_close(entry(it)->agent, "the server was taken out of the configuration");
}

struct shims *shims_new(struct loop *loop, struct bridge *bridge, const struct config *c)
{
    struct shims *ss = MEM_NEW(struct shims);

    ss->loop = loop;
    ss->bridge = bridge;
    ss->max_message = c->limits.message;
    ss->end.fire = on_end;
    ss->watch.changed = on_change;
    list_init(&ss->open);
    bridge_watch(bridge, &ss->watch);
    return ss;
}

size_t shims_count(const struct shims *ss)
{
    return ss->n;
}

void shims_review(struct shims *ss, bool (*stays)(void *arg, const struct narrowing *narrowing),
                  void *arg)
{
    LIST_EACH_SAFE (&ss->open, it)
        if (!stays(arg, entry(it)->narrowing))
            stdio_agent_close(entry(it)->agent, "its view has changed");
}

void shims_let_idle_go(struct shims *ss)
{
    LIST_EACH_SAFE (&ss->open, it) {
        struct stdio_agent *agent = entry(it)->agent;
        if (!stdio_agent_pending(agent))
            stdio_agent_close(agent, "the daemon ends");
    }
}

void shims_close(struct shims *ss, void (*closed)(void *arg), void *arg)
{
    bridge_unwatch(&ss->watch);
    ss->closed = closed;
    ss->closed_arg = arg;
    LIST_EACH_SAFE (&ss->open, it)
        stdio_agent_close(entry(it)->agent, "the daemon ends");
    finish(ss);
}
