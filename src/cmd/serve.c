/* The command `rialto serve`: the daemon, which is a hub with its admin paths, listening until a
 * signal comes. Called through the table of commands (cmd/table.c). */
#include "admin/admin.h"
#include "admin/audit.h"
#include "admin/control.h"
#include "admin/dashboard.h"
#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/server_options.h"
#include "config/load.h"
#include "hub/auth/gate.h"
#include "hub/hub.h"
#include "hub/tls_files.h"
#include "hub/upgrade.h"
#include "io/service.h"
#include "io/successor.h"
#include "wire/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define USUAL_PORT "8765" /* the default port of `listen` */

/* How this daemon was started. */
struct start {
    char *program;
    enum successor_role role;
    int handover, old;
};

enum { OPT_LISTEN = 'l', OPT_FROM = ARGS_OWN, OPT_ON_DEMAND };
enum { OWNER_MS = 2000 }; /* for a daemon that is asked whether it has our address */

/* The daemon. */
struct serve {
    struct loop *loop;
    const struct config *config;
    struct hub *hub;
    struct audit *audit; /* NULL when there is no trail */
    bool on_demand;      /* started by a shim */
    struct admin *admin;
    struct service *service;
    struct upgrade *upgrade;
};

static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

static void put_curl_hint(struct buf *out, const char *address)
{
    buf_printf(out,
               "  look:  curl --unix-socket %s http://localhost/\n"
               "  MCP:   /mcp and /mcp/<server> on that socket\n\n",
               address + strlen("unix:"));
}

static bool stands_for_all(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* The origin, with this host instead of an address that stands for all addresses. */
static void put_usable_origin(struct buf *out, const struct front *front, size_t n,
                              const char *host)
{
    const char *address = front_address(front, n);

    front_put_origin(out, front, n);
    if (!stands_for_all(address))
        return;
    out->n -= strlen(address);
    buf_printf(out, "%s%s", host, strrchr(address, ':'));
}

/* How other machines reach an address that stands for all. */
static void put_elsewhere(struct buf *out, const struct front *front, size_t n)
{
    struct ifaddrs *all = NULL;
    char host[INET_ADDRSTRLEN];

    if (!stands_for_all(front_address(front, n)) || getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        struct sockaddr_in in;
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK))
            continue;
        memcpy(&in, i->ifa_addr, sizeof in);
        buf_str(out, "         ");
        put_usable_origin(out, front, n, inet_ntop(AF_INET, &in.sin_addr, host, sizeof host));
        buf_str(out, "/mcp          (from other machines)\n");
    }
    freeifaddrs(all);
}

static void put_links(struct buf *out, const struct serve *s, size_t n)
{
    enum { LAST_OF_MCP = 2 };
    static const char *const lines[][2] = {
        {"  look:  ", "/\n"},
        {"  MCP:   ", "/mcp          (all servers)\n"},
        {"         ", "/mcp/<server> (one of them, names untouched)\n"},
        {"  demo:  ", "/demo         (a web page whose tools agents can use)\n\n"},
        {"Paste this into your client's configuration:\n\n"
         "  {\"mcpServers\": {\"rialto\": {\"type\": \"http\", \"url\": \"",
         "/mcp\""},
    };

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        buf_str(out, lines[i][0]);
        put_usable_origin(out, hub_front(s->hub), n, "127.0.0.1");
        buf_str(out, lines[i][1]);
        if (i == LAST_OF_MCP)
            put_elsewhere(out, hub_front(s->hub), n);
    }
    if (s->config->asks_tokens)
        buf_str(out, ", \"headers\": {\"Authorization\": \"Bearer TOKEN\"}");
    buf_str(out, "}}}\n\n");
}

/* "Rialto 0.1.0, /home/me/rialto.yaml: 3 servers, 42 tools", the tools from an earlier run. */
static void put_title(struct buf *out, const struct serve *s)
{
    size_t servers = 0, tools = 0;

    for (struct provider *p = NULL; (p = bridge_next(hub_bridge(s->hub), p));)
        servers++;
    for (struct provider *p = NULL; (p = bridge_next(hub_bridge(s->hub), p));)
        tools += p->catalog ? p->catalog->n[ITEM_TOOL] : 0;
    buf_printf(out, "Rialto " RIALTO_VERSION ", %s: %zu server%s",
               s->config->file ? s->config->file : "without a configuration", servers,
               servers == 1 ? "" : "s");
    if (tools)
        buf_printf(out, ", %zu tool%s", tools, tools == 1 ? "" : "s");
    buf_str(out, "\n\n");
}

