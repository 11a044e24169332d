/* The command `rialto browser`: tools of web pages for one agent on standard input and output, by
 * a running bridge or one of its own. Called through the table of commands (cmd/table.c). */
#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/browser_relay.h"
#include "cmd/commands.h"
#include "config/check.h"
#include "hub/auth/gate.h"
#include "hub/web_pages.h"
#include "io/ws.h"
#include "mcp/agent/stdio_agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPT_SESSION = 's', OPT_JOIN = 'j' };

/* The command's own bridge, which ends with its agent. */
struct own_bridge {
    struct loop *loop;
    struct bridge *bridge;
    struct front *front;
    struct endpoints *endpoints;
    struct web_pages *pages;
    struct stdio_agent *agent; /* NULL once it is closed */
    int closing;
};

static void part_closed(void *arg)
{
    struct own_bridge *o = arg;

    if (--o->closing == 0)
        loop_stop(o->loop);
}

static void endpoints_closed(void *arg)
{
    struct own_bridge *o = arg;

    web_pages_close(o->pages, part_closed, o);
}

static void agent_closed(void *arg)
{
    struct own_bridge *o = arg;

    o->agent = NULL;
    o->closing = 3;
    endpoints_close(o->endpoints, endpoints_closed, o);
    front_close(o->front, part_closed, o);
    bridge_stop(o->bridge, part_closed, o);
}

static void on_signal(void *arg, int signo)
{
    struct own_bridge *o = arg;

    if (!o->agent)
        _Exit(CMD_FAILED);
    stdio_agent_close(o->agent, strsignal(signo));
}

/* For later `rialto browser` commands, which attach to this bridge. */
static void on_mcp(void *owner, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, struct span rest)
{
    struct own_bridge *o = owner;
    bool sse = span_is(rest, "/sse");

    if (rest.n && !sse)
        http_refuse(x, 404, "no such server", "there are only web pages here, at /mcp");
    else if (!web_pages_mcp(o->pages, caller, x, req, sse))
        web_pages_all(o->pages, caller, x, req, sse);
}

/* The URL of an agent that uses a WebSocket may have no path. */
static void on_root(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span rest)
{
    if (ws_is_wanted(req))
        on_mcp(owner, caller, x, req, rest);
    else
        http_refuse(x, 404, "nothing is here", "MCP is at /mcp, a page to try at /demo");
}

static bool may_listen(const struct config *config)
{
    struct problems problems = {0};

    problems_set_file(&problems, config->file);
    gate_check(config, &problems);
    bool may = !problems.errors;
    args_show_problems(&problems);
    problems_fini(&problems);
    return may;
}

/* Without `listens` no page can connect: there are only the joined servers. */
static int host(const struct command *self, const struct config *config, const char *session,
                bool listens)
{
    struct own_bridge o = {.loop = loop_new()};
    struct err err;
    int code = CMD_FINE;

    o.bridge = bridge_new(o.loop, config);
    o.front = front_new(o.loop, config);
    o.endpoints = endpoints_new(o.loop, o.bridge, config, NULL);
    o.pages = web_pages_new(o.loop, config, o.bridge, o.front, o.endpoints);
    front_route(o.front, "/mcp", true, on_mcp, &o);
    front_route(o.front, "/", false, on_root, &o);
    front_let_in(o.front, "/mcp", FRONT_AGENTS);
    if (listens && front_listen(o.front, &err)) {
        cmd_error(self, "%s", err.text);
        cmd_hint("a program that is not Rialto has this address; choose another one with `listen`");
        code = CMD_FAILED;
        agent_closed(&o);
    } else {
        struct mcp_host agent = web_pages_host(o.pages, session);
        BUF_SCOPED origin = {0};
        if (listens) {
            front_put_origin(&origin, o.front, 0);
            log_info("browser", "listening on %s for pages%s%s", buf_cstr(&origin),
                     session ? " of session " : "", session ? session : "");
        }
        o.agent = stdio_agent_new(o.loop, stream_stdio(o.loop), &agent, config->limits.message,
                                  agent_closed, &o);
        if (loop_on_signal(o.loop, SIGINT, on_signal, &o) < 0 ||
            loop_on_signal(o.loop, SIGTERM, on_signal, &o) < 0)
            log_warn("rialto", "cannot handle signals");
    }
    loop_run(o.loop);
    front_free(o.front);
    bridge_free(o.bridge);
    loop_free(o.loop);
    return code;
}

