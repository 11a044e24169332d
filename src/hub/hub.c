/* Start and end of everything that runs in a daemon, and the routes of MCP: which endpoint a
 * request is for. Called by cmd/serve.c and, for queries and for reloading, by admin/. */
#include "hub/hub.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/visible.h"
#include "core/drain.h"
#include "hub/bus_role.h"
#include "hub/endpoints.h"
#include "hub/graph/follow.h"
#include "hub/graph/narrowings.h"
#include "hub/graph/task_file.h"
#include "hub/on_demand.h"
#include "hub/shims.h"
#include "hub/signin/begin.h"
#include "hub/signin/callback.h"
#include "hub/web_pages.h"
#include "io/ws.h"
#include "wire/host.h"
#include "wire/url.h"

#include <errno.h>

struct hub {
    struct loop *loop;
    const struct config *config; /* the configuration of the start */
    struct narrowings *narrowings;
    struct bridge *bridge;
    struct front *front;
    struct inherited *inherited; /* sessions of the daemon before us */
    struct endpoints *endpoints;
    struct shims *shims;
    struct web_pages *pages;
    struct follow *follow;
    struct task_file *tasks;
    struct bus_role *role;          /* NULL without a bus */
    struct on_demand *on_demand;    /* NULL: serves until it is told to end */
    uint64_t requests;              /* of agents, by HTTP */
    struct drain drain;             /* waits for the calls that are open at hub_stop */
    int calling;                    /* of agents and the bus: how many may still call servers */
    int closing;                    /* parts that are not closed yet */
    void (*config_read)(void *arg); /* or NULL */
    void *config_read_arg;
    void (*stopped)(void *arg); /* NULL until hub_stop */
    void *stopped_arg;
};

/* --- routes --- */

static bool take_suffix(struct span *s, struct span suffix)
{
    if (s->n < suffix.n || !span_eq(span_from(*s, s->n - suffix.n), suffix))
        return false;
    s->n -= suffix.n;
    return true;
}

/* The narrowing for this caller: by the view of its token, or by the view that the request asks
 * for. False: there is no such view, and the request has been refused. */
static bool find_narrowing(const struct hub *h, const struct caller *caller,
                           struct http_exchange *x, const struct http_request *req,
                           const struct narrowing **narrowing)
{
    BUF_SCOPED scratch = {0};
    struct span asked = http_query(req->query, "view", &scratch);
    bool foreign = asked.p && caller->view && !span_is(asked, caller->view);
    char *name = asked.p && !caller->view ? mem_span(asked) : mem_str(caller->view);

    *narrowing = narrowings_find(h->narrowings, name);
    bool unknown = name && !*narrowing;
    mem_free(name);
    if (foreign)
        http_refuse(x, 403, "this token is for another view", "leave ?view= out");
    else if (unknown)
        http_refuse(x, 404, "no such view",
                    "?view= takes a name from 'views' of the configuration");
    return !foreign && !unknown;
}

/* Is this from a new agent? Agents that are here already may still have a question to answer. */
static bool is_new_agent(const struct http_request *req, bool sse)
{
    if (sse || ws_is_wanted(req))
        return span_is(req->method, "GET");
    return !http_header(req, "mcp-session-id").p && !http_header(req, "mcp-method").p;
}

/* /mcp, /mcp/sse, /mcp/<server>, /mcp/<server>/sse */
static void on_mcp(void *owner, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, struct span rest)
{
    struct hub *h = owner;
    bool sse = take_suffix(&rest, SPAN("/sse"));
    const struct narrowing *narrowing;

    if (h->stopped && is_new_agent(req, sse)) {
        http_refuse(x, 503, "this Rialto is being stopped", "come back when it runs again");
        return;
    }
    if (!find_narrowing(h, caller, x, req, &narrowing))
        return;
    h->requests++;
    if (!rest.n || span_is(rest, "/")) {
        bool asks_for_view = narrowing && !caller->view;
        if (asks_for_view || !web_pages_mcp(h->pages, caller, x, req, sse))
            endpoint_handle(endpoints_all(h->endpoints, caller, narrowing), x, req, sse);
        return;
    }
    struct endpoint *one = endpoints_one(h->endpoints, caller, narrowing, span_from(rest, 1));
    if (one)
        endpoint_handle(one, x, req, sse);
    else
        http_refuse(x, 404, "no such server",
                    narrowing ? "/mcp/<server> takes a name from the view"
                              : "/mcp/<server> takes a name from the configuration");
}

