/* The command `rialto bus`: its options, and running a worker or a proxy; tail and pub are in
 * bus_tail.c, bus_dead.c and bus_pub.c. Called through the table of commands (cmd/table.c). */
#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/topic.h"
#include "cmd/args.h"
#include "cmd/bus_look.h"
#include "cmd/commands.h"
#include "config/units.h"
#include "hub/bus_role.h"
#include "hub/graph/bridge.h"
#include "hub/graph/follow.h"
#include "mcp/agent/stdio_agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    OPT_URL = 'u',
    OPT_COUNT = 'n',
    OPT_TYPE = 't',
    OPT_HEADER = 'H',
    OPT_WAIT = 'w',
    OPT_DEAD = ARGS_OWN,
    OPT_REPLY_TO,
    OPT_SOURCE,
};

/* The parsed command line. */
struct bus_arguments {
    struct args args;
    const char *url;
    bool dead;
    struct bus_tail tail;
    struct bus_pub pub;
};

/* --- worker and proxy --- */

/* A bridge without an HTTP front; a proxy has one agent on standard input and output. */
struct bus_station {
    struct loop *loop;
    struct bridge *bridge;
    struct follow *follow;
    struct bus_role *role;     /* NULL once it is closing */
    struct stdio_agent *agent; /* NULL for a worker, and once it is closed */
};

static void bridge_stopped(void *arg)
{
    loop_stop(((struct bus_station *)arg)->loop);
}

static void role_closed(void *arg)
{
    struct bus_station *s = arg;

    follow_free(s->follow); /* not earlier: an open role lets agents change the file */
    bridge_stop(s->bridge, bridge_stopped, s);
}

static void leave(struct bus_station *s)
{
    bus_role_close(s->role, role_closed, s);
    s->role = NULL;
}

static void agent_closed(void *arg)
{
    struct bus_station *s = arg;

    s->agent = NULL;
    leave(s);
}

static void on_signal(void *arg, int signo)
{
    struct bus_station *s = arg;

    if (!s->role) {
        log_warn("rialto", "second signal: leaving at once");
        _Exit(CMD_FAILED);
    }
    log_info("rialto", "%s: stopping", strsignal(signo));
    if (s->agent)
        stdio_agent_close(s->agent, strsignal(signo));
    else
        leave(s);
}

static void on_hangup(void *arg, int signo)
{
    struct bus_station *s = arg;
    struct err err = {0};

    (void)signo;
    if (s->role && follow_now(s->follow, NULL, &err))
        log_error("rialto", "all goes on as it was: %s", err.text);
}

static void take_signals(struct bus_station *s)
{
    static const struct {
        int signo;
        void (*fn)(void *arg, int signo);
    } rows[] = {{SIGINT, on_signal}, {SIGTERM, on_signal}, {SIGHUP, on_hangup}};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (loop_on_signal(s->loop, rows[i].signo, rows[i].fn, s) < 0)
            log_warn("rialto", "cannot handle %s", strsignal(rows[i].signo));
}

static void open_agent(struct bus_station *s, const struct config *c)
{
    struct mcp_host host = bridge_host(s->bridge, bridge_all(s->bridge));

    s->agent =
        stdio_agent_new(s->loop, stream_stdio(s->loop), &host, c->limits.message, agent_closed, s);
}

static int serve_bus(const struct command *self, const struct bus_arguments *o,
                     const struct config *c, enum config_bus_role role)
{
    struct bus_station s = {.loop = loop_new()};
    struct err err = {0};
    int code = CMD_FINE;

    s.bridge = bridge_new(s.loop, c);
    s.follow = follow_new(s.loop, s.bridge, NULL);
    s.role = bus_role_open(s.loop, c, s.bridge, s.follow, o->url, &role, &err);
    if (s.role) {
        if (role == BUS_PROXY)
            open_agent(&s, c);
        take_signals(&s);
        bridge_start(s.bridge);
    } else {
        cmd_error(self, "%s", err.text);
        if (err.hint[0])
            cmd_hint("%s", err.hint);
        code = CMD_FAILED;
        role_closed(&s);
    }
    loop_run(s.loop);
    bridge_free(s.bridge);
    loop_free(s.loop);
    return code;
}

static int do_worker(const struct command *self, struct bus_arguments *o, const struct config *c)
{
    return serve_bus(self, o, c, BUS_WORKER);
}

static int do_proxy(const struct command *self, struct bus_arguments *o, const struct config *c)
{
    return serve_bus(self, o, c, BUS_PROXY);
}

/* --- tail and pub --- */

static bool open_settings(const struct command *self, struct bus_settings *s,
                          const struct bus_arguments *o, const struct config *c)
{
    struct err err = {0};

    if (bus_settings_init(s, c, o->url, &err) == 0)
        return true;
    cmd_error(self, "%s", err.text);
    return false;
}

static int do_tail(const struct command *self, struct bus_arguments *o, const struct config *c)
{
    struct bus_settings settings;

    o->tail.pattern = o->args.rest_n > 1 ? o->args.rest[1] : "#";
    o->tail.json = o->args.json;
    if (!topic_is_pattern(span_str(o->tail.pattern))) {
        cmd_error(self, "'%s' is not a pattern of topics", o->tail.pattern);
        cmd_hint("segments separated by dots; * is one of them, # any number: tool.result.#");
        return CMD_USAGE;
    }
    if (!open_settings(self, &settings, o, c))
        return CMD_USAGE;
    int code = o->dead ? bus_look_dead(self, &settings, o->args.json)
                       : bus_look_tail(self, &settings, &o->tail);
    bus_settings_fini(&settings);
    return code;
}