static void print_welcome(const struct serve *s)
{
    const struct front *front = hub_front(s->hub);
    struct buf out = {0};
    size_t n = 0;

    while (front_address(front, n) && is_unix(front_address(front, n)))
        n++;
    put_title(&out, s);
    if (front_address(front, n))
        put_links(&out, s, n);
    else
        put_curl_hint(&out, front_address(front, 0));
    buf_str(&out, "Ctrl-C ends it.\n");
    cmd_print(&out);
}

/* --- for operators --- */

static void open_admin(struct serve *s)
{
    struct front *front = hub_front(s->hub);

    s->admin = admin_new(s->hub);
    for (size_t i = 0; i < admin_paths_n; i++) {
        const struct admin_path *p = &admin_paths[i];
        if (p->local)
            front_route_local(front, p->path, p->below, p->handle, s->admin);
        else
            front_route(front, p->path, p->below, p->handle, s->admin);
    }
    front_let_in(front, "/healthz", FRONT_ANYBODY);
    front_let_in(front, "/readyz", FRONT_ANYBODY);
    for (size_t i = 0; dashboard_paths[i]; i++)
        front_route_open(front, dashboard_paths[i], dashboard_is_wanted, dashboard_handle, NULL);
}

/* Opens the control sockets. Without them only shims, and commands that look for the daemon, do not
 * work. False: no shim can attach. */
static bool listen_for_control(struct serve *s)
{
    const char *setting = s->config->control;
    char *own = control_address(setting, s->config->file);
    /* Shims look for the socket named after the configuration file, whatever `control` says. */
    char *named = strcmp(setting, "off") == 0 ? NULL : control_address("auto", s->config->file);
    bool both = own && named && strcmp(own, named) != 0;
    struct err err = {0};
    int code = own ? front_listen_control(hub_front(s->hub), own, &err) : ERR_CONFIG;

    if (own && code)
        log_warn("rialto", "no control socket, so 'rialto status' will not find this one: %s",
                 err.text);
    if (both) {
        code = front_listen_control(hub_front(s->hub), named, &err);
        if (code)
            log_warn("rialto", "'rialto stdio' will not find this one: %s", err.text);
    }
    mem_free(own);
    mem_free(named);
    return code == 0;
}

/* The shim that started this daemon waits for this line, and for no more output. */
static void tell_ready(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ssize_t written = write(STDOUT_FILENO, "ready\n", 6);

    (void)written;
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        close(null);
    }
}

/* --- start and end --- */

static void on_stopped(void *arg)
{
    const struct serve *s = arg;

    loop_stop(s->loop);
}

static void stop(struct serve *s)
{
    service_stopping(s->service);
    upgrade_give_up(s->upgrade);
    hub_stop(s->hub, on_stopped, s);
}

static void on_signal(void *arg, int signo)
{
    struct serve *s = arg;

    if (hub_is_stopping(s->hub)) {
        log_warn("rialto", "second signal: leaving at once");
        _Exit(CMD_FAILED);
    }
    log_info("rialto", "%s: stopping", strsignal(signo));
    stop(s);
}

/* Does the daemon of this status serve an address that we want? */
static bool has_one_of(struct span status, const struct config *c)
{
    struct json_iter it = json_iter(json_get(status, "listen").value);

    while (json_next(&it))
        for (size_t i = 0; i < c->listen.n; i++)
            if (json_string_is(it.value, span_str(c->listen.items[i].address)))
                return true;
    return false;
}

/* An address is in use: prints which daemon of this user has it. False if none has. */
static bool hint_at_owner(const struct command *self, const struct config *c)
{
    const struct args a = {.command = self};
    bool found = false;
    char *socket;

    for (size_t i = 0; (socket = control_nth(i)); i++) {
        struct daemon *d = daemon_at(&a, socket);
        BUF_SCOPED answer = {0}, file = {0};
        int status = 0;
        daemon_wait_for(d, OWNER_MS);
        if (!found && daemon_try(d, "/status", &status, &answer) == 0 && status == 200 &&
            has_one_of(buf_view(&answer), c)) {
            struct span config = daemon_text(buf_view(&answer), "config", &file);
            cmd_hint("a Rialto of yours has it already: pid " SPAN_FMT ", " SPAN_FMT
                     "; 'rialto status' shows it",
                     SPAN_ARG(json_get(buf_view(&answer), "pid").value),
                     SPAN_ARG(config.n ? config : SPAN("without a configuration")));
            found = true;
        }
        daemon_free(d);
        mem_free(socket);
    }
    return found;
}