void hub_operate(struct hub *h, const struct caller *caller, struct http_exchange *x,
                 const struct http_request *req, struct span server)
{
    struct caller person = *caller;
    const struct narrowing *narrowing;

    person.shown = true;
    if (h->stopped)
        http_refuse(x, 503, "this Rialto is being stopped", "come back when it runs again");
    if (h->stopped || !find_narrowing(h, caller, x, req, &narrowing))
        return;
    h->requests++;
    struct endpoint *e = server.n ? endpoints_one(h->endpoints, &person, narrowing, server)
                                  : endpoints_all(h->endpoints, &person, narrowing);
    if (e)
        endpoint_handle(e, x, req, false);
    else
        http_refuse(x, 404, "no such server", "/api/servers lists them");
}

static void on_sse(void *owner, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, struct span rest)
{
    (void)rest;
    on_mcp(owner, caller, x, req, SPAN("/sse"));
}

static void on_callback(void *owner, const struct caller *caller, struct http_exchange *x,
                        const struct http_request *req, struct span rest)
{
    const struct hub *h = owner;

    (void)caller, (void)rest;
    callback_answer(bridge_signin(h->bridge), x, req);
}

static void on_begin(void *owner, const struct caller *caller, struct http_exchange *x,
                     const struct http_request *req, struct span rest)
{
    const struct hub *h = owner;

    (void)caller, (void)rest;
    begin_answer(bridge_signin(h->bridge), x, req);
}

static void on_client(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    const struct hub *h = owner;

    (void)caller, (void)rest, (void)req;
    callback_describe(bridge_signin(h->bridge), x);
}

/* With public_url, browsers come back there, since they may be on any machine. They may also be
 * anybody's, so they start at a page of ours as well (hub/signin/begin). Without public_url,
 * browsers come back to our first http address on loopback; if there is none, each login listens by
 * itself. */
static void set_redirect(struct hub *h, const struct config *c)
{
    BUF_SCOPED own = {0}, begin = {0};

    if (c->public_url) {
        buf_printf(&own, "%s" CALLBACK_PATH, c->public_url);
        buf_printf(&begin, "%s" BEGIN_PATH, c->public_url);
        signin_set_redirect(bridge_signin(h->bridge), buf_cstr(&own), buf_cstr(&begin));
        return;
    }
    signin_set_redirect(bridge_signin(h->bridge), NULL, NULL);
    for (size_t i = 0; front_address(h->front, i); i++) {
        BUF_SCOPED uri = {0};
        struct url_parts url;
        front_put_origin(&uri, h->front, i);
        buf_str(&uri, CALLBACK_PATH);
        if (!url_read(&url, buf_view(&uri)) || url.secure || !host_is_loopback(url.host))
            continue;
        signin_set_redirect(bridge_signin(h->bridge), buf_cstr(&uri), NULL);
        return;
    }
}

/* A host's shim. */
static void on_attach(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    const struct hub *h = owner;
    const struct narrowing *narrowing;

    (void)rest;
    if (h->stopped)
        http_refuse(x, 503, "this Rialto is being stopped", "come back when it runs again");
    else if (find_narrowing(h, caller, x, req, &narrowing))
        shims_handle(h->shims, caller, x, req, narrowing);
}

/* A list of the addresses, for people who look without a browser. */
static void on_root(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span rest)
{
    const struct hub *h = owner;
    const struct narrowing *narrowing;

    if (ws_is_wanted(req)) {
        on_mcp(owner, caller, x, req, rest); /* agents that were given no path */
        return;
    }
    if (!span_is(req->method, "GET") && !span_is(req->method, "HEAD")) {
        http_refuse(x, 405, "method not allowed", "MCP is at /mcp");
        return;
    }
    if (!find_narrowing(h, caller, x, req, &narrowing))
        return;
    struct buf *out =
        http_respond_begin(x, 200, "text/plain; charset=utf-8", SPAN("Vary: Accept\r\n"));
    buf_str(out, "Rialto " RIALTO_VERSION "\n\n/mcp  all servers\n/demo  a web page with tools\n");
    for (struct provider *p = NULL; (p = bridge_next(h->bridge, p));) {
        if (!narrowing_shows(narrowing, span_str(p->alias)))
            continue;
        buf_printf(out, "/mcp/%s  %s", p->alias, provider_state_name(p->state));
        if (p->why) {
            BUF_SCOPED why = {0};
            log_redact(&why, span_str(p->why));
            buf_str(out, ": ");
            visible_put(out, buf_view(&why), 0); /* curl shows this on a terminal */
        }
        buf_char(out, '\n');
    }
    http_respond_end(x);
}

/* --- tokens and views that change --- */

static bool may_stay(void *arg, const struct principal *principal, bool by_socket,
                     const struct narrowing *narrowing)
{
    const struct hub *h = arg;

    if (!narrowings_are_current(h->narrowings, narrowing) || (principal && principal->ended))
        return false;
    /* If tokens are required now, sessions without a principal must end. If they are not required
     * any more, requests have no principal, and could not find the sessions that have one. */
    return by_socket || front_asks_tokens(h->front) == (principal != NULL);
}

