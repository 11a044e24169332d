/* The command `rialto demo-server`: an MCP server with four tools. Called through the table of
 * commands (cmd/table.c). Without a configuration, hub/graph/bridge.c runs this command as the only
 * server. */
#include "base/list.h"
#include "base/mem.h"
#include "base/sha.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "io/stream.h"
#include "mcp/protocol.h"
#include "wire/lines.h"

#include <stdlib.h>
#include <time.h>

enum { LINE_MAX_BYTES = 4 * 1024 * 1024, COUNTDOWN_MAX = 60 };

struct demo {
    struct loop *loop;
    struct stream *stream;
    struct lines lines;
    struct list countdowns;
};

struct countdown {
    struct demo *demo;
    struct list node;
    struct timer timer;
    char *id, *token; /* raw; token NULL when no progress is wanted */
    int64_t left, total;
};

typedef void tool_fn(struct demo *d, struct span id, struct span arguments, struct span token);

struct demo_tool {
    const char *name;
    const char *json; /* the rest of the tool's entry in the list */
    tool_fn *run;
};

static void send_end(struct demo *d)
{
    buf_char(stream_out(d->stream), '\n');
    stream_wrote(d->stream);
}

static void send_text(struct demo *d, struct span id, struct span text, bool is_error)
{
    struct buf *out = stream_out(d->stream);

    buf_printf(out,
               "{\"jsonrpc\":\"2.0\",\"id\":" SPAN_FMT
               ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":",
               SPAN_ARG(id));
    json_quote(out, text);
    buf_printf(out, "}],\"isError\":%s}}", is_error ? "true" : "false");
    send_end(d);
}

static void send_error(struct demo *d, struct span id, int code, const char *text)
{
    rpc_put_error(stream_out(d->stream), id, code, span_str(text), SPAN_EMPTY);
    send_end(d);
}

/* Unescaped text of a string argument; false when there is none. */
static bool text_argument(struct span arguments, const char *name, struct buf *out)
{
    struct json_slot slot = arguments.n ? json_get(arguments, name) : (struct json_slot){0};

    if (slot.type != JSON_STRING)
        return false;
    json_unescape(out, slot.value);
    return true;
}

/* --- the tools --- */

static void run_time(struct demo *d, struct span id, struct span arguments, struct span token)
{
    BUF_SCOPED zone = {0};
    time_t now = time(NULL);
    struct tm tm;
    char text[80];

    (void)token;
    /* An unknown zone reads as UTC, and the answer says which zone it is in. */
    if (!text_argument(arguments, "zone", &zone))
        buf_str(&zone, "UTC");
    setenv("TZ", buf_cstr(&zone), 1);
    tzset();
    localtime_r(&now, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z (%Z), %A", &tm);
    send_text(d, id, span_str(text), false);
}

static void run_text_stats(struct demo *d, struct span id, struct span arguments, struct span token)
{
    BUF_SCOPED text = {0}, answer = {0};
    size_t characters = 0, words = 0, lines = 0;
    bool in_word = false;

    (void)token;
    if (!text_argument(arguments, "text", &text)) {
        send_text(d, id, SPAN("text_stats needs 'text', a string"), true);
        return;
    }
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        characters += (c & 0xc0) != 0x80; /* not the middle of a UTF-8 sequence */
        words += !blank && !in_word;
        in_word = !blank;
        lines += c == '\n';
    }
    if (text.n && text.p[text.n - 1] != '\n')
        lines++;
    buf_printf(&answer, "%zu characters, %zu bytes, %zu words, %zu lines", characters, text.n,
               words, lines);
    send_text(d, id, buf_view(&answer), false);
}

static void run_hash(struct demo *d, struct span id, struct span arguments, struct span token)
{
    BUF_SCOPED text = {0}, name = {0}, answer = {0};
    unsigned char digest[SHA256_N];

    (void)token;
    if (!text_argument(arguments, "algorithm", &name))
        buf_str(&name, "sha256");
    bool old = span_is(buf_view(&name), "sha1");
    if (!text_argument(arguments, "text", &text)) {
        send_text(d, id, SPAN("hash needs 'text', a string"), true);
    } else if (!old && !span_is(buf_view(&name), "sha256")) {
        send_text(d, id, SPAN("unknown algorithm: use sha256 or sha1"), true);
    } else {
        (old ? sha_1 : sha_256)(digest, buf_view(&text));
        for (size_t i = 0; i < (old ? SHA1_N : SHA256_N); i++)
            buf_printf(&answer, "%02x", digest[i]);
        send_text(d, id, buf_view(&answer), false);
    }
}

