/* Gives each message of an agent on one pipe, or of a batch, to a session, a modern agent or a
 * passage; holds greetings back. Called by stdio_agent.c, ws_agent.c and sse_agent.c. */
#include "mcp/agent/duplex.h"

#include "base/mem.h"
#include "mcp/agent/modern.h"
#include "mcp/agent/passage.h"
#include "wire/json_out.h"

enum { MAX_HELD = 1024 * 1024 };

struct duplex {
    struct mcp_host host;
    const struct mcp_out *out;
    void *owner;
    struct passage *passage; /* instead of `session` and `modern`, if the host is plain */
    struct mcp_session *session;
    struct modern_agent *modern; /* NULL until a request of the stateless era comes */
    bool holding;                /* the greeting and the messages after it are held back */
    struct buf held;             /* the messages that wait, a line each */
    size_t n_held;
};

static struct buf *begin(struct duplex *d)
{
    return d->out->begin(d->owner, NULL, MCP_OUT_UNRELATED);
}

static void end(struct duplex *d)
{
    d->out->end(d->owner, NULL, MCP_OUT_UNRELATED);
}

void duplex_complain(struct duplex *d, struct span id, int code, const char *text)
{
    rpc_put_error(begin(d), id, code, span_str(text), SPAN_EMPTY);
    end(d);
}

/* An agent that speaks the stateless era needs no session. */
static void receive_modern(struct duplex *d, const struct mcp_message *m)
{
    struct modern_fault fault;
    BUF_SCOPED scratch = {0};

    if (!d->modern)
        d->modern = modern_agent_new(&d->host, d->out, d->owner);
    if (m->rpc.kind != RPC_REQUEST || modern_check(m, &fault, &scratch)) {
        modern_agent_receive(d->modern, m, NULL, SPAN_EMPTY);
    } else {
        modern_put_fault(begin(d), m->rpc.id, &fault);
        end(d);
    }
}

/* Revision 2025-03-26 allows batches; their answers may be sent one by one. */
static void receive_batch(struct duplex *d, const struct rpc_message *batch)
{
    struct json_iter it = json_iter(batch->text);
    BUF_SCOPED why = {0};

    if (!rpc_batch_fits(batch, d->host.max_batch, &why)) {
        duplex_complain(d, SPAN_EMPTY, RPC_INVALID_REQUEST, buf_cstr(&why));
        return;
    }
    while (json_next(&it)) {
        if (it.type == JSON_ARRAY)
            duplex_complain(d, SPAN_EMPTY, RPC_INVALID_REQUEST, "a batch inside a batch");
        else
            duplex_receive(d, it.value);
    }
}

/* Is this the first request of an agent, in either era? */
static bool is_greeting(const struct mcp_message *m)
{
    return m->rpc.kind == RPC_REQUEST &&
           (rpc_method_is(&m->rpc, "initialize") || rpc_method_is(&m->rpc, "server/discover"));
}

static void hold(struct duplex *d, const struct mcp_message *m)
{
    json_one_line(&d->held, m->rpc.text);
    buf_char(&d->held, '\n');
    d->n_held++;
    if (d->held.n > MAX_HELD)
        duplex_release(d);
}

void duplex_deliver(struct duplex *d, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_INVALID)
        duplex_complain(d, m->rpc.id, RPC_INVALID_REQUEST, m->rpc.why);
    else if (m->rpc.kind == RPC_NOTIFICATION && d->host.told && d->host.told(d->host.arg, m))
        return;
    else if (d->holding && (d->n_held || is_greeting(m)))
        hold(d, m); /* later messages must not overtake the greeting */
    else if (m->rpc.kind == RPC_BATCH)
        receive_batch(d, &m->rpc);
    else if (d->passage)
        passage_receive(d->passage, m);
    else if (modern_claims(m))
        receive_modern(d, m);
    else if (m->rpc.kind == RPC_NOTIFICATION && d->modern && !mcp_session_ready(d->session))
        modern_agent_receive(d->modern, m, NULL, SPAN_EMPTY);
    else
        mcp_session_receive(d->session, m, NULL);
}

void duplex_receive(struct duplex *d, struct span text)
{
    struct mcp_message m;
    int code = mcp_skim(text, &m);

    if (code) {
        mcp_outcome_put_parse_error(begin(d), code);
        end(d);
    } else {
        duplex_deliver(d, &m);
    }
}

size_t duplex_pending(const struct duplex *d)
{
    if (d->passage)
        return d->n_held + passage_pending(d->passage);
    return d->n_held + mcp_session_pending(d->session) +
           (d->modern ? modern_agent_pending(d->modern) : 0);
}

void duplex_show(struct duplex *d, struct view *view)
{
    d->host.view = view;
}

bool duplex_is_busy(const struct duplex *d)
{
    if (d->passage)
        return true;
    return mcp_session_pending(d->session) || (d->modern && modern_agent_calls(d->modern));
}

void duplex_export(const struct duplex *d, struct buf *out, struct buf *lines)
{
    if (mcp_session_ready(d->session)) {
        json_out_open(out, "session", '{');
        mcp_session_export(d->session, out);
        buf_char(out, '}');
    }
    if (d->modern)
        modern_agent_put_listens(d->modern, lines);
    buf_span(lines, buf_view(&d->held));
}

void duplex_show_parked(const struct duplex *d, modern_parked_fn *show, void *arg)
{
    if (d->modern)
        modern_agent_show_parked(d->modern, show, arg);
}

void duplex_import(struct duplex *d, struct span state)
{
    struct json_slot session = json_get(state, "session");

    if (session.type == JSON_OBJECT)
        mcp_session_import(d->session, session.value);
}

bool duplex_is_holding(const struct duplex *d)
{
    return d->holding && d->n_held;
}

void duplex_hold_greeting(struct duplex *d)
{
    d->holding = true;
}

void duplex_release(struct duplex *d)
{
    BUF_SCOPED held = d->held;

    d->holding = false;
    d->held = (struct buf){0};
    for (struct span rest = buf_view(&held); rest.n;) {
        size_t line = span_find(rest, '\n');
        duplex_receive(d, span_cut(rest, 0, line));
        d->n_held--;
        rest = span_from(rest, line + 1);
    }
}

struct duplex *duplex_new(const struct mcp_host *host, const struct mcp_out *out, void *owner)
{
    struct duplex *d = MEM_NEW(struct duplex);

    d->host = *host;
    d->out = out;
    d->owner = owner;
    if (host->plain)
        d->passage = passage_new(host, out, owner);
    else
        d->session = mcp_session_new(host, out, owner);
    return d;
}

void duplex_free(struct duplex *d)
{
    if (d->passage)
        passage_free(d->passage);
    if (d->session)
        mcp_session_free(d->session);
    if (d->modern)
        modern_agent_free(d->modern);
    buf_fini(&d->held);
    mem_free(d);
}
