#include "admin/admin.h"
#include "admin/control.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/bridge.h"
#include "cmd/browser_desk.h"
#include "cmd/commands.h"
#include "cmd/front.h"
#include "config/load.h"
#include "mcp/entrance.h"

#include <signal.h>
#include <stdio.h>
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
    struct entrance *all;
    struct entrance **own; /* by bridge_provider's order */
    size_t n_own;
    int closing; /* parts that are not closed yet */
    bool stopping;
};

static bool take_suffix(struct span *s, struct span suffix)
{
    if (s->n < suffix.n || !span_eq(span_from(*s, s->n - suffix.n), suffix))
        return false;
    s->n -= suffix.n;
    return true;
}

/* /mcp, /mcp/sse, /mcp/<server>, /mcp/<server>/sse */
static void on_mcp(void *owner, struct http_exchange *x, const struct http_request *req,
                   struct span rest)
{
    struct serve *s = owner;
    bool sse = take_suffix(&rest, SPAN("/sse"));

    if (!rest.n || span_is(rest, "/")) {
        if (!browser_desk_mcp(s->desk, x, req, sse))
            entrance_handle(s->all, x, req, sse);
        return;
    }
    struct span alias = span_from(rest, 1);
    for (size_t i = 0; i < s->n_own; i++) {
        if (span_is(alias, bridge_provider(s->bridge, i)->alias)) {
            entrance_handle(s->own[i], x, req, sse);
            return;
        }
    }
    front_refuse(x, 404, "no such server", "/mcp/<server> takes a name from the configuration");
}

static void on_sse(void *owner, struct http_exchange *x, const struct http_request *req,
                   struct span rest)
{
    struct serve *s = owner;

    (void)rest;
    if (!browser_desk_mcp(s->desk, x, req, true))
        entrance_handle(s->all, x, req, true);
}

/* For whoever opens the address in a browser to see what is there. */
static void on_root(void *owner, struct http_exchange *x, const struct http_request *req,
                    struct span rest)
{
    struct serve *s = owner;
    struct provider *p;

    (void)rest;
    if (!span_is(req->method, "GET") && !span_is(req->method, "HEAD")) {
        front_refuse(x, 405, "method not allowed", "MCP is at /mcp");
        return;
    }
    struct buf *out = http_respond_begin(x, 200, "text/plain; charset=utf-8", SPAN_EMPTY);
    buf_str(out, "Rialto " RIALTO_VERSION "\n\n/mcp  all servers\n/demo  a web page with tools\n");
    for (size_t i = 0; (p = bridge_provider(s->bridge, i)); i++) {
        buf_printf(out, "/mcp/%s  %s", p->alias, provider_state_name(p->state));
        if (p->why[0]) {
            buf_str(out, ": ");
            log_redact(out, span_str(p->why));
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

static void print_welcome(const struct serve *s)
{
    const char *address = front_address(s->front, 0);
    struct buf out = {0};

    for (size_t i = 0; front_address(s->front, i); i++) {
        if (!is_unix(front_address(s->front, i))) {
            address = front_address(s->front, i);
            break;
        }
    }
    if (is_unix(address))
        put_curl_hint(&out, address);
    else
        buf_printf(&out,
                   "Rialto %s\n\n"
                   "  look:  http://%s/\n"
                   "  MCP:   http://%s/mcp          (all servers)\n"
                   "         http://%s/mcp/<server> (one of them, names untouched)\n"
                   "  demo:  http://%s/demo         (a web page whose tools agents can use)\n\n"
                   "Paste this into your client's configuration:\n\n"
                   "  {\"mcpServers\": {\"rialto\": {\"type\": \"http\", \"url\": "
                   "\"http://%s/mcp\"}}}\n\n",
                   RIALTO_VERSION, address, address, address, address, address);
    buf_str(&out, "Ctrl-C ends it.\n");
    cmd_print(&out);
    fflush(stdout);
}

/* --- for those who look after it --- */

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
    size_t n = entrance_sessions(s->all) + browser_desk_sessions(s->desk);

    for (size_t i = 0; i < s->n_own; i++)
        n += entrance_sessions(s->own[i]);
    return n;
}

static void open_admin(struct serve *s)
{
    s->admin = admin_new(&(struct admin_host){.router = bridge_router(s->bridge),
                                              .config = s->config,
                                              .server = server_at,
                                              .view = view_at,
                                              .sessions = count_sessions,
                                              .arg = s});
    for (size_t i = 0; i < admin_paths_n; i++) {
        const struct admin_path *p = &admin_paths[i];
        if (p->local)
            front_route_local(s->front, p->path, p->below, p->handle, s->admin);
        else
            front_route(s->front, p->path, p->below, p->handle, s->admin);
    }
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

static void on_signal(void *arg, int signo)
{
    struct serve *s = arg;

    if (s->stopping) {
        log_warn("rialto", "second signal: leaving at once");
        _Exit(CMD_FAILED);
    }
    log_info("rialto", "%s: stopping", strsignal(signo));
    s->stopping = true;
    s->closing = 4 + (int)s->n_own;
    browser_desk_close(s->desk, part_closed, s);
    entrance_close(s->all, part_closed, s);
    for (size_t i = 0; i < s->n_own; i++)
        entrance_close(s->own[i], part_closed, s);
    front_close(s->front, part_closed, s);
    bridge_stop(s->bridge, part_closed, s);
}

/* --- the beginning --- */

static void open_endpoints(struct serve *s)
{
    const struct entrance_options options = {.max_sessions = s->config->limits.sessions,
                                             .session_ttl = s->config->limits.session_ttl,
                                             .max_message = s->config->limits.message};
    struct mcp_host host = bridge_host(s->bridge, bridge_view(s->bridge));
    struct provider *p;

    s->all = entrance_new(s->loop, &host, &options);
    s->own = MEM_ARRAY(struct entrance *, s->config->servers.n + 1);
    for (size_t i = 0; (p = bridge_provider(s->bridge, i)); i++) {
        host = bridge_host(s->bridge, bridge_server_view(s->bridge, span_str(p->alias)));
        s->own[s->n_own++] = entrance_new(s->loop, &host, &options);
    }
    front_route(s->front, "/mcp", true, on_mcp, s);
    front_route(s->front, "/sse", false, on_sse, s);
    front_route(s->front, "/", false, on_root, s);
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
        const char *address = front_address(s->front, i);
        log_info("rialto", "listening on %s%s", is_unix(address) ? "" : "http://", address);
    }
    return CMD_FINE;
}

static int serve(const struct command *self, const struct config *config, bool quiet)
{
    struct serve s = {.loop = loop_new(), .config = config};
    static const int signals[] = {SIGINT, SIGTERM};

    s.bridge = bridge_new(s.loop, config);
    s.front = front_new(s.loop, config);
    s.desk = browser_desk_new(s.loop, config, s.bridge, s.front);
    open_endpoints(&s);
    open_admin(&s);
    int code = listen_everywhere(&s, self);
    if (code == CMD_FINE) {
        for (size_t i = 0; i < COUNT_OF(signals); i++)
            if (loop_on_signal(s.loop, signals[i], on_signal, &s) < 0)
                log_warn("rialto", "cannot handle %s", strsignal(signals[i]));
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
    mem_free(s.own);
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
    if (listen) {
        struct problems problems = {0};
        config_set(config, "listen", listen, &problems);
        bool wrong = problems.errors > 0;
        args_show_problems(&problems);
        problems_fini(&problems);
        if (wrong) {
            config_free(config);
            return CMD_USAGE;
        }
    }
    int code = serve(self, config, a.quiet);
    config_free(config);
    return cmd_finish(code);
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