static void countdown_free(struct countdown *c)
{
    timer_clear(loop_timers(c->demo->loop), &c->timer);
    list_remove(&c->node);
    mem_free(c->id);
    mem_free(c->token);
    mem_free(c);
}

static void on_second(struct timer *t)
{
    struct countdown *c = CONTAINER_OF(t, struct countdown, timer);
    struct demo *d = c->demo;

    c->left--;
    if (c->token) {
        buf_printf(stream_out(d->stream),
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                   "\"progressToken\":%s,\"progress\":%lld,\"total\":%lld,"
                   "\"message\":\"%lld s to go\"}}",
                   c->token, (long long)(c->total - c->left), (long long)c->total,
                   (long long)c->left);
        send_end(d);
    }
    if (c->left > 0) {
        timer_set(loop_timers(d->loop), &c->timer, 1000);
        return;
    }
    send_text(d, span_str(c->id), SPAN("done"), false);
    countdown_free(c);
}

static void run_countdown(struct demo *d, struct span id, struct span arguments, struct span token)
{
    struct json_slot seconds = json_get(arguments, "seconds");
    int64_t n = 0;

    if (seconds.type != JSON_NUMBER || !json_int(seconds.value, &n) || n < 1 || n > COUNTDOWN_MAX) {
        send_text(d, id, SPAN("countdown needs 'seconds', a whole number from 1 to 60"), true);
        return;
    }
    struct countdown *c = MEM_NEW(struct countdown);
    c->demo = d;
    c->id = mem_span(id);
    c->token = token.n ? mem_span(token) : NULL;
    c->left = c->total = n;
    c->timer.fire = on_second;
    list_append(&d->countdowns, &c->node);
    timer_set(loop_timers(d->loop), &c->timer, 1000);
}

/* clang-format off */
static const struct demo_tool tools[] = {
    {"time",
     "\"description\":\"The current date and time, in UTC or in a time zone\","
     "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"zone\":{\"type\":\"string\","
     "\"description\":\"IANA name, e.g. Europe/Rome\"}}},\"annotations\":{\"readOnlyHint\":true}",
     run_time},
    {"text_stats",
     "\"description\":\"Count the characters, words and lines of a text\","
     "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
     "\"required\":[\"text\"]},\"annotations\":{\"readOnlyHint\":true}",
     run_text_stats},
    {"hash",
     "\"description\":\"Hash a text\","
     "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
     "\"algorithm\":{\"type\":\"string\",\"enum\":[\"sha256\",\"sha1\"],"
     "\"default\":\"sha256\"}},\"required\":[\"text\"]},\"annotations\":{\"readOnlyHint\":true}",
     run_hash},
    {"countdown",
     "\"description\":\"Count down some seconds, reporting progress: something slow to watch\","
     "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"integer\","
     "\"minimum\":1,\"maximum\":60}},\"required\":[\"seconds\"]}",
     run_countdown},
};
/* clang-format on */

/* --- the protocol --- */

static void answer_initialize(struct demo *d, const struct mcp_message *m)
{
    BUF_SCOPED scratch = {0};
    struct span asked = m->slots[SLOT_VERSION].type == JSON_STRING
                            ? json_text(m->slots[SLOT_VERSION].value, &scratch)
                            : SPAN_EMPTY;
    struct span version = mcp_is_legacy_version(asked) ? asked : SPAN(MCP_NEWEST_LEGACY);

    buf_printf(stream_out(d->stream),
               "{\"jsonrpc\":\"2.0\",\"id\":" SPAN_FMT
               ",\"result\":{\"protocolVersion\":\"" SPAN_FMT
               "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"rialto-demo\","
               "\"version\":\"" RIALTO_VERSION "\"}}}",
               SPAN_ARG(m->rpc.id), SPAN_ARG(version));
    send_end(d);
}