/* --- upgrade: the daemon before this one, or after it --- */

static void forward_line(void *arg, struct span body)
{
    const struct serve *s = arg;

    upgrade_send_line(s->upgrade, body);
}

static void on_leave(void *arg)
{
    struct serve *s = arg;

    audit_leave(s->audit, forward_line, s);
}

static void on_come_back(void *arg)
{
    struct serve *s = arg;
    struct err err = {0};

    if (audit_return(s->audit, s->config, &err))
        log_error("audit", "%s", err.text);
}

static void on_line(void *arg, struct span body)
{
    const struct serve *s = arg;

    audit_append(s->audit, body);
}

/* Logs where the daemon listens only when every address is open: scripts wait for these lines. */
static int open_hub(struct serve *s, const struct command *self)
{
    struct err err = {0};

    int code = hub_open(s->hub, &err);
    if (!code && !listen_for_control(s) && s->on_demand)
        code = err_set(&err, ERR_CONFIG, "no shim could attach, so this one ends");
    if (!code)
        code = service_check_sockets(s->service, &err);
    if (code) {
        cmd_error(self, "%s", err.text);
        if (!(err.code == -EADDRINUSE && hint_at_owner(self, s->config)) && err.hint[0])
            cmd_hint("%s", err.hint);
        return CMD_FAILED;
    }
    for (size_t i = 0; i < front_open_count(hub_front(s->hub)); i++) {
        BUF_SCOPED origin = {0};
        front_put_origin(&origin, hub_front(s->hub), i);
        log_info("rialto", "listening on %s", buf_cstr(&origin));
    }
    return CMD_FINE;
}

/* Called before open_admin, whose recorder must see which calls the audit objects to. */
static int open_audit(struct serve *s, const struct command *self)
{
    struct err err = {0};
    int code;

    s->audit = audit_begin(s->config, bridge_router(hub_bridge(s->hub)), &code, &err);
    if (!code)
        return CMD_FINE;
    cmd_error(self, "%s", err.text);
    if (err.hint[0])
        cmd_hint("%s", err.hint);
    return CMD_FAILED;
}

static void on_hangup(void *arg, int signo)
{
    const struct serve *s = arg;
    struct err err = {0};

    (void)signo;
    if (!hub_is_stopping(s->hub) && hub_reload(s->hub, NULL, &err))
        log_error("rialto", "all goes on as it was: %s", err.text);
}

/* Called before the sockets are opened: a signal may come as soon as one of them is seen. */
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

static void on_idle(void *arg)
{
    struct serve *s = arg;

    log_info("rialto", "nobody has used this daemon for a while (autostart.idle): stopping");
    upgrade_give_up(s->upgrade);
    hub_stop(s->hub, on_stopped, s);
}

/* Takes over from the daemon before this one, if there is one. False if that failed. */
static bool inherit(struct serve *s, struct start *start)
{
    front_route_local(hub_front(s->hub), "/upgrade", false, upgrade_handle, s->upgrade);
    if (start->role != SUCCESSOR_HEIR)
        return true;
    front_spare_taken(hub_front(s->hub));
    return upgrade_inherit(s->upgrade, start->handover, start->old);
}

static void run_loop(struct serve *s)
{
    loop_run(s->loop);
    while (upgrade_is_due(s->upgrade)) {
        upgrade_run(s->upgrade);
        loop_run(s->loop);
    }
}

static int serve(const struct command *self, const struct config *config, const char *listen,
                 bool on_demand, bool quiet, struct start *start)
{
    struct serve s = {.loop = loop_new(), .config = config, .on_demand = on_demand};
    const struct upgrade_host host = {on_leave, on_come_back, on_line, &s};
    bool heir = start->role == SUCCESSOR_HEIR;

    s.service = service_new(s.loop);
    loop_raise_limit();
    s.hub = hub_new(s.loop, config, listen);
    s.upgrade = upgrade_new(s.hub, s.loop, s.service, start->program, &host);
    if (on_demand)
        hub_serve_on_demand(s.hub, config->autostart.idle, on_idle, &s);
    int code = inherit(&s, start) ? open_audit(&s, self) : CMD_FAILED;
    open_admin(&s);
    mind_signals(&s);
    if (code == CMD_FINE)
        code = open_hub(&s, self);
    if (code == CMD_FINE) {
        if (on_demand && !heir)
            tell_ready();
        else if (!quiet && !heir)
            print_welcome(&s);
        hub_start(s.hub);
        upgrade_serve(s.upgrade);
        service_ready(s.service);
    } else {
        stop(&s);
    }
    run_loop(&s);
    admin_free(s.admin);
    audit_end(s.audit);
    hub_free(s.hub);
    upgrade_free(s.upgrade); /* ends inherited servers that nothing has claimed */
    service_free(s.service);
    loop_free(s.loop);
    return code;
}

