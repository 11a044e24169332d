/* The command `rialto serve`: makes the parts of the daemon, adds the routes of the front door, and
 * ends everything on a signal. Called through the table of commands (cmd/table.c). */
#include "admin/admin.h"
#include "admin/control.h"
#include "admin/dashboard.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/visible.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "config/load.h"
#include "hub/bridge.h"
#include "hub/browser_desk.h"
#include "hub/bus_role.h"
#include "hub/entrances.h"
#include "hub/follow.h"
#include "hub/front.h"
#include "hub/gate.h"
#include "hub/narrowings.h"
#include "hub/tls_files.h"
#include "io/ws.h"

#include <signal.h>
#include <stdlib.h>

enum { OPT_LISTEN = 'l' };

/* The daemon: one front door, an entrance to all servers and one to each. */
struct serve {
    struct loop *loop;
    const struct config *config;
    struct bridge *bridge;
    struct front *front;
    struct admin *admin;
    struct browser_desk *desk;
    struct narrowings *narrowings;
    struct entrances *entrances;
    struct follow *follow;
    struct bus_role *role; /* NULL without a bus */
    int closing;           /* parts that are not closed yet */
    bool stopping;
};

static bool take_suffix(struct span *s, struct span suffix)
{
    if (s->n < suffix.n || !span_eq(span_from(*s, s->n - suffix.n), suffix))
        return false;
    s->n -= suffix.n;
    return true;
}

/* What the caller is to see: its token's view, or the one it asks for. If not it has been refused.
 */
static bool find_narrowing(const struct serve *s, const struct caller *caller,
                           struct http_exchange *x, const struct http_request *req,
                           const struct narrowing **narrowing)
{
    struct buf scratch = {0};
    struct span asked = http_query(req->query, "view", &scratch);
    bool foreign = asked.p && caller->view && !span_is(asked, caller->view);
    char *name = asked.p && !caller->view ? mem_span(asked) : mem_str(caller->view);

    *narrowing = narrowings_find(s->narrowings, name);
    bool unknown = name && !*narrowing;
    mem_free(name);
    buf_fini(&scratch);
    if (foreign)
        http_refuse(x, 403, "this token is for another view", "leave ?view= out");
    else if (unknown)
        http_refuse(x, 404, "no such view",
                    "?view= takes a name from 'views' of the configuration");
    return !foreign && !unknown;
}

/* /mcp, /mcp/sse, /mcp/<server>, /mcp/<server>/sse */
static void on_mcp(void *owner, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, struct span rest)
{
    struct serve *s = owner;
    bool sse = take_suffix(&rest, SPAN("/sse"));
    const struct narrowing *narrowing;

    if (!find_narrowing(s, caller, x, req, &narrowing))
        return;
    if (!rest.n || span_is(rest, "/")) {
        bool asks_for_view = narrowing && !caller->view;
        if (asks_for_view || !browser_desk_mcp(s->desk, caller, x, req, sse))
            entrance_handle(entrances_all(s->entrances, caller->principal, narrowing), x, req, sse);
        return;
    }
    struct entrance *one =
        entrances_one(s->entrances, caller->principal, narrowing, span_from(rest, 1));
    if (one)
        entrance_handle(one, x, req, sse);
    else
        http_refuse(x, 404, "no such server",
                    narrowing ? "/mcp/<server> takes a name from the view"
                              : "/mcp/<server> takes a name from the configuration");
}

static void on_sse(void *owner, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, struct span rest)
{
    (void)rest;
    on_mcp(owner, caller, x, req, SPAN("/sse"));
}

/* What is there, for those who look without a browser. */
static void on_root(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span rest)
{
    struct serve *s = owner;
    struct provider *p;

    if (ws_is_wanted(req)) {
        on_mcp(owner, caller, x, req, rest); /* agents that were given no path */
        return;
    }
    if (!span_is(req->method, "GET") && !span_is(req->method, "HEAD")) {
        http_refuse(x, 405, "method not allowed", "MCP is at /mcp");
        return;
    }
    struct buf *out =
        http_respond_begin(x, 200, "text/plain; charset=utf-8", SPAN("Vary: Accept\r\n"));
    buf_str(out, "Rialto " RIALTO_VERSION "\n\n/mcp  all servers\n/demo  a web page with tools\n");
    for (size_t i = 0; (p = bridge_provider(s->bridge, i)); i++) {
        buf_printf(out, "/mcp/%s  %s", p->alias, provider_state_name(p->state));
        if (p->why[0]) {
            struct buf why = {0};
            log_redact(&why, span_str(p->why));
            buf_str(out, ": ");
            visible_put(out, buf_view(&why), 0); /* who looks with curl has a terminal */
            buf_fini(&why);
        }
        buf_char(out, '\n');
    }
    http_respond_end(x);
}

static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

static void put_curl_hint(struct buf *out, const char *address)
{
    buf_printf(out,
               "Rialto %s\n\n"
               "  look:  curl --unix-socket %s http://localhost/\n"
               "  MCP:   /mcp and /mcp/<server> on that socket\n\n",
               RIALTO_VERSION, address + strlen("unix:"));
}

