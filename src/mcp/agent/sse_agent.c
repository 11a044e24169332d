/* Agents by HTTP+SSE: the GET that opens a stream, the POSTs that belong to it, keep-alive and the
 * end. Called by endpoint.c. */
#include "mcp/agent/sse_agent.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "mcp/agent/duplex.h"
#include "wire/sse.h"

/* READER_MAX: bytes that a reader may fall behind; EVENT_KEEP: bytes of a buffer kept for reuse. */
enum { READER_MAX = 16 * 1024 * 1024, KEEP_ALIVE_MS = 15 * 1000, EVENT_KEEP = 4 * 1024 };

struct sse_agents {
    struct loop *loop;
    struct mcp_host host;
    size_t max_agents;
    struct map agents; /* id -> struct sse_agent */
    struct timer keep_alive;
};

struct sse_agent {
    struct sse_agents *all;
    char id[ID_TOKEN_SIZE];
    struct http_exchange *x; /* NULL once the stream was cut */
    struct duplex *duplex;
    struct buf event;    /* the message being written */
    struct deferred end; /* ends an agent that was cut */
};

/* --- messages out --- */

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct sse_agent *a = owner;

    (void)reply, (void)kind;
    buf_str(&a->event, SSE_MESSAGE);
    return &a->event;
}

static void agent_end(struct sse_agent *a, const char *why);

static void end_later(struct deferred *d)
{
    agent_end(CONTAINER_OF(d, struct sse_agent, end), "reader too slow");
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct sse_agent *a = owner;

    (void)reply, (void)kind;
    json_join_lines(&a->event, sizeof SSE_MESSAGE - 1);
    buf_str(&a->event, "\n\n");
    if (a->x)
        http_stream_write(a->x, buf_view(&a->event));
    if (a->x && http_exchange_queued(a->x) > READER_MAX + a->event.n) {
        /* The agent's session is calling us, so it can only be ended later. */
        http_exchange_abort(a->x, "reader too slow");
        a->x = NULL;
        loop_defer(a->all->loop, &a->end, end_later);
    }
    buf_reset(&a->event, EVENT_KEEP);
}

static void out_abandon(void *owner, void *reply)
{
    (void)owner, (void)reply;
}

static void out_hang_up(void *owner)
{
    agent_end(owner, "ended by the operator");
}

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, NULL, "sse", out_hang_up};

/* --- sessions --- */

static void agent_free(struct sse_agent *a)
{
    loop_undefer(&a->end);
    duplex_free(a->duplex);
    if (a->x) {
        http_exchange_on_gone(a->x, NULL, NULL);
        http_stream_end(a->x);
    }
    buf_fini(&a->event);
    mem_free(a);
}

static void agent_end(struct sse_agent *a, const char *why)
{
    log_debug("mcp", "SSE session %.8s ended: %s", a->id, why);
    map_del(&a->all->agents, span_str(a->id));
    agent_free(a);
}

static void on_gone(void *owner)
{
    struct sse_agent *a = owner;

    a->x = NULL;
    agent_end(a, "the agent closed its stream");
}

static void refuse(struct http_exchange *x, int status, struct span id, int code, const char *text)
{
    struct span headers = status == 405 ? SPAN("Allow: GET, POST\r\n") : SPAN_EMPTY;

    rpc_put_error(http_respond_begin(x, status, "application/json", headers), id, code,
                  span_str(text), SPAN_EMPTY);
    http_respond_end(x);
}

static void put_parameter(struct buf *out, const char *name, struct span value)
{
    if (value.n)
        buf_printf(out, "&%s=", name);
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (ascii_is_word(c, "._:-*"))
            buf_char(out, c);
        else
            buf_printf(out, "%%%02X", (unsigned char)c);
    }
}

/* The query says whose tools are meant (a browser session, a view), so the address for POSTs
 * repeats it. */
static void put_selection(struct buf *out, const struct http_request *req)
{
    BUF_SCOPED scratch = {0}, more = {0};
    struct span session = http_query(req->query, "session", &scratch);

    if (!session.n)
        session = http_query(req->query, "sessionId", &scratch);
    put_parameter(out, "session", session);
    put_parameter(out, "view", http_query(req->query, "view", &more));
}

