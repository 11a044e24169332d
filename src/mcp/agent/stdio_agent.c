/* One agent on a stream of lines: lines in and out, EOF with answers still open, closing. Called by
 * cmd/stdio.c, cmd/browser.c, cmd/bus.c, cmd/conductor.c, hub/conductor_join.c, hub/greeting.c and
 * hub/shims.c. */
#include "mcp/agent/stdio_agent.h"

#include "base/mem.h"
#include "mcp/agent/duplex.h"
#include "wire/lines.h"

/* After EOF: how long calls may take, how long a held greeting, and how long writing the rest. */
enum { DRAIN_MS = 1500, HELD_MS = 5000, FLUSH_MS = 1000 };

struct stdio_agent {
    struct loop *loop;
    struct stream *stream;
    struct lines lines;
    struct duplex *duplex;
    size_t max_message;
    bool at_eof;
    const char *leaving; /* why the agent is closed with its last answer; or NULL */
    bool detained;       /* see stdio_agent_detain */
    size_t begun;        /* where the message being written begins */
    struct buf kept;     /* the lines for the other daemon */
    struct timer drain;
    void (*closed)(void *arg);
    void *arg;
};

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct stdio_agent *a = owner;

    (void)reply, (void)kind;
    a->begun = stream_out(a->stream)->n;
    return stream_out(a->stream);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct stdio_agent *a = owner;

    (void)reply, (void)kind;
    json_join_lines(stream_out(a->stream), a->begun);
    buf_char(stream_out(a->stream), '\n');
    stream_wrote(a->stream);
    /* duplex_pending still counts the request that is answered here. */
    if ((a->at_eof || a->leaving) && kind == MCP_OUT_FINAL && duplex_pending(a->duplex) <= 1)
        timer_set(loop_timers(a->loop), &a->drain, 0);
}

static void out_abandon(void *owner, void *reply)
{
    (void)owner, (void)reply;
}

static void out_hang_up(void *owner)
{
    stdio_agent_close(owner, "ended by the operator");
}

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, NULL, "stdio", out_hang_up};

/* A line that comes while another daemon takes over. An answer is for a call that is open here; a
 * cancellation may be for such a call or for a kept request; all else is kept for the other
 * daemon. */
static void sort_line(struct stdio_agent *a, struct span line)
{
    struct mcp_message m;
    bool fine = mcp_skim(line, &m) == 0;
    bool answer = fine && (m.rpc.kind == RPC_RESULT || m.rpc.kind == RPC_ERROR);
    bool cancels =
        fine && m.rpc.kind == RPC_NOTIFICATION && rpc_method_is(&m.rpc, "notifications/cancelled");

    if (!answer) {
        buf_span(&a->kept, line);
        buf_char(&a->kept, '\n');
    }
    if (answer || cancels)
        duplex_deliver(a->duplex, &m);
    if (a->kept.n > STREAM_HIGH_WATER)
        stream_pause(a->stream);
}

static void on_line(void *owner, struct span line)
{
    struct stdio_agent *a = owner;

    if (a->detained)
        sort_line(a, line);
    else
        duplex_receive(a->duplex, line);
}

static void on_too_long(void *owner, struct span head)
{
    struct stdio_agent *a = owner;
    BUF_SCOPED text = {0};

    (void)head;
    buf_printf(&text, "Message of more than %zu bytes (limits.message)", a->max_message);
    duplex_complain(a->duplex, SPAN_EMPTY, RPC_INVALID_REQUEST, buf_cstr(&text));
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct stdio_agent *a = owner;

    lines_feed(&a->lines, chunk, &line_events, a);
}

/* Close when all is answered, but after `patience` ms at the latest. */
static void drain(struct stdio_agent *a, uint64_t patience)
{
    timer_set(loop_timers(a->loop), &a->drain, duplex_pending(a->duplex) ? patience : 0);
}

static void on_eof(void *owner)
{
    struct stdio_agent *a = owner;

    lines_end(&a->lines, &line_events, a);
    a->at_eof = true;
    drain(a, duplex_is_holding(a->duplex) ? HELD_MS : DRAIN_MS);
}

static void on_drained(struct timer *t)
{
    struct stdio_agent *a = CONTAINER_OF(t, struct stdio_agent, drain);

    if (a->leaving && !a->at_eof && duplex_pending(a->duplex))
        return; /* a new request came meanwhile */
    stdio_agent_close(a, a->leaving ? a->leaving : "the agent closed its end");
}

static void on_closed(void *owner, const char *reason)
{
    struct stdio_agent *a = owner;

    (void)reason;
    a->at_eof = false;
    a->leaving = NULL; /* the answers of calls that end now are not waited for */
    timer_clear(loop_timers(a->loop), &a->drain);
    lines_fini(&a->lines);
    buf_fini(&a->kept);
    duplex_free(a->duplex);
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
    a->max_message = max_message;
    a->drain.fire = on_drained;
    a->closed = closed;
    a->arg = arg;
    lines_init(&a->lines, max_message);
    a->duplex = duplex_new(host, &out_ops, a);
    stream_start(stream, &stream_events, a);
    return a;
}

void stdio_agent_hold_greeting(struct stdio_agent *a)
{
    duplex_hold_greeting(a->duplex);
}

void stdio_agent_release(struct stdio_agent *a)
{
    duplex_release(a->duplex);
    if (a->at_eof)
        drain(a, DRAIN_MS);
}

void stdio_agent_show(struct stdio_agent *a, struct view *view)
{
    duplex_show(a->duplex, view);
}

void stdio_agent_feed(struct stdio_agent *a, struct span early, bool at_eof)
{
    on_data(a, early);
    if (at_eof)
        on_eof(a);
}

void stdio_agent_detain(struct stdio_agent *a)
{
    a->detained = true;
}

int stdio_agent_hand_over(struct stdio_agent *a, struct buf *state, struct buf *early)
{
    if (a->at_eof || a->lines.skipping || duplex_is_busy(a->duplex) || stream_queued(a->stream))
        return -1;
    int fd = stream_descriptor(a->stream);
    if (fd < 0)
        return -1;
    duplex_export(a->duplex, state, early);
    buf_span(early, buf_view(&a->kept));
    buf_span(early, buf_view(&a->lines.tail));
    return fd;
}

void stdio_agent_show_parked(const struct stdio_agent *a, modern_parked_fn *show, void *arg)
{
    duplex_show_parked(a->duplex, show, arg);
}

void stdio_agent_left(struct stdio_agent *a)
{
    stream_close(a->stream, "another daemon goes on with it");
}

void stdio_agent_import(struct stdio_agent *a, struct span state)
{
    duplex_import(a->duplex, state);
}

size_t stdio_agent_pending(const struct stdio_agent *a)
{
    return duplex_pending(a->duplex);
}

void stdio_agent_leave(struct stdio_agent *a, const char *reason)
{
    a->leaving = reason;
    if (!duplex_pending(a->duplex))
        timer_set(loop_timers(a->loop), &a->drain, 0);
}

void stdio_agent_close(struct stdio_agent *a, const char *reason)
{
    lines_stop(&a->lines);
    stream_finish(a->stream, reason, FLUSH_MS);
}