/* Where this machine reaches an address that stands for all of its addresses. */
static void put_usable_origin(struct buf *out, const struct front *front, size_t n)
{
    static const char *const all[] = {"://0.0.0.0:", "://[::]:"};
    size_t at = out->n;

    front_put_origin(out, front, n);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        const char *hit = strstr(buf_cstr(out) + at, all[i]);
        if (!hit)
            continue;
        char *port = mem_str(hit + strlen(all[i]));
        out->n = (size_t)(hit - out->p);
        buf_printf(out, "://127.0.0.1:%s", port);
        mem_free(port);
    }
}

static void put_links(struct buf *out, const struct serve *s, size_t n)
{
    static const char *const lines[][2] = {
        {"  look:  ", "/\n"},
        {"  MCP:   ", "/mcp          (all servers)\n"},
        {"         ", "/mcp/<server> (one of them, names untouched)\n"},
        {"  demo:  ", "/demo         (a web page whose tools agents can use)\n\n"},
        {"Paste this into your client's configuration:\n\n"
         "  {\"mcpServers\": {\"rialto\": {\"type\": \"http\", \"url\": \"",
         "/mcp\""},
    };

    buf_str(out, "Rialto " RIALTO_VERSION "\n\n");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        buf_str(out, lines[i][0]);
        put_usable_origin(out, s->front, n);
        buf_str(out, lines[i][1]);
    }
    if (s->config->tokens.n)
        buf_str(out, ", \"headers\": {\"Authorization\": \"Bearer TOKEN\"}");
    buf_str(out, "}}}\n\n");
}

static void print_welcome(const struct serve *s)
{
    struct buf out = {0};
    size_t n = 0;

    while (front_address(s->front, n) && is_unix(front_address(s->front, n)))
        n++;
    if (front_address(s->front, n))
        put_links(&out, s, n);
    else
        put_curl_hint(&out, front_address(s->front, 0));
    buf_str(&out, "Ctrl-C ends it.\n");
    cmd_print(&out);
}

/* --- for those who look after it --- */

static const struct config *config_now(void *arg)
{
    const struct serve *s = arg;

    return bridge_config(s->bridge);
}

static struct provider *server_at(void *arg, size_t n)
{
    const struct serve *s = arg;

    return bridge_provider(s->bridge, n);
}

static struct view *view_at(void *arg, size_t n)
{
    const struct serve *s = arg;

    return bridge_server_view(s->bridge, span_str(bridge_provider(s->bridge, n)->alias));
}

static size_t count_sessions(void *arg)
{
    const struct serve *s = arg;

    return entrances_sessions(s->entrances) + browser_desk_sessions(s->desk);
}

static int reload(void *arg, struct buf *report, struct err *err)
{
    const struct serve *s = arg;

    if (s->stopping)
        return err_set(err, ERR_CONFIG, "this Rialto is being stopped");
    front_renew_certificates(s->front);
    return follow_now(s->follow, report, err);
}

static void count_pages(void *arg, struct browser_numbers *out)
{
    const struct serve *s = arg;

    browser_desk_count(s->desk, out);
}

static bool look_at_bus(void *arg, struct bus_report *out)
{
    const struct serve *s = arg;

    if (!s->role)
        return false;
    bus_role_report(s->role, out);
    return true;
}

static void open_admin(struct serve *s)
{
    s->admin = admin_new(&(struct admin_host){.router = bridge_router(s->bridge),
                                              .config = config_now,
                                              .server = server_at,
                                              .view = view_at,
                                              .sessions = count_sessions,
                                              .pages = count_pages,
                                              .bus = look_at_bus,
                                              .reload = reload,
                                              .arg = s});
    for (size_t i = 0; i < admin_paths_n; i++) {
        const struct admin_path *p = &admin_paths[i];
        if (p->local)
            front_route_local(s->front, p->path, p->below, p->handle, s->admin);
        else
            front_route(s->front, p->path, p->below, p->handle, s->admin);
    }
    front_let_in(s->front, "/healthz", FRONT_ANYBODY);
    front_let_in(s->front, "/readyz", FRONT_ANYBODY);
}

/* Without it all works but the commands that look for the daemon. */
static void listen_for_control(struct serve *s)
{
    char *address = control_address(s->config->control);
    struct err err;

    if (address && front_listen_control(s->front, address, &err))
        log_warn("rialto", "no control socket, so 'rialto status' will not find this one: %s",
                 err.text);
    mem_free(address);
}

/* --- the end --- */

static void part_closed(void *arg)
{
    struct serve *s = arg;

    if (--s->closing == 0)
        loop_stop(s->loop);
}

static void role_closed(void *arg)
{
    struct serve *s = arg;

    s->role = NULL;
    follow_free(s->follow); /* until now agents on the bus could change the file */
    bridge_stop(s->bridge, part_closed, s);
}

