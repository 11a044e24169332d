/* The command `rialto conductor`: reads the options and components, and connects the conductor of
 * acp/ with hub/. Called through the table of commands (cmd/table.c). */
#include "acp/conductor.h"

#include "base/log.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/conductor_mcp.h"
#include "cmd/conductor_trace.h"
#include "config/credentials.h"
#include "config/units.h"
#include "hub/conductor_http.h"
#include "hub/conductor_link.h"
#include "hub/graph/bridge.h"
#include "io/guard.h"
#include "mcp/agent/stdio_agent.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPT_NAME = 'n',
    OPT_DEBUG = ARGS_OWN,
    OPT_DEBUG_DIR,
    OPT_TRACE,
    OPT_SERVE,
    OPT_BRIDGE,
    OPT_OPEN_PORT,
    OPT_DIALECT,
    OPT_START_TIMEOUT,
    OPT_STRICT,
    OPT_WITH,
    OPT_STALL,
};

enum { START_TIMEOUT = 60 * 1000, STALL_TIMEOUT = 60 * 1000 };

/* The parsed command line. */
struct conductor_arguments {
    struct conductor_options conductor;
    struct conductor_trace_options trace;
    const char *with;
    bool debug;
};

/* An MCP client of the agent, connected to the servers of --with. */
struct hub_agent {
    struct list node;
    struct run *run;
    struct stdio_agent *agent;
};

struct run {
    struct loop *loop;
    struct conductor *conductor;
    struct conductor_core *core;
    struct conductor_http *http;
    struct conductor_trace *trace;
    struct bridge *hub; /* NULL without --with */
    struct list hub_agents;
    void *hub_place;
    struct acp_http_place hub_address;
    size_t max_message;
    int status;
    int closing; /* parts that are not closed yet */
};

/* --- the host of the conductor --- */

static void accept_client(void *arg, struct acp_server *server, struct stream *stream,
                          struct span early)
{
    struct run *r = arg;

    conductor_join(r->core, server, stream, early);
}

static bool http_open(void *arg, struct acp_server *server, struct acp_http_place *place,
                      void **handle)
{
    struct run *r = arg;

    *handle = conductor_http_open(r->http, server, place);
    return *handle != NULL;
}

static void http_close(void *arg, void *handle)
{
    (void)arg;
    conductor_http_end(handle);
}

static void part_closed(void *arg)
{
    struct run *r = arg;

    if (--r->closing == 0)
        loop_stop(r->loop);
}

static void hub_agent_closed(void *arg)
{
    struct hub_agent *a = arg;
    struct run *r = a->run;

    list_remove(&a->node);
    mem_free(a);
    if (r->closing && list_empty(&r->hub_agents))
        part_closed(r);
}

static void extra_accept(void *arg, struct stream *stream, struct span early)
{
    struct run *r = arg;
    struct mcp_host host = bridge_host(r->hub, bridge_all(r->hub));
    struct hub_agent *a = MEM_NEW(struct hub_agent);

    a->run = r;
    list_append(&r->hub_agents, &a->node);
    a->agent = stdio_agent_new(r->loop, stream, &host, r->max_message, hub_agent_closed, a);
    stream_resume(stream);
    stdio_agent_feed(a->agent, early, false);
}

static bool extra_http(void *arg, struct acp_http_place *place)
{
    struct run *r = arg;

    if (!r->hub_place) {
        struct mcp_host host = bridge_host(r->hub, bridge_all(r->hub));
        r->hub_place = conductor_http_open_host(r->http, &host, &r->hub_address);
    }
    *place = r->hub_address;
    return r->hub_place != NULL;
}

static void ended(void *arg, int status)
{
    struct run *r = arg;

    r->status = status;
    r->closing = list_empty(&r->hub_agents) ? 4 : 5;
    LIST_EACH_SAFE (&r->hub_agents, it)
        stdio_agent_close(LIST_ENTRY(it, struct hub_agent, node)->agent, "the conductor is ending");
    conductor_http_close(r->http, part_closed, r);
    conductor_core_stop(r->core, part_closed, r);
    conductor_trace_close(r->trace, part_closed, r);
    if (r->hub)
        bridge_stop(r->hub, part_closed, r);
    else
        part_closed(r);
}

static void on_signal(void *arg, int signo)
{
    struct run *r = arg;

    (void)signo;
    conductor_end(r->conductor, 0);
}

/* --- running --- */

/* Is `path` a program, and not this one under another name? */
static bool is_another_program(const char *path)
{
    struct stat there, self;

    return access(path, X_OK) == 0 && stat(path, &there) == 0 &&
           stat("/proc/self/exe", &self) == 0 &&
           (there.st_dev != self.st_dev || there.st_ino != self.st_ino);
}

/* The command that agents start as an MCP server: the small program `conductor` in our folder, or
 * this program. */
static void find_shim(char path[PATH_MAX], const char *shim[4])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(self, '/');
    int folder = slash ? (int)(slash + 1 - self) : 0;
    snprintf(path, PATH_MAX, "%.*sconductor", folder, self);
    shim[0] = path;
    shim[1] = "mcp";
    shim[2] = shim[3] = NULL;
    if (!is_another_program(path)) {
        snprintf(path, PATH_MAX, "%s", self);
        shim[1] = "conductor";
        shim[2] = "mcp";
    }
}