/* A port alone is one of 127.0.0.1; a host without a port gets the default port. */
static const char *take_listen(struct buf *scratch, const char *text)
{
    uint64_t port;

    if (ascii_number(span_str(text), &port))
        buf_printf(scratch, "127.0.0.1:%s", text);
    else if (*text && !strpbrk(text, ":/"))
        buf_printf(scratch, "%s:" USUAL_PORT, text);
    else
        return text;
    return buf_cstr(scratch);
}

/* The configuration: only the server that the command line gives, if it does; else the file. */
static struct config *find_config(const struct args *a, struct server_options *o, int *code)
{
    *code = CMD_USAGE;
    if (!o->url && !server_options_has_command(a))
        return args_expect(a, 0) ? NULL : args_load_config(a);
    if (o->url && a->rest_n)
        cmd_error(a->command, "give a command or --from, not both");
    else if (a->config)
        cmd_error(a->command, "no configuration is read for a single server: leave out -c");
    else if (o->url || !server_options_words(o, a, a->rest, a->rest_n))
        return server_options_config(o, a, code);
    return NULL;
}

/* The running daemon tries whether this program would start (hub/rehearsal.h): prints
 * SUCCESSOR_READY and opens nothing. */
static int rehearse(void)
{
    fputs(SUCCESSOR_READY, stdout);
    return CMD_FINE;
}

static int serve_config(const struct args *a, struct config *config, const char *listen,
                        bool on_demand)
{
    struct start start = {.program = successor_default()};
    struct problems problems = {0};

    problems_set_file(&problems, config->file);
    if (listen)
        config_set(config, "listen", listen, &problems);
    gate_check(config, &problems);
    tls_files_check(config, &problems);
    bool wrong = problems.errors > 0;
    args_show_problems(&problems);
    problems_fini(&problems);
    start.role = successor_role(&start.handover, &start.old);
    int code = wrong ? CMD_USAGE
               : start.role == SUCCESSOR_REHEARSAL
                   ? rehearse()
                   : serve(a->command, config, listen, on_demand, a->quiet, &start);
    mem_free(start.program);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct server_options options = {0};
    BUF_SCOPED scratch = {0};
    const char *listen = NULL;
    bool on_demand = false;
    int id, code = 0;

    a.serves = true;
    while (!code && (id = args_next(&a)) > 0) {
        if (id == OPT_LISTEN)
            listen = take_listen(&scratch, a.value);
        else if (id == OPT_FROM)
            options.url = a.value;
        else if (id == OPT_ON_DEMAND)
            on_demand = a.outside = true;
        else
            code = server_options_read(&options, &a, id);
    }
    if (!code && id < 0) {
        server_options_fini(&options);
        return a.exit_code;
    }
    struct config *config = code ? NULL : find_config(&a, &options, &code);
    server_options_fini(&options);
    if (!config)
        return code;
    code = serve_config(&a, config, listen, on_demand);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"listen", OPT_LISTEN, "ADDRESS", "listen here; a port alone is one of 127.0.0.1"},
    {"from", OPT_FROM, "URL", "serve the server at this address, without a configuration"},
    SERVER_OPTIONS_OPTIONS,
    {"on-demand", OPT_ON_DEMAND, NULL,
     "as 'rialto stdio' starts it: leave addresses that are taken, end when idle (autostart)"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_serve = {
    .name = "serve",
    .summary = "Run the daemon: everything the configuration names, on one address",
    .usage = "[-- COMMAND [ARGS...]]",
    .about = "With a command, or --from URL, it serves that server alone, with the server's own\n"
             "names, and reads no file:\n"
             "  rialto serve -l 8080 -- npx -y some-server --flag\n"
             "Without a configuration it serves a small demo server, so that there is something\n"
             "to look at. Ends on Ctrl-C or SIGTERM, and all servers it started with it.",
    .options = options,
    .run = run,
};