static int pair(const struct command *self, const struct config *config)
{
    struct err err;
    char *token = web_pages_token(&err);
    struct buf out = {0};

    if (!token) {
        cmd_error(self, "%s", err.text);
        return CMD_FAILED;
    }
    buf_printf(&out, "%s\n", token);
    cmd_print(&out);
    if (!config->browser.pairing && !config->asks_tokens)
        cmd_hint("only extensions that browser.origins does not name are asked for it; "
                 "browser.pairing: true in the configuration asks everybody");
    mem_free(token);
    return CMD_FINE;
}

static int converse(const struct command *self, const struct config *config, const char *session)
{
    const char *address = config->listen.items[0].address;
    int code = strncmp(address, "unix:", 5) == 0 ? 1 : browser_relay(address, session, config);

    if (code == 1)
        return may_listen(config) ? host(self, config, session, true) : CMD_USAGE;
    return code ? CMD_FAILED : CMD_FINE;
}

/* Serves the tools of one BTCP server at `url`, without listening. */
static int join(const struct command *self, struct config *config, const char *session,
                const char *url)
{
    struct config_join one = {.url = url, .session = session};
    struct config_join *items = config->browser.join.items;
    size_t n = config->browser.join.n;

    if (check_url(span_str(url))) {
        cmd_error(self, "'%s': %s", url, check_url(span_str(url)));
        return CMD_USAGE;
    }
    if (!session && strncmp(url, "ws", 2) == 0) {
        cmd_error(self, "%s is joined by a session: --session ID says which", url);
        return CMD_USAGE;
    }
    config->browser.join.items = &one;
    config->browser.join.n = 1;
    int code = host(self, config, session, false);
    config->browser.join.items = items;
    config->browser.join.n = n;
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    const char *session = getenv("BTCP_SESSION_ID"), *server = NULL;
    int id;

    while ((id = args_next(&a)) > 0) {
        if (id == OPT_SESSION)
            session = a.value;
        else if (id == OPT_JOIN)
            server = a.value;
    }
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    bool pairs = a.rest_n == 1 && strcmp(a.rest[0], "pair") == 0;
    if (a.rest_n == 1 && !pairs) {
        cmd_error(self, "there is no command 'browser %s', only 'browser pair'", a.rest[0]);
        return CMD_USAGE;
    }
    if (session && !*session)
        session = NULL;
    if (session && !browser_can_be_session(span_str(session))) {
        cmd_error(self, "a session is named by 1 to 128 of letters, digits and . _ : -");
        return CMD_USAGE;
    }
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    int code = pairs    ? pair(self, config)
               : server ? join(self, config, session, server)
                        : converse(self, config, session);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"session", OPT_SESSION, "ID", "the browser session to offer (also BTCP_SESSION_ID)"},
    {"join", OPT_JOIN, "URL", "stand before the BTCP server at URL (ws:// or http://)"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_browser = {
    .name = "browser",
    .summary = "Speak MCP on standard input and output, for the tools of web pages",
    .usage = "[pair]",
    .about = "Attaches to the bridge that is running, or else listens for pages itself. Without a\n"
             "session it offers the tools of all pages. 'rialto browser pair' prints the token\n"
             "that pages must show when browser.pairing or auth.tokens is set, and extensions\n"
             "that browser.origins does not name always.",
    .options = options,
    .run = run,
};
