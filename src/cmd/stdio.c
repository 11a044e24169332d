/* The command `rialto stdio`: a bridge with one agent on standard input and output, and the wait
 * for servers not seen before. Called through the table of commands (cmd/table.c). */
#include "admin/audit.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/server_wish.h"
#include "config/units.h"
#include "core/drain.h"
#include "hub/bridge.h"
#include "mcp/agent/stdio_agent.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_SERVER = 's', OPT_WAIT = 'w' };

/* How long the answer to initialize waits for servers that were never up before (decision 006). */
enum { WAIT_MS = 2000 };

struct stdio {
    struct loop *loop;
    struct bridge *bridge;
    struct stdio_agent *agent; /* NULL once it is closed */
    struct drain drain;        /* of open calls, when a signal ends the program */
    struct observer servers;   /* set while the greeting waits for servers */
    struct timer patience;
};

static void stop_waiting(struct stdio *s)
{
    observer_remove(&s->servers);
    timer_clear(loop_timers(s->loop), &s->patience);
}

static void greet(struct stdio *s)
{
    stop_waiting(s);
    stdio_agent_release(s->agent);
}

static void on_servers(struct observer *o)
{
    struct stdio *s = CONTAINER_OF(o, struct stdio, servers);

    if (bridge_is_known(s->bridge))
        greet(s);
}

static void on_patience(struct timer *t)
{
    greet(CONTAINER_OF(t, struct stdio, patience));
}

static void bridge_stopped(void *arg)
{
    struct stdio *s = arg;

    loop_stop(s->loop);
}

static void agent_closed(void *arg)
{
    struct stdio *s = arg;

    s->agent = NULL;
    stop_waiting(s);
    drain_forget(&s->drain);
    bridge_stop(s->bridge, bridge_stopped, s);
}

static void drained(void *arg)
{
    const struct stdio *s = arg;

    stdio_agent_close(s->agent, "told by a signal");
}

/* The second signal, or one after the agent has gone, leaves at once. */
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
    struct stdio s = {
        .loop = loop_new(), .servers.changed = on_servers, .patience.fire = on_patience};

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
    bridge_wake(s.bridge); /* the agent is here, so lazy servers are started */
    if (wait) {
        stdio_agent_hold_greeting(s.agent);
        observers_add(router_observers(bridge_router(s.bridge)), &s.servers);
        timer_set(loop_timers(s.loop), &s.patience, wait);
    }
    loop_run(s.loop);
    audit_end(audit);
    bridge_free(s.bridge);
    loop_free(s.loop);
    return CMD_FINE;
}

/* With an address, or a command: that server alone, with its own names. */
static struct config *find_config(const struct args *a, struct server_wish *w, const char **server,
                                  int *code)
{
    *code = CMD_USAGE;
    if (!a->rest_n)
        return args_load_config(a);
    *server = "server";
    if (a->config)
        cmd_error(a->command, "no configuration is read for a single server: leave out -c");
    else if (!server_wish_words(w, a, a->rest, a->rest_n))
        return server_wish_config(w, a, code);
    return NULL;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    const char *server = NULL, *wrong = NULL;
    struct server_wish wish = {0};
    uint64_t wait = WAIT_MS;
    int id, code = 0;

    while (!code && (id = args_next(&a)) > 0) {
        if (id == OPT_SERVER)
            server = a.value;
        else if (id == OPT_WAIT)
            wrong = units_read_duration(span_str(a.value), &wait);
        else
            code = server_wish_option(&wish, &a, id);
    }
    if (!code && id < 0) {
        server_wish_fini(&wish);
        return a.exit_code;
    }
    if (!code && wrong) {
        cmd_error(self, "--wait: %s", wrong);
        code = CMD_USAGE;
    }
    struct config *config = code ? NULL : find_config(&a, &wish, &server, &code);
    server_wish_fini(&wish);
    if (!config)
        return code;
    code = converse(self, config, server, wait);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"server", OPT_SERVER, "NAME", "offer only this server, with its own names"},
    {"wait", OPT_WAIT, "TIME",
     "let the greeting wait so long for servers that are started for the first time (2s; 0: not)"},
    SERVER_WISH_OPTIONS,
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_stdio = {
    .name = "stdio",
    .summary = "Speak MCP on standard input and output, for one host program",
    .usage = "[URL | -- COMMAND [ARGS...]]",
    .about = "With an address it is the server there, as a program: no file is read. Without one,\n"
             "this is what goes into the configuration of a host that starts its servers itself:\n"
             "  {\"mcpServers\": {\"rialto\": {\"command\": \"rialto\", \"args\": [\"stdio\"]}}}",
    .options = options,
    .run = run,
};
