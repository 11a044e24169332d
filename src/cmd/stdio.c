/* The command `rialto stdio`: a shim to the daemon or, alone, a bridge with one agent on standard
 * input and output. Called through the table of commands (cmd/table.c). */
#include "admin/audit.h"
#include "admin/control.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/server_options.h"
#include "cmd/shim.h"
#include "config/load.h"
#include "config/units.h"
#include "core/drain.h"
#include "hub/graph/nesting.h"
#include "hub/greeting.h"
#include "hub/places.h"
#include "io/listen.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPT_SERVER = 's', OPT_WAIT = 'w', OPT_VIEW = ARGS_OWN, OPT_ALONE };

/* What the command line asks for. */
struct stdio_options {
    const char *server, *view;
    uint64_t wait; /* ms, see hub/greeting.h */
    bool alone;
};

struct stdio {
    struct loop *loop;
    struct bridge *bridge;
    struct stdio_agent *agent; /* NULL once it is closed */
    struct drain drain;        /* of open calls, when a signal ends the program */
    struct held_greeting greeting;
};

static void bridge_stopped(void *arg)
{
    struct stdio *s = arg;

    loop_stop(s->loop);
}

static void agent_closed(void *arg)
{
    struct stdio *s = arg;

    s->agent = NULL;
    greeting_forget(&s->greeting);
    drain_forget(&s->drain);
    bridge_stop(s->bridge, bridge_stopped, s);
}

static void drained(void *arg)
{
    const struct stdio *s = arg;

    stdio_agent_close(s->agent, "told by a signal");
}

/* The second signal, or one after the agent was closed, ends the program at once. */
static void on_signal(void *arg, int signo)
{
    struct stdio *s = arg;

    (void)signo;
    if (!s->agent || s->drain.router)
        _Exit(CMD_FAILED);
    drain_begin(&s->drain, bridge_router(s->bridge), drained, s);
}

static int converse(const struct command *self, const struct config *config, const char *server,
                    uint64_t wait)
{
    struct stdio s = {.loop = loop_new()};

    s.bridge = bridge_new(s.loop, config);
    bridge_set_for_one(s.bridge);
    struct exposure *seen = server ? bridge_one(s.bridge, span_str(server)) : bridge_all(s.bridge);
    if (!seen) {
        cmd_error(self, "there is no server '%s' in the configuration", server);
        bridge_free(s.bridge);
        loop_free(s.loop);
        return CMD_USAGE;
    }
    struct err err = {0};
    int code;
    struct audit *audit = audit_begin(config, bridge_router(s.bridge), &code, &err);
    if (code) {
        cmd_error(self, "%s", err.text);
        bridge_free(s.bridge);
        loop_free(s.loop);
        return CMD_FAILED;
    }
    struct mcp_host host = bridge_host(s.bridge, seen);
    host.endpoint = "stdio";
    s.agent = stdio_agent_new(s.loop, stream_stdio(s.loop), &host, config->limits.message,
                              agent_closed, &s);
    if (loop_on_signal(s.loop, SIGINT, on_signal, &s) < 0 ||
        loop_on_signal(s.loop, SIGTERM, on_signal, &s) < 0)
        log_warn("rialto", "cannot handle signals");
    bridge_start(s.bridge);
    bridge_wake(s.bridge); /* an agent is connected, so lazy servers are started */
    if (wait)
        greeting_hold(&s.greeting, s.loop, s.bridge, s.agent, wait);
    loop_run(s.loop);
    audit_end(audit);
    bridge_free(s.bridge);
    loop_free(s.loop);
    return CMD_FINE;
}

/* With an address, or a command: that server alone, with its own names. */
static int serve_one(const struct args *a, struct server_options *one,
                     const struct stdio_options *o)
{
    int code = CMD_USAGE;
    struct config *c = NULL;

    if (a->config)
        cmd_error(a->command, "no configuration is read for a single server: leave out -c");
    else if (!server_options_words(one, a, a->rest, a->rest_n))
        c = server_options_config(one, a, &code);
    if (c)
        code = converse(a->command, c, "server", o->wait);
    config_free(c);
    return code;
}

/* --- the shim --- */

static void put_query(struct buf *out, const struct stdio_options *o)
{
    buf_str(out, "wait=");
    units_put_duration(out, o->wait);
    if (o->view) {
        buf_str(out, "&view=");
        daemon_put_value(out, o->view);
    }
    if (o->server) {
        buf_str(out, "&server=");
        daemon_put_value(out, o->server);
    }
}

/* The path of this program, or of the program `beside` in the same folder. */
static bool put_program(char out[PATH_MAX], const char *beside)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    char *slash = n > 0 ? memrchr(out, '/', (size_t)n) : NULL;

    if (!slash)
        return false;
    out[n] = '\0';
    return !beside || snprintf(slash + 1, (size_t)(out + PATH_MAX - slash - 1), "%s", beside) <
                          out + PATH_MAX - slash - 1;
}

