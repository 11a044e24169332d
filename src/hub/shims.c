/* Shims that attach by the control socket: the HTTP upgrade, and the agent that speaks from then
 * on. Called by hub.c, and by upgrade.c and promises.c when another daemon takes over. */
#include "hub/shims.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/units.h"
#include "config/variables.h"
#include "hub/graph/lease.h"
#include "hub/graph/narrowings.h"
#include "hub/greeting.h"
#include "wire/json.h"
#include "wire/json_out.h"

struct shims {
    struct loop *loop;
    struct bridge *bridge;
    struct inherited *inherited; /* calls of the daemon before us */
    size_t max_message;
    struct list open;
    size_t n;
    struct bridge_watch watch;
    struct timer end;   /* calls `closed`, from the loop */
    struct timer leave; /* looks for shims to give to another daemon */
    shims_give_fn *give;
    void *give_arg;
    void (*closed)(void *arg); /* NULL until shims_close */
    void *closed_arg;
};

struct attached {
    struct list node;
    struct shims *all;
    struct bridge_server *server; /* held; NULL: all servers */
    char *alias;                  /* of that server, or NULL */
    const struct narrowing *narrowing;
    struct exposure *narrowed; /* what the narrowing leaves; NULL: no narrowing */
    struct stdio_agent *agent;
    struct held_greeting greeting;
    uint64_t wait;               /* ms that the greeting may wait for servers */
    char *brought;               /* the last message about variables, for another daemon; or NULL */
    char *asked;                 /* the names of variables that the shim was asked for: "A B" */
    struct variables *variables; /* what it brought; NULL: nothing yet, or nothing was asked */
    struct lease *session;       /* of an agent of the initialize era; or NULL */
    struct lease *stateless;     /* for an agent of the stateless era; or NULL */
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
    if (a->stateless)
        bridge_leave(a->stateless);
    variables_drop(a->variables);
    if (a->narrowed)
        exposure_free(a->narrowed);
    if (a->server)
        bridge_server_release(a->server);
    mem_free(a->asked);
    mem_free(a->brought);
    mem_free(a->alias);
    mem_free(a);
    finish(ss);
}

/* --- what the shim brings (decision 022) --- */

static struct exposure *exposure_of(const struct attached *a)
{
    if (a->narrowed)
        return a->narrowed;
    return a->server ? bridge_server_exposure(a->server) : bridge_all(a->all->bridge);
}

static void hold_greeting(struct attached *a)
{
    struct shims *ss = a->all;

    if (a->wait && !a->greeting.agent && !bridge_is_known(ss->bridge))
        greeting_hold(&a->greeting, ss->loop, ss->bridge, a->agent, a->wait);
}

/* The shim's first line has brought variables; the agent has sent nothing yet. */
static void bring_first(struct attached *a)
{
    struct exposure *e = exposure_of(a);
    struct view *own = bridge_enter(
        e, exposure_view(e), &(struct lease_terms){.variables = a->variables, .stateless = true},
        &a->stateless);

    if (!own)
        return;
    stdio_agent_show(a->agent, own);
    hold_greeting(a); /* servers may be started for this caller */
}

static bool told(void *arg, const struct mcp_message *m)
{
    struct attached *a = arg;
    struct bridge *b = a->all->bridge;
    struct variables *before = a->variables;

    if (!rpc_method_is(&m->rpc, SHIMS_METHOD))
        return false;
    struct variables *brought = variables_read(m->rpc.params);
    if (!brought) {
        log_warn("rialto", "a host brought too many variables: none of them is used");
        brought = variables_read(SPAN("{}")); /* empty: it must not get ours */
    }
    a->variables = brought;
    mem_free(a->brought);
    a->brought = mem_span(m->rpc.text);
    if (!before)
        bring_first(a);
    if (before && a->session)
        bridge_bring(b, a->session, brought);
    if (before && a->stateless)
        bridge_bring(b, a->stateless, brought);
    variables_drop(before);
    return true;
}

static void wake(void *arg)
{
    bridge_wake(((struct attached *)arg)->all->bridge);
}

static struct view *enter(void *arg, struct view *shared, struct principal *principal,
                          unsigned answers, void **lease)
{
    struct attached *a = arg;
    struct view *own =
        bridge_enter(exposure_of(a), shared,
                     &(struct lease_terms){
                         .principal = principal, .answers = answers, .variables = a->variables},
                     &a->session);

    *lease = a->session;
    return own;
}

static void leave(void *arg, void *lease)
{
    ((struct attached *)arg)->session = NULL;
    bridge_leave(lease);
}

/* --- attaching --- */

static void begin(struct attached *a, struct stream *stream)
{
    struct shims *ss = a->all;
    struct mcp_host host = bridge_host(ss->bridge, exposure_of(a));

    host.endpoint = "stdio";
    host.arg = a;
    host.wake = wake;
    host.enter = enter;
    host.leave = leave;
    host.told = told;
    host.inherited = ss->inherited;
    host.home = "shim"; /* for all shims: only the host that got a sealed state can send it back */
    a->agent = stdio_agent_new(ss->loop, stream, &host, ss->max_message, on_gone, a);
    bridge_wake(ss->bridge); /* a host asks for lists right away: lazy servers are started */
    hold_greeting(a);
}

static bool is_wanted(const struct http_request *req)
{
    return req->upgrade && span_eq_nocase(http_header(req, "upgrade"), SPAN("rialto-shim"));
}

static struct attached *attached_new(struct shims *ss, struct bridge_server *server,
                                     struct span alias, const struct narrowing *narrowing)
{
    struct attached *a = MEM_NEW(struct attached);