static bool shim_may_stay(void *arg, const struct narrowing *narrowing)
{
    const struct hub *h = arg;

    return narrowings_are_current(h->narrowings, narrowing);
}

/* Nothing of a token that has ended is delivered: first its calls end, then its connections. */
static void on_ended(void *arg)
{
    struct hub *h = arg;

    if (h->stopped)
        return;
    call_end_principals(bridge_router(h->bridge));
    endpoints_review(h->endpoints, may_stay, h, "the token or its view is not valid any more");
    shims_review(h->shims, shim_may_stay, h);
    web_pages_review(h->pages, front_asks_tokens(h->front));
}

static void on_applied(void *arg, const struct config *c)
{
    struct hub *h = arg;

    if (c) {
        narrowings_apply(h->narrowings, c);
        front_apply_auth(h->front, c);
        if (!h->stopped) /* else there are no addresses any more */
            set_redirect(h, c);
        on_ended(h);
    }
    if (h->config_read)
        h->config_read(h->config_read_arg);
}

/* --- start --- */

struct hub *hub_new(struct loop *loop, const struct config *c, const char *listen)
{
    struct hub *h = MEM_NEW(struct hub);

    h->loop = loop;
    h->config = c;
    h->narrowings = narrowings_new(c);
    h->bridge = bridge_new(loop, c);
    h->tasks = task_file_open(loop_timers(loop), router_tasks(bridge_router(h->bridge)));
    h->front = front_new(loop, c);
    h->inherited = inherited_new(loop_timers(loop));
    h->endpoints = endpoints_new(loop, h->bridge, c, h->inherited);
    h->shims = shims_new(loop, h->bridge, c, h->inherited);
    h->pages = web_pages_new(loop, c, h->bridge, h->front, h->endpoints);
    h->follow = follow_new(loop, h->bridge, listen);
    follow_on_applied(h->follow, on_applied, h);
    front_on_ended(h->front, on_ended, h);
    return h;
}

/* Added last: for `/`, the route of the dashboard must be found first. */
static void add_routes(struct hub *h)
{
    front_route(h->front, "/mcp", true, on_mcp, h);
    front_route(h->front, "/sse", false, on_sse, h);
    front_route(h->front, "/attach", false, on_attach, h);
    front_route(h->front, "/", false, on_root, h);
    front_route(h->front, CALLBACK_PATH, false, on_callback, h);
    front_let_in(h->front, CALLBACK_PATH, FRONT_ANYBODY);
    front_route(h->front, BEGIN_PATH, false, on_begin, h);
    front_let_in(h->front, BEGIN_PATH, FRONT_ANYBODY);
    front_route(h->front, CALLBACK_CLIENT_PATH, false, on_client, h);
    front_let_in(h->front, CALLBACK_CLIENT_PATH, FRONT_ANYBODY);
    front_let_in(h->front, "/mcp", FRONT_AGENTS);
    front_let_in(h->front, "/sse", FRONT_AGENTS);
}

int hub_open(struct hub *h, struct err *err)
{
    add_routes(h);
    int code = front_listen(h->front, err);
    set_redirect(h, h->config);
    if (code || !bus_settings_given(h->config))
        return code;
    h->role = bus_role_open(h->loop, h->config, h->bridge, h->follow, NULL, NULL, err);
    return h->role ? 0 : ERR_CONFIG;
}

void hub_start(struct hub *h)
{
    bridge_start(h->bridge);
}

/* --- end --- */

static void part_closed(void *arg)
{
    struct hub *h = arg;

    if (--h->closing == 0)
        h->stopped(h->stopped_arg);
}

static void endpoints_closed(void *arg)
{
    struct hub *h = arg;

    web_pages_close(h->pages, part_closed, h);
}

/* Called twice: when no call of an agent is open any more, and when the bus is closed. After both,
 * no call needs a server. */
static void calls_ended(struct hub *h)
{
    if (--h->calling == 0)
        bridge_stop(h->bridge, part_closed, h);
}

static void role_closed(void *arg)
{
    struct hub *h = arg;

    h->role = NULL;
    follow_free(h->follow); /* until now, agents on the bus could change the file */
    h->follow = NULL;
    calls_ended(h);
}

/* Each agent has the answers to its calls: now its connections may close. */
static void drained(void *arg)
{
    struct hub *h = arg;

    endpoints_close(h->endpoints, endpoints_closed, h);
    shims_close(h->shims, part_closed, h);
    front_close(h->front, part_closed, h);
    calls_ended(h);
}