/* Executes rialto-shim, which is smaller than this program; without it, runs the shim here. */
static int attach(const char *socket, const char *file, const struct stdio_options *o)
{
    char self[PATH_MAX], small[PATH_MAX];
    BUF_SCOPED query = {0}, name = {0};

    control_put_name(&name, file);
    buf_str(&name, ".log");
    put_query(&query, o);
    char *log = place_path(PLACE_STATE, buf_cstr(&name));
    if (!put_program(self, NULL) || !put_program(small, "rialto-shim")) {
        mem_free(log);
        return CMD_FAILED;
    }
    const char *argv[] = {small,   socket,        buf_cstr(&query),   log ? log : "", self,
                          "serve", "--on-demand", file ? "-c" : NULL, file,           NULL};
    execv(small, (char *const *)argv);
    int code = shim_run(&(struct shim_options){.socket = socket,
                                               .query = buf_cstr(&query),
                                               .log = log ? log : "",
                                               .daemon = (char *const *)argv + 4});
    mem_free(log);
    return code;
}

/* The socket of a running daemon for this file, or NULL. With one, the file need not be read. */
static char *find_live(const char *file)
{
    char *socket = control_find("auto", file);

    if (socket && listen_is_live(socket))
        return socket;
    mem_free(socket);
    return NULL;
}

static const char *path_of(const char *address)
{
    return address ? address + strlen("unix:") : NULL;
}

/* No daemon runs: may one be started? If so, *socket is where it will listen. */
static int prepare(const struct command *self, const struct config *c, char **socket, bool *alone)
{
    bool off = strcmp(c->control, "off") == 0;
    char *address = off ? NULL : control_address("auto", c->file);

    /* A daemon that is started inside of one of our servers would end with that server. */
    *alone = !address || nesting_is_inside();
    if (*alone && !off && !address)
        log_warn("rialto", "no daemon can be started, so this one serves alone");
    *socket = address ? mem_str(path_of(address)) : NULL;
    mem_free(address);
    if (*alone || c->autostart.on != AUTOSTART_NOT)
        return CMD_FINE;
    cmd_error(self, "no daemon runs for %s, and `autostart: false` lets none be started",
              c->file ? c->file : "the built-in configuration");
    cmd_hint("'rialto serve' starts it; 'rialto stdio --alone' needs none");
    return CMD_FAILED;
}

/* Without /proc a daemon cannot tell hosts from its own servers, and refuses both. */
static bool must_be_alone(const struct stdio_options *o)
{
    if (o->alone || access("/proc/self/exe", F_OK) == 0)
        return o->alone;
    log_warn("rialto", "there is no /proc here, so no daemon can be used: this one serves alone");
    return true;
}

static int serve_host(const struct command *self, const struct args *a,
                      const struct stdio_options *o)
{
    char *found = config_find_outside(a->config), *file = found ? realpath(found, NULL) : NULL;
    bool alone = must_be_alone(o);
    char *socket = alone || nesting_is_inside() ? NULL : find_live(file);
    int code = CMD_FINE;

    mem_free(found);
    struct config *c = socket ? NULL : args_load_config(a);
    if (!socket && !c)
        code = CMD_USAGE;
    else if (!socket && !alone)
        code = prepare(self, c, &socket, &alone);
    if (code == CMD_FINE && alone && o->view) {
        cmd_error(self, "--view needs the daemon");
        code = CMD_USAGE;
    }
    if (code == CMD_FINE)
        code = alone ? converse(self, c, o->server, o->wait) : attach(socket, file, o);
    config_free(c);
    mem_free(socket);
    free(file);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct stdio_options o = {.wait = GREETING_WAIT_MS};
    const char *wrong = NULL;
    struct server_options one = {0};
    int id, code = 0;

    a.outside = true;
    while (!code && (id = args_next(&a)) > 0) {
        if (id == OPT_SERVER)
            o.server = a.value;
        else if (id == OPT_VIEW)
            o.view = a.value;
        else if (id == OPT_ALONE)
            o.alone = true;
        else if (id == OPT_WAIT)
            wrong = units_read_duration(span_str(a.value), &o.wait);
        else
            code = server_options_read(&one, &a, id);
    }
    if (!code && id < 0) {
        server_options_fini(&one);
        return a.exit_code;
    }
    if (!code && wrong) {
        cmd_error(self, "--wait: %s", wrong);
        code = CMD_USAGE;
    }
    if (!code)
        code = a.rest_n ? serve_one(&a, &one, &o) : serve_host(self, &a, &o);
    server_options_fini(&one);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"server", OPT_SERVER, "NAME", "offer only this server, with its own names"},
    {"view", OPT_VIEW, "NAME", "offer what this view of the configuration leaves"},
    {"wait", OPT_WAIT, "TIME",
     "let the greeting wait so long for servers that are started for the first time (2s; 0: not)"},
    {"alone", OPT_ALONE, NULL, "use no daemon: start servers for this host alone"},
    SERVER_OPTIONS_OPTIONS,
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_stdio = {
    .name = "stdio",
    .summary = "Speak MCP on standard input and output, for one host program",
    .usage = "[URL | -- COMMAND [ARGS...]]",
    .about =
        "With an address it is the server there, as a program: no file is read. Without one,\n"
        "this is what goes into the configuration of a host that starts its servers itself:\n"
        "  {\"mcpServers\": {\"rialto\": {\"command\": \"rialto\", \"args\": [\"stdio\"]}}}\n"
        "All hosts share the daemon of the configuration file, which is started when none runs\n"
        "and ends when nobody has used it for a while (`autostart`). The working folder is not\n"
        "searched for a configuration.",
    .options = options,
    .run = run,
};