static void answer_list(struct demo *d, const struct mcp_message *m)
{
    struct buf *out = stream_out(d->stream);

    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":" SPAN_FMT ",\"result\":{\"tools\":[",
               SPAN_ARG(m->rpc.id));
    for (size_t i = 0; i < COUNT_OF(tools); i++)
        buf_printf(out, "%s{\"name\":\"%s\",%s}", i ? "," : "", tools[i].name, tools[i].json);
    buf_str(out, "]}}");
    send_end(d);
}

static void answer_call(struct demo *d, const struct mcp_message *m)
{
    const struct json_slot *name = &m->slots[SLOT_NAME], *arguments = &m->slots[SLOT_ARGUMENTS];
    const struct json_slot *token = &m->slots[SLOT_META_TOKEN];

    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        if (json_string_is(name->value, span_str(tools[i].name))) {
            tools[i].run(d, m->rpc.id,
                         arguments->type == JSON_OBJECT ? arguments->value : SPAN("{}"),
                         token->type == JSON_NONE ? SPAN_EMPTY : token->value);
            return;
        }
    }
    send_error(d, m->rpc.id, RPC_INVALID_PARAMS, "Unknown tool");
}

static void answer_ping(struct demo *d, const struct mcp_message *m)
{
    rpc_put_result(stream_out(d->stream), m->rpc.id, SPAN("{}"));
    send_end(d);
}

static void cancel_countdown(struct demo *d, struct span id)
{
    LIST_EACH_SAFE (&d->countdowns, it) {
        struct countdown *c = LIST_ENTRY(it, struct countdown, node);
        if (span_is(id, c->id))
            countdown_free(c);
    }
}

static void receive(struct demo *d, const struct mcp_message *m)
{
    static const struct {
        const char *method;
        void (*answer)(struct demo *d, const struct mcp_message *m);
    } rows[] = {
        {"initialize", answer_initialize},
        {"ping", answer_ping},
        {"tools/list", answer_list},
        {"tools/call", answer_call},
    };

    if (m->rpc.kind == RPC_NOTIFICATION && rpc_method_is(&m->rpc, "notifications/cancelled"))
        cancel_countdown(d, m->slots[SLOT_REQUEST_ID].value);
    if (m->rpc.kind != RPC_REQUEST)
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rpc_method_is(&m->rpc, rows[i].method)) {
            rows[i].answer(d, m);
            return;
        }
    }
    send_error(d, m->rpc.id, RPC_METHOD_NOT_FOUND, "Method not found");
}

static void on_line(void *owner, struct span line)
{
    struct demo *d = owner;
    struct mcp_message m;

    if (mcp_skim(line, &m))
        send_error(d, SPAN_EMPTY, RPC_PARSE_ERROR, "Parse error");
    else
        receive(d, &m);
}

static void on_too_long(void *owner, struct span head)
{
    (void)head;
    send_error(owner, SPAN_EMPTY, RPC_INVALID_REQUEST, "Message too long");
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct demo *d = owner;

    lines_feed(&d->lines, chunk, &line_events, d);
}

static void on_closed(void *owner, const char *reason)
{
    struct demo *d = owner;

    (void)reason;
    LIST_EACH_SAFE (&d->countdowns, it)
        countdown_free(LIST_ENTRY(it, struct countdown, node));
    loop_stop(d->loop);
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_closed};

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct demo d = {0};

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    d.loop = loop_new();
    list_init(&d.countdowns);
    lines_init(&d.lines, LINE_MAX_BYTES);
    d.stream = stream_stdio(d.loop);
    stream_start(d.stream, &stream_events, &d);
    loop_run(d.loop);
    lines_fini(&d.lines);
    loop_free(d.loop);
    return CMD_FINE;
}

static const struct cmd_option options[] = {{NULL}};

const struct command command_demo_server = {
    .name = "demo-server",
    .summary = "Be a small MCP server on standard input and output",
    .usage = "",
    .about = "Offers time, text_stats, hash and countdown. `rialto serve` without a configuration\n"
             "runs it as its only server.",
    .options = options,
    .run = run,
};