void hub_stop(struct hub *h, void (*stopped)(void *arg), void *arg)
{
    h->stopped = stopped;
    h->stopped_arg = arg;
    h->closing = 4;
    h->calling = 2;
    if (h->on_demand)
        on_demand_free(h->on_demand);
    h->on_demand = NULL;
    shims_let_idle_go(h->shims);
    drain_begin(&h->drain, bridge_router(h->bridge), drained, h);
    if (h->role)
        bus_role_close(h->role, role_closed, h);
    else
        role_closed(h);
}

bool hub_is_stopping(const struct hub *h)
{
    return h->stopped != NULL;
}

void hub_free(struct hub *h)
{
    front_free(h->front);
    inherited_free(h->inherited);
    task_file_close(h->tasks);
    bridge_free(h->bridge);
    narrowings_free(h->narrowings);
    mem_free(h);
}

/* --- another daemon takes over --- */

static void nothing_more(void *arg)
{
    struct hub *h = arg;

    h->closing--;
}

static void role_left(void *arg)
{
    struct hub *h = arg;

    h->role = NULL;
    nothing_more(h);
}

void hub_retire(struct hub *h)
{
    if (h->on_demand)
        on_demand_free(h->on_demand);
    h->on_demand = NULL;
    if (h->role) {
        h->closing++;
        bus_role_retire(h->role);
        bus_role_close(h->role, role_left, h);
    }
    follow_free(h->follow);
    h->follow = NULL;
    task_file_leave(h->tasks);
    drain_retire(bridge_router(h->bridge));
    endpoints_end_streams(h->endpoints);
    h->closing++;
    web_pages_retire(h->pages, nothing_more, h);
}

bool hub_is_quiet(const struct hub *h)
{
    return !h->closing && !shims_count(h->shims) && !front_left(h->front);
}

void hub_close_rest(struct hub *h, void (*closed)(void *arg), void *arg)
{
    endpoints_close(h->endpoints, closed, arg);
}

struct endpoints *hub_endpoints(const struct hub *h)
{
    return h->endpoints;
}

struct shims *hub_shim_list(const struct hub *h)
{
    return h->shims;
}

struct inherited *hub_inherited(const struct hub *h)
{
    return h->inherited;
}

/* --- queries, and reading the file again --- */

struct bridge *hub_bridge(const struct hub *h)
{
    return h->bridge;
}

struct front *hub_front(const struct hub *h)
{
    return h->front;
}

int hub_edit(struct hub *h, const struct server_edit *e, struct err *err)
{
    if (h->stopped || !h->follow) /* hub_stop and hub_retire free `follow` */
        return err_set(err, -ECANCELED, "this Rialto is being stopped");
    return follow_edit(h->follow, e, err);
}

void hub_on_config(struct hub *h, void (*read)(void *arg), void *arg)
{
    h->config_read = read;
    h->config_read_arg = arg;
}

const char *hub_file(const struct hub *h)
{
    return h->follow ? follow_file(h->follow) : NULL;
}

const struct narrowing *hub_narrowing(const struct hub *h, const char *view)
{
    return narrowings_find(h->narrowings, view);
}

size_t hub_sessions(const struct hub *h)
{
    return endpoints_sessions(h->endpoints) + shims_count(h->shims) + inherited_count(h->inherited);
}

size_t hub_shims(const struct hub *h)
{
    return shims_count(h->shims);
}

/* --- a daemon that a shim has started --- */

static bool is_in_use(void *arg, uint64_t *uses)
{
    const struct hub *h = arg;
    const struct stats *calls = router_stats(bridge_router(h->bridge));
    struct browser_numbers pages = {0};

    hub_count_pages(h, &pages);
    *uses = h->requests + calls->opened;
    return shims_count(h->shims) || calls->in_flight || calls->queued || pages.pages || h->role;
}

void hub_serve_on_demand(struct hub *h, uint64_t idle, void (*over)(void *arg), void *arg)
{
    front_spare_taken(h->front);
    h->on_demand = on_demand_new(h->loop, idle, is_in_use, h, over, arg);
}

void hub_count_pages(const struct hub *h, struct browser_numbers *out)
{
    web_pages_count(h->pages, out);
}

bool hub_look_at_bus(const struct hub *h, struct bus_report *out)
{
    if (!h->role || h->stopped) /* when we stop, the bus is closed first */
        return false;
    bus_role_report(h->role, out);
    return true;
}

int hub_reload(struct hub *h, struct buf *report, struct err *err)
{
    if (h->stopped || !h->follow)
        return err_set(err, ERR_CONFIG, "this Rialto is being stopped");
    front_renew_certificates(h->front);
    return follow_now(h->follow, report, err);
}

const struct problems *hub_rejected(const struct hub *h)
{
    static const struct problems none;

    return h->follow ? follow_rejected(h->follow) : &none;
}