static void on_signal(void *arg, int signo)
{
    struct serve *s = arg;

    if (s->stopping) {
        log_warn("rialto", "second signal: leaving at once");
        _Exit(CMD_FAILED);
    }
    log_info("rialto", "%s: stopping", strsignal(signo));
    s->stopping = true;
    s->closing = 4;
    browser_desk_close(s->desk, part_closed, s);
    entrances_close(s->entrances, part_closed, s);
    front_close(s->front, part_closed, s);
    /* What came over the bus is answered before the servers go. */
    if (s->role)
        bus_role_close(s->role, role_closed, s);
    else
        role_closed(s);
}

/* --- the beginning --- */

static void open_endpoints(struct serve *s)
{
    s->entrances = entrances_new(s->loop, s->bridge, s->config);
    front_route(s->front, "/mcp", true, on_mcp, s);
    front_route(s->front, "/sse", false, on_sse, s);
    for (size_t i = 0; dashboard_path(i); i++)
        front_route_open(s->front, dashboard_path(i), dashboard_is_wanted, dashboard_handle, NULL);
    front_route(s->front, "/", false, on_root, s);
    front_let_in(s->front, "/mcp", FRONT_AGENTS);
    front_let_in(s->front, "/sse", FRONT_AGENTS);
}

static int listen_everywhere(struct serve *s, const struct command *self)
{
    struct err err;

    if (front_listen(s->front, &err)) {
        cmd_error(self, "%s", err.text);
        if (err.hint[0])
            cmd_hint("%s", err.hint);
        return CMD_FAILED;
    }
    /* Whoever waits for the lines below finds everything in place then. */
    listen_for_control(s);
    for (size_t i = 0; i < s->config->listen.n; i++) {
        struct buf origin = {0};
        front_put_origin(&origin, s->front, i);
        log_info("rialto", "listening on %s", buf_cstr(&origin));
        buf_fini(&origin);
    }
    return CMD_FINE;
}

static int join_bus(struct serve *s, const struct command *self)
{
    struct err err = {0};

    if (!bus_is_configured(s->config))
        return CMD_FINE;
    s->role = bus_role_open(s->loop, s->config, s->bridge, s->follow, NULL, NULL, &err);
    if (s->role)
        return CMD_FINE;
    cmd_error(self, "%s", err.text);
    if (err.hint[0])
        cmd_hint("%s", err.hint);
    return CMD_FAILED;
}

static void on_hangup(void *arg, int signo)
{
    struct serve *s = arg;
    struct err err = {0};

    (void)signo;
    if (s->stopping)
        return;
    front_renew_certificates(s->front);
    if (follow_now(s->follow, NULL, &err))
        log_error("rialto", "all goes on as it was: %s", err.text);
}

/* Before anybody can know that we are there: who sees our socket may want us gone at once. */
static void mind_signals(struct serve *s)
{
    static const struct {
        int signo;
        void (*handle)(void *arg, int signo);
    } rows[] = {{SIGINT, on_signal}, {SIGTERM, on_signal}, {SIGHUP, on_hangup}};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (loop_on_signal(s->loop, rows[i].signo, rows[i].handle, s) < 0)
            log_warn("rialto", "cannot handle %s", strsignal(rows[i].signo));
}

static int serve(const struct command *self, const struct config *config, const char *listen,
                 bool quiet)
{
    struct serve s = {.loop = loop_new(), .config = config};

    loop_raise_limit();
    s.narrowings = narrowings_new(config);
    s.bridge = bridge_new(s.loop, config);
    s.front = front_new(s.loop, config);
    s.desk = browser_desk_new(s.loop, config, s.bridge, s.front);
    open_endpoints(&s);
    s.follow = follow_new(s.loop, s.bridge, listen);
    open_admin(&s);
    mind_signals(&s);
    int code = listen_everywhere(&s, self);
    if (code == CMD_FINE)
        code = join_bus(&s, self);
    if (code == CMD_FINE) {
        if (!quiet)
            print_welcome(&s);
        bridge_start(s.bridge);
    } else {
        on_signal(&s, SIGTERM);
    }
    loop_run(s.loop);
    front_free(s.front);
    admin_free(s.admin);
    bridge_free(s.bridge);
    narrowings_free(s.narrowings);
    loop_free(s.loop);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    const char *listen = NULL;
    int id;

    while ((id = args_next(&a)) > 0)
        if (id == OPT_LISTEN)
            listen = a.value;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    struct problems problems = {0};
    problems_set_file(&problems, config->file);
    if (listen)
        config_set(config, "listen", listen, &problems);
    gate_check(config, &problems);
    tls_files_check(config, &problems);
    bool wrong = problems.errors > 0;
    args_show_problems(&problems);
    problems_fini(&problems);
    if (wrong) {
        config_free(config);
        return CMD_USAGE;
    }
    int code = serve(self, config, listen, a.quiet);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"listen", OPT_LISTEN, "ADDRESS", "listen here instead of where the configuration says"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_serve = {
    .name = "serve",
    .summary = "Run the daemon: everything the configuration names, on one address",
    .usage = "",
    .about = "Without a configuration it serves a small demo server, so that there is something\n"
             "to look at. Ends on Ctrl-C or SIGTERM, and all servers it started with it.",
    .options = options,
    .run = run,
};