    a->all = ss;
    a->server = server;
    a->alias = server ? mem_span(alias) : NULL;
    a->narrowing = narrowing;
    a->narrowed = narrowing ? bridge_narrow(ss->bridge, server, narrowing) : NULL;
    list_append(&ss->open, &a->node);
    ss->n++;
    return a;
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
    BUF_SCOPED head = {0};
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
    BUF_SCOPED scratch = {0};
    struct attached *a =
        attached_new(ss, server, http_query(req->query, "server", &scratch), narrowing);
    a->wait = wait_of(req);
    buf_str(&head, "Upgrade: rialto-shim\r\nConnection: Upgrade\r\n");
    if (bridge_variables(ss->bridge).n) {
        a->asked = mem_span(bridge_variables(ss->bridge));
        buf_printf(&head, SHIMS_HEADER ": %s\r\n", a->asked);
    }
    struct stream *stream = http_upgrade(x, buf_view(&head), &early);
    stream_pause(stream); /* it is being read already, and the agent would start that again */
    begin(a, stream);
    stream_resume(stream);
    if (early.n)
        stdio_agent_feed(a->agent, early, false);
}

/* --- another daemon --- */

enum { LEAVE_MS = 10 };

static void hand_over(struct shims *ss, struct attached *a)
{
    BUF_SCOPED text = {0}, early = {0};

    buf_str(&text, "{\"kind\":\"shim\"");
    if (a->alias)
        json_out_str(&text, "server", a->alias);
    if (a->narrowing)
        json_out_str(&text, "view", a->narrowing->name);
    if (a->asked)
        json_out_str(&text, "asked", a->asked);
    if (a->brought)
        json_out_raw(&text, "brought", span_str(a->brought));
    int fd = stdio_agent_hand_over(a->agent, &text, &early);
    buf_char(&text, '}');
    if (fd < 0)
        return;
    ss->give(ss->give_arg, buf_view(&text), fd, buf_view(&early));
    stdio_agent_left(a->agent);
}

static void on_leave(struct timer *t)
{
    struct shims *ss = CONTAINER_OF(t, struct shims, leave);

    LIST_EACH_SAFE (&ss->open, it)
        hand_over(ss, entry(it));
    timer_set(loop_timers(ss->loop), t, LEAVE_MS);
}

void shims_leave(struct shims *ss, shims_give_fn *give, void *arg)
{
    ss->give = give;
    ss->give_arg = arg;
    ss->leave.fire = on_leave;
    LIST_EACH (&ss->open, it)
        stdio_agent_detain(entry(it)->agent);
    on_leave(&ss->leave);
}

void shims_show_parked(const struct shims *ss, modern_parked_fn *show, void *arg)
{
    LIST_EACH (&ss->open, it)
        stdio_agent_show_parked(entry(it)->agent, show, arg);
}

bool shims_adopt(struct shims *ss, struct span text, int fd, struct span early,
                 const struct narrowing *narrowing)
{
    BUF_SCOPED scratch = {0};
    struct json_slot name = json_get(text, "server");
    struct span alias = name.type == JSON_STRING ? json_text(name.value, &scratch) : SPAN_EMPTY;
    struct bridge_server *server = NULL;

    if (alias.p && narrowing_shows(narrowing, alias))
        server = bridge_server_hold(ss->bridge, alias);
    if (alias.p && !server)
        return false;
    struct attached *a = attached_new(ss, server, alias, narrowing);
    struct json_slot asked = json_get(text, "asked"), brought = json_get(text, "brought");
    if (asked.type == JSON_STRING) {
        BUF_SCOPED names = {0};
        a->asked = mem_span(json_text(asked.value, &names));
    }
    begin(a, stream_from_fds(ss->loop, fd, fd, "unix"));
    if (brought.type == JSON_OBJECT) { /* first: the session's servers depend on the variables */
        BUF_SCOPED line = {0};
        json_one_line(&line, brought.value);
        buf_char(&line, '\n');
        stdio_agent_feed(a->agent, buf_view(&line), false);
    }
    stdio_agent_import(a->agent, text);
    if (early.n)
        stdio_agent_feed(a->agent, early, false);
    return true;
}

/* --- life --- */

/* Are all `names` among `those`? Both are lists of names with blanks between. */
static bool has_all(struct span those, struct span names)
{
    while (names.n) {
        struct span name = span_cut(names, 0, span_find(names, ' ')), rest = those;
        while (rest.n && !span_eq(span_cut(rest, 0, span_find(rest, ' ')), name))
            rest = span_from(rest, span_find(rest, ' ') + 1);
        if (!rest.n)
            return false;
        names = span_from(names, name.n + 1);
    }
    return true;
}

static void on_change(struct bridge_watch *w)
{
    struct shims *ss = CONTAINER_OF(w, struct shims, watch);

    LIST_EACH_SAFE (&ss->open, it) {
        struct attached *a = entry(it);
        if (a->server && bridge_server_is_gone(a->server))
            stdio_agent_close(a->agent, "the server was taken out of the configuration");
        else if (!has_all(span_str(a->asked), bridge_variables(ss->bridge)))
            stdio_agent_leave(a->agent, "the configuration names a variable that it did not bring");
    }
}

struct shims *shims_new(struct loop *loop, struct bridge *bridge, const struct config *c,
                        struct inherited *inherited)
{
    struct shims *ss = MEM_NEW(struct shims);

    ss->loop = loop;
    ss->bridge = bridge;
    ss->inherited = inherited;
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