static void handle_get(struct sse_agents *all, struct http_exchange *x,
                       const struct http_request *req)
{
    BUF_SCOPED event = {0};

    if (all->agents.n >= all->max_agents) {
        refuse(x, 503, SPAN_EMPTY, MCP_ERROR_SERVER, "Too many sessions (limits.sessions)");
        return;
    }
    struct sse_agent *a = MEM_NEW(struct sse_agent);
    a->all = all;
    a->x = x;
    id_token(a->id);
    map_put(&all->agents, span_str(a->id), a);
    if (!timer_is_set(&all->keep_alive))
        timer_set(loop_timers(all->loop), &all->keep_alive, KEEP_ALIVE_MS);
    a->duplex = duplex_new(&all->host, &out_ops, a);
    http_exchange_on_gone(x, on_gone, a);
    http_stream_begin(x, 200, "text/event-stream", SPAN(SSE_HEADERS));
    /* With the path and not only "?sessionId=": some clients just append this to the host. */
    buf_str(&event, "event: endpoint\ndata: ");
    buf_span(&event, req->path);
    buf_printf(&event, "?sessionId=%s", a->id);
    put_selection(&event, req);
    buf_str(&event, "\n\n");
    http_stream_write(x, buf_view(&event));
}

/* The agent that a POST names; if there is none the request has been refused. */
static struct sse_agent *agent_of(struct sse_agents *all, struct http_exchange *x,
                                  const struct http_request *req)
{
    BUF_SCOPED scratch = {0};
    struct span id = http_query(req->query, "sessionId", &scratch);
    struct sse_agent *a = id.p ? map_get(&all->agents, id) : NULL;

    if (!id.p)
        refuse(x, 405, SPAN_EMPTY, MCP_ERROR_SERVER,
               "Method not allowed: open the stream with GET and POST to the address it names; "
               "Streamable HTTP is at /mcp");
    else if (!a || !a->x)
        refuse(x, 404, SPAN_EMPTY, MCP_ERROR_TIMEOUT, "Session not found: open a new stream");
    return a && a->x ? a : NULL;
}

static void handle_post(struct sse_agents *all, struct http_exchange *x,
                        const struct http_request *req)
{
    struct mcp_message m;
    struct sse_agent *a = agent_of(all, x, req);

    if (!a)
        return;
    if (!http_body_is(req, "application/json")) {
        refuse(x, 415, SPAN_EMPTY, MCP_ERROR_SERVER,
               "Unsupported Media Type: Content-Type must be application/json");
        return;
    }
    int code = mcp_skim(req->body, &m);
    if (code) {
        mcp_outcome_put_parse_error(http_respond_begin(x, 400, "application/json", SPAN_EMPTY),
                                    code);
        http_respond_end(x);
    } else if (m.rpc.kind == RPC_INVALID) {
        refuse(x, 400, m.rpc.id, RPC_INVALID_REQUEST, m.rpc.why);
    } else {
        duplex_deliver(a->duplex, &m);
        http_respond(x, 202, "text/plain", SPAN_EMPTY, SPAN("Accepted"));
    }
}

void sse_agents_handle(struct sse_agents *all, struct http_exchange *x,
                       const struct http_request *req)
{
    if (span_is(req->method, "GET"))
        handle_get(all, x, req);
    else if (span_is(req->method, "POST"))
        handle_post(all, x, req);
    else
        refuse(x, 405, SPAN_EMPTY, MCP_ERROR_SERVER, "Method not allowed: use GET and POST");
}

/* --- life --- */

/* This also finds clients that vanished: TCP gets no acknowledgement for what is written. */
static void on_keep_alive(struct timer *t)
{
    struct sse_agents *all = CONTAINER_OF(t, struct sse_agents, keep_alive);
    size_t at = 0;
    void *value;

    while (map_next(&all->agents, &at, NULL, &value)) {
        struct sse_agent *a = value;
        if (a->x)
            http_stream_write(a->x, SPAN(SSE_KEEP_ALIVE));
    }
    if (all->agents.n)
        timer_set(loop_timers(all->loop), t, KEEP_ALIVE_MS);
}

struct sse_agents *sse_agents_new(struct loop *loop, const struct mcp_host *host, size_t max_agents)
{
    struct sse_agents *all = MEM_NEW(struct sse_agents);

    all->loop = loop;
    all->host = *host;
    all->max_agents = max_agents;
    all->keep_alive.fire = on_keep_alive;
    return all;
}

void sse_agents_free(struct sse_agents *all)
{
    size_t at = 0;
    void *value;

    timer_clear(loop_timers(all->loop), &all->keep_alive);
    while (map_next(&all->agents, &at, NULL, &value))
        agent_free(value);
    map_fini(&all->agents);
    mem_free(all);
}

size_t sse_agents_count(const struct sse_agents *all)
{
    return all->agents.n;
}