/* mcp PORT: runs the small program instead of this one, because it needs a tenth of the memory. */
static int carry(char *port)
{
    char path[PATH_MAX];
    const char *shim[4];

    find_shim(path, shim);
    if (!shim[2])
        execv(path, (char *const[]){path, "mcp", port, NULL});
    return conductor_mcp(port); /* the small program is not in our folder */
}

static int conduct(const struct command *self, struct conductor_arguments *o,
                   const struct config *with)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char path[PATH_MAX];
    const char *shim[4];
    struct err err;
    struct run r = {.loop = loop_new(), .max_message = 32 * 1024 * 1024};

    list_init(&r.hub_agents);
    r.trace = conductor_trace_new(r.loop, &o->trace, &err);
    if (!r.trace) {
        cmd_error(self, "%s", err.text);
        loop_free(r.loop);
        return CMD_FAILED;
    }
    guard_children(r.loop);
    loop_raise_limit(); /* listeners of many sessions may be open at a time */
    loop_hide_memory();
    find_shim(path, shim);
    r.core = conductor_core_new(r.loop);
    r.http = conductor_http_new(r.loop, r.core);
    if (with) {
        r.hub = bridge_new(r.loop, with);
        r.max_message = with->limits.message;
        bridge_start(r.hub);
    }
    const struct acp_host host = {.arg = &r,
                                  .accept = accept_client,
                                  .http_open = http_open,
                                  .http_close = http_close,
                                  .extra_name = r.hub ? "rialto" : NULL,
                                  .extra_accept = extra_accept,
                                  .extra_http = extra_http,
                                  .ended = ended};
    o->conductor.max_batch = with ? with->limits.batch : RPC_MAX_BATCH;
    o->conductor.shim = shim;
    o->conductor.trace = conductor_trace_acp(r.trace);
    r.conductor = conductor_new(r.loop, &o->conductor, &host, stream_stdio(r.loop));
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        if (loop_on_signal(r.loop, signals[i], on_signal, &r) < 0)
            log_warn(o->conductor.name, "cannot handle signals");
    loop_run(r.loop);
    conductor_free(r.conductor);
    if (r.hub)
        bridge_free(r.hub);
    conductor_http_free(r.http);
    conductor_core_free(r.core);
    conductor_trace_free(r.trace);
    loop_free(r.loop);
    return r.status ? CMD_FAILED : CMD_FINE;
}

/* --- the command line --- */

static bool read_bridge(struct conductor_arguments *o, const char *word)
{
    static const struct {
        const char *word;
        enum bridge_mode mode;
    } modes[] = {{"auto", BRIDGE_AUTO}, {"stdio", BRIDGE_STDIO}, {"http", BRIDGE_HTTP}};

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (strcmp(word, modes[i].word) == 0) {
            o->conductor.bridge = modes[i].mode;
            return true;
        }
    }
    return false;
}

/* 0, or CMD_USAGE with a message. */
static int read_option(const struct command *self, struct conductor_arguments *o, int id,
                       const char *value)
{
    const char *wrong;

    switch (id) {
    case OPT_NAME:
        o->conductor.name = value;
        break;
    case OPT_DEBUG:
        o->debug = true;
        o->trace.metadata = value;
        if (value && strcmp(value, "metadata") != 0) {
            cmd_error(self, "--debug takes =metadata or nothing, not '%s'", value);
            return CMD_USAGE;
        }
        break;
    case OPT_DEBUG_DIR:
        o->trace.debug_dir = value;
        break;
    case OPT_TRACE:
        o->trace.file = value;
        break;
    case OPT_SERVE:
        o->trace.serve = true;
        break;
    case OPT_STRICT:
        o->conductor.strict = true;
        break;
    case OPT_OPEN_PORT:
        o->conductor.open_port = true;
        break;
    case OPT_WITH:
        o->with = value;
        break;
    case OPT_START_TIMEOUT:
        wrong = units_read_duration(span_str(value), &o->conductor.start_timeout);
        if (wrong) {
            cmd_error(self, "--start-timeout: '%s' %s", value, wrong);
            return CMD_USAGE;
        }
        break;
    case OPT_STALL:
        wrong = units_read_duration(span_str(value), &o->conductor.stall_timeout);
        if (wrong) {
            cmd_error(self, "--stall-timeout: '%s' %s", value, wrong);
            return CMD_USAGE;
        }
        break;
    case OPT_BRIDGE:
        if (!read_bridge(o, value)) {
            cmd_error(self, "--mcp-bridge takes stdio, http or auto, not '%s'", value);
            return CMD_USAGE;
        }
        break;
    default:
        o->conductor.dialect = proxy_dialect_parse(span_str(value));
        if (o->conductor.dialect == P_UNKNOWN && strcmp(value, "auto") != 0) {
            cmd_error(self, "--proxy-dialect takes P0, P1, P2, P3 or auto, not '%s'", value);
            return CMD_USAGE;
        }
        break;
    }
    return 0;
}