/* "-" is the standard input; 16 MiB at most. */
static bool read_body(const struct command *self, struct buf *body, const char *given)
{
    enum { MOST = 16 << 20, CHUNK = 64 << 10 };

    if (strcmp(given, "-") != 0) {
        buf_str(body, given);
        return true;
    }
    while (body->n <= MOST && !feof(stdin) && !ferror(stdin)) {
        char *to = buf_room(body, CHUNK);
        body->n += fread(to, 1, CHUNK, stdin);
    }
    if (body->n > MOST || ferror(stdin))
        cmd_error(self, "the body cannot be read, or has more than 16 MiB");
    return body->n <= MOST && !ferror(stdin);
}

static int do_pub(const struct command *self, struct bus_arguments *o, const struct config *c)
{
    struct bus_settings settings;
    BUF_SCOPED body = {0};
    int code = CMD_USAGE;

    if (o->args.rest_n < 3) {
        cmd_error(self, "a topic and a body must follow 'pub'");
        return CMD_USAGE;
    }
    o->pub.topic = o->args.rest[1];
    o->pub.json = o->args.json;
    if (!topic_is_valid(span_str(o->pub.topic)) ||
        (o->pub.reply_to && !topic_is_valid(span_str(o->pub.reply_to)))) {
        cmd_error(self, "a topic is segments separated by dots, without blanks or wildcards");
        return CMD_USAGE;
    }
    if (!read_body(self, &body, o->args.rest[2]) || !open_settings(self, &settings, o, c))
        return code;
    o->pub.body = buf_view(&body);
    code = bus_look_send(self, &settings, &o->pub);
    bus_settings_fini(&settings);
    return code;
}

/* --- the command --- */

static const struct {
    const char *name;
    int most; /* most words on the command line, the name included */
    int (*run)(const struct command *self, struct bus_arguments *o, const struct config *c);
} acts[] = {
    {"worker", 1, do_worker}, {"proxy", 1, do_proxy}, {"tail", 2, do_tail}, {"pub", 3, do_pub}};

static int add_header(const struct command *self, struct bus_pub *pub, const char *text)
{
    struct span all = span_str(text);
    size_t at = span_find(all, '=');

    if (at == 0 || at == all.n || pub->n_headers == BUS_PUB_HEADERS) {
        cmd_error(self, "--header takes NAME=VALUE, at most %d times", BUS_PUB_HEADERS);
        return CMD_USAGE;
    }
    pub->headers[pub->n_headers++] =
        (struct message_header){span_cut(all, 0, at), span_from(all, at + 1)};
    return 0;
}

static int take_option(const struct command *self, struct bus_arguments *o, int id)
{
    const char *value = o->args.value, *wrong = NULL;
    char *end;

    switch (id) {
    case OPT_URL:
        o->url = value;
        return 0;
    case OPT_COUNT:
        o->tail.most = strtoull(value, &end, 10);
        wrong = !ascii_is_digit(*value) || *end ? "expected a number" : NULL;
        break;
    case OPT_TYPE:
        o->pub.type = value;
        return 0;
    case OPT_HEADER:
        return add_header(self, &o->pub, value);
    case OPT_WAIT:
        wrong = units_read_duration(span_str(value), &o->pub.wait);
        break;
    case OPT_DEAD:
        o->dead = true;
        return 0;
    case OPT_REPLY_TO:
        o->pub.reply_to = value;
        return 0;
    default:
        o->pub.source = value;
        return 0;
    }
    if (wrong)
        cmd_error(self, "'%s': %s", value, wrong);
    return wrong ? CMD_USAGE : 0;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct bus_arguments o = {.args = args_begin(self, argc, argv)};
    int id;

    while ((id = args_next(&o.args)) > 0)
        if (take_option(self, &o, id))
            return CMD_USAGE;
    if (id < 0)
        return o.args.exit_code;
    for (size_t i = 0; i < COUNT_OF(acts) && o.args.rest_n; i++) {
        if (strcmp(o.args.rest[0], acts[i].name) != 0)
            continue;
        if (args_expect(&o.args, acts[i].most))
            return CMD_USAGE;
        struct config *c = args_load_config(&o.args);
        if (!c)
            return CMD_USAGE;
        int code = acts[i].run(self, &o, c);
        config_free(c);
        return code;
    }
    if (o.args.rest_n)
        cmd_error(self, "there is no command 'bus %s'", o.args.rest[0]);
    else
        cmd_error(self, "which bus command?");
    cmd_hint("worker, proxy, tail or pub");
    return CMD_USAGE;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"url", OPT_URL, "URL", "this bus instead of the configuration's"},
    ARGS_OPTION_JSON,
    {"dead", OPT_DEAD, NULL, "tail: the dead letters that the embedded bus keeps"},
    {"count", OPT_COUNT, "N", "tail: leave after so many messages"},
    {"type", OPT_TYPE, "NAME", "pub: the message's type"},
    {"header", OPT_HEADER, "NAME=VALUE", "pub: a header; may be given several times"},
    {"reply-to", OPT_REPLY_TO, "TOPIC", "pub: where the reply is to go"},
    {"source", OPT_SOURCE, "NAME", "pub: who it comes from"},
    {"wait", OPT_WAIT, "TIME", "pub: wait so long for a reply and print it"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_bus = {
    .name = "bus",
    .summary = "Play a part on a message bus, or look at one",
    .usage = "worker | proxy | tail [PATTERN] | pub TOPIC BODY",
    .about = "worker  offers the configured servers to agents on the bus, and nothing else\n"
             "proxy   joins as an agent and speaks MCP on standard input and output: the servers\n"
             "        of bridges elsewhere, and those that are configured, for one host program\n"
             "tail    prints messages as they pass; nobody misses one for that\n"
             "pub     sends one message; BODY is JSON as a rule, - reads it from the input",
    .options = options,
    .run = run,
};
