#include "mcp/stdio_agent.h"

#include "base/mem.h"
#include "mcp/modern.h"
#include "wire/lines.h"

/* How long answers may still take once the agent has closed its end. */
enum { DRAIN_MS = 5000, FLUSH_MS = 1000 };

struct stdio_agent {
    struct loop *loop;
    struct stream *stream;
    struct lines lines;
    struct mcp_host host;
    struct mcp_session *session;
    struct modern_agent *modern; /* NULL until a request of that era comes */
    size_t max_message;
    bool at_eof;
    struct timer drain;
    void (*closed)(void *arg);
    void *arg;
};

static size_t pending(const struct stdio_agent *a)
{
    return mcp_session_pending(a->session) + (a->modern ? modern_agent_pending(a->modern) : 0);
}

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct stdio_agent *a = owner;

    (void)reply, (void)kind;
    return stream_out(a->stream);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct stdio_agent *a = owner;

    (void)reply, (void)kind;
    buf_char(stream_out(a->stream), '\n');
    stream_wrote(a->stream);
    /* The pending entry of a final answer is still counted at this moment. */
    if (a->at_eof && kind == MCP_OUT_FINAL && pending(a) <= 1)
        timer_set(loop_timers(a->loop), &a->drain, 0);
}

static void out_abandon(void *owner, void *reply)
{
    (void)owner, (void)reply;
}

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, NULL};

static void put_error_line(struct stdio_agent *a, struct span id, int code, const char *text)
{
    rpc_put_error(stream_out(a->stream), id, code, span_str(text), SPAN_EMPTY);
    out_end(a, NULL, MCP_OUT_UNRELATED);
}

/* Each request says of which era it is; an agent that speaks the stateless one needs no session. */
static void receive_modern(struct stdio_agent *a, const struct mcp_message *m)
{
    struct modern_fault fault;
    struct buf scratch = {0};

    if (!a->modern)
        a->modern = modern_agent_new(&a->host, &out_ops, a);
    if (m->rpc.kind != RPC_REQUEST || modern_check(m, &fault, &scratch)) {
        modern_agent_receive(a->modern, m, NULL, SPAN_EMPTY);
    } else {
        modern_put_fault(stream_out(a->stream), m->rpc.id, &fault);
        out_end(a, NULL, MCP_OUT_UNRELATED);
    }
    buf_fini(&scratch);
}

static void receive(struct stdio_agent *a, struct span text)
{
    struct mcp_message m;
    int code = mcp_skim(text, &m);

    if (code) {
        mcp_put_parse_error(stream_out(a->stream), code);
        out_end(a, NULL, MCP_OUT_UNRELATED);
    } else if (m.rpc.kind == RPC_INVALID) {
        put_error_line(a, m.rpc.id, RPC_INVALID_REQUEST, m.rpc.why);
    } else if (m.rpc.kind == RPC_BATCH) {
        /* 2025-03-26 allows them; each answer then stands on its own line, which it allows too. */
        struct json_iter it = json_iter(m.rpc.text);
        while (json_next(&it)) {
            if (it.type == JSON_ARRAY)
                put_error_line(a, SPAN_EMPTY, RPC_INVALID_REQUEST, "a batch inside a batch");
            else
                receive(a, it.value);
        }
    } else if (modern_claims(&m)) {
        receive_modern(a, &m);
    } else if (m.rpc.kind == RPC_NOTIFICATION && a->modern && !mcp_session_ready(a->session)) {
        modern_agent_receive(a->modern, &m, NULL, SPAN_EMPTY);
    } else {
        mcp_session_receive(a->session, &m, NULL);
    }
}

static void on_line(void *owner, struct span line)
{
    receive(owner, line);
}

static void on_too_long(void *owner, struct span head)
{
    struct stdio_agent *a = owner;
    struct buf text = {0};

    (void)head;
    buf_printf(&text, "Message of more than %zu bytes (limits.message)", a->max_message);
    put_error_line(a, SPAN_EMPTY, RPC_INVALID_REQUEST, buf_cstr(&text));
    buf_fini(&text);
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct stdio_agent *a = owner;

    lines_feed(&a->lines, chunk, &line_events, a);
}

static void on_eof(void *owner)
{
    struct stdio_agent *a = owner;

    lines_end(&a->lines, &line_events, a);
    a->at_eof = true;
    timer_set(loop_timers(a->loop), &a->drain, pending(a) ? DRAIN_MS : 0);
}

static void on_drained(struct timer *t)
{
    struct stdio_agent *a = CONTAINER_OF(t, struct stdio_agent, drain);

    stdio_agent_close(a, "the agent closed its end");
}

static void on_closed(void *owner, const char *reason)
{
    struct stdio_agent *a = owner;

    (void)reason;
    timer_clear(loop_timers(a->loop), &a->drain);
    lines_fini(&a->lines);
    mcp_session_free(a->session);
    if (a->modern)
        modern_agent_free(a->modern);
    a->closed(a->arg);
    mem_free(a);
}

static const struct stream_events stream_events = {
    .data = on_data, .eof = on_eof, .closed = on_closed};

struct stdio_agent *stdio_agent_new(struct loop *loop, struct stream *stream,
                                    const struct mcp_host *host, size_t max_message,
                                    void (*closed)(void *arg), void *arg)
{
    struct stdio_agent *a = MEM_NEW(struct stdio_agent);

    a->loop = loop;
    a->stream = stream;
    a->host = *host;
    a->max_message = max_message;
    a->drain.fire = on_drained;
    a->closed = closed;
    a->arg = arg;
    lines_init(&a->lines, max_message);
    a->session = mcp_session_new(host, &out_ops, a);
    stream_start(stream, &stream_events, a);
    return a;
}

void stdio_agent_close(struct stdio_agent *a, const char *reason)
{
    lines_stop(&a->lines);
    stream_finish(a->stream, reason, FLUSH_MS);
}