/* Errors name a component by its command line, and components may print it: hide the secrets in the
 * command line. */
static void hide_credentials(const struct command_line *line)
{
    credentials_in_args((const char *const *)line->argv);
    for (size_t i = 0; i < line->n_env; i++) {
        struct span pair = span_str(line->env[i]);
        size_t end = span_find(pair, '=');
        credentials_in_pair(span_cut(pair, 0, end), span_from(pair, end + 1));
    }
}

static int read_components(const struct command *self, struct conductor_arguments *o, char **lines,
                           int n)
{
    struct err err = {0};

    o->conductor.components = MEM_ARRAY(struct command_line, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        if (command_line_parse(&o->conductor.components[i], span_str(lines[i]), &err)) {
            cmd_error(self, "component %d, '%s': %s", i, lines[i], err.text);
            return CMD_USAGE;
        }
        hide_credentials(&o->conductor.components[i]);
        o->conductor.n_components++;
    }
    o->trace.components = o->conductor.components;
    o->trace.n_components = o->conductor.n_components;
    return 0;
}

static void free_components(struct conductor_arguments *o)
{
    for (size_t i = 0; i < o->conductor.n_components; i++)
        command_line_fini(&o->conductor.components[i]);
    mem_free(o->conductor.components);
}

/* agent|proxy CMD... */
static int start(const struct command *self, struct args *a, struct conductor_arguments *o)
{
    struct config *with = NULL;

    o->conductor.mode = strcmp(a->rest[0], "proxy") == 0 ? CONDUCT_PROXY : CONDUCT_AGENT;
    if (o->debug && !o->trace.debug_dir)
        o->trace.debug_dir = ".";
    if (!o->debug)
        o->trace.debug_dir = NULL;
    int code = read_components(self, o, a->rest + 1, a->rest_n - 1);
    if (!code && o->with) {
        a->config = o->with;
        with = args_load_config(a);
        code = with ? 0 : CMD_USAGE;
    } else {
        log_set_level(a->quiet ? LOG_ERROR : a->verbose ? LOG_DEBUG : LOG_INFO);
    }
    if (!code)
        code = conduct(self, o, with);
    if (with)
        config_free(with);
    free_components(o);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct conductor_arguments o = {.conductor = {.name = "conductor",
                                                  .dialect = P_UNKNOWN,
                                                  .start_timeout = START_TIMEOUT,
                                                  .stall_timeout = STALL_TIMEOUT}};
    int id;

    while ((id = args_next(&a)) > 0)
        if (read_option(self, &o, id, a.value))
            return CMD_USAGE;
    if (id < 0)
        return a.exit_code;
    const char *what = a.rest_n ? a.rest[0] : "";
    if (strcmp(what, "mcp") == 0 && a.rest_n == 2)
        return carry(a.rest[1]);
    if (strcmp(what, "agent") == 0 || strcmp(what, "proxy") == 0)
        return start(self, &a, &o);
    cmd_error(self, a.rest_n ? "cannot understand '%s'" : "which conductor command?%s", what);
    cmd_hint("usage: rialto conductor [OPTIONS] %s", self->usage);
    return CMD_USAGE;
}

static const struct cmd_option options[] = {
    {"name", OPT_NAME, "NAME", "what to call it in the log"},
    {"mcp-bridge", OPT_BRIDGE, "stdio|http|auto", "how the agent is given MCP servers"},
    {"open-port", OPT_OPEN_PORT, NULL, "let anybody on this machine use the ports of MCP servers"},
    {"proxy-dialect", OPT_DIALECT, "auto|P0|P1|P2|P3", "what proxies speak"},
    {"start-timeout", OPT_START_TIMEOUT, "TIME",
     "how long a component may take to answer initialize"},
    {"strict", OPT_STRICT, NULL, "refuse to be made a proxy when started as agent"},
    {"with", OPT_WITH, "CONFIG", "give every session the servers of this configuration"},
    {"stall-timeout", OPT_STALL, "TIME", "give up who reads nothing for so long (60s), 0 = nobody"},
    {"trace", OPT_TRACE, "FILE", "write every message between components as JSON lines"},
    {"serve", OPT_SERVE, NULL, "show the messages live on a local web page"},
    {"debug", OPT_DEBUG, "[=metadata]", "log every line of every pipe to a file, or no content"},
    {"debug-dir", OPT_DEBUG_DIR, "DIR", "put that file here; the folder is made"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_conductor = {
    .name = "conductor",
    .summary = "Run a chain of ACP proxies before an agent, and bridge their MCP servers",
    .usage = "agent CMD... | proxy CMD... | mcp PORT",
    .about =
        "Each CMD is a whole command line in one argument: shell words with NAME=value before\n"
        "them, or {\"command\": ..., \"args\": [...], \"env\": {...}}. With agent the last one\n"
        "is the agent and all others are proxies; with proxy all are. A prefix such as p2:\n"
        "fixes what a proxy speaks. mcp is what agents start to reach a bridged server.",
    .options = options,
    .run = run,
};
