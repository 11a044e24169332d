/* POST, GET and DELETE of Streamable HTTP: checks of headers, which era, which session, batches,
 * idle sessions. Called by endpoint.c and hub/conductor_http.c. */
#include "mcp/agent/http_agent.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/agent/http_session.h"
#include "mcp/agent/modern_http.h"

enum { JANITOR_MS = 15 * 1000 };

struct http_agent {
    struct loop *loop;
    struct mcp_host host;
    struct http_agent_options options;
    struct map sessions; /* id -> struct http_session */
    struct list idle;    /* the sessions without open calls and streams */
    struct modern_http *modern;
    struct timer janitor; /* set while there are sessions or open answers */
};

/* --- refusals --- */

static void refuse(struct http_exchange *x, int status, struct span headers, struct span id,
                   int code, const char *text)
{
    rpc_put_error(http_respond_begin(x, status, "application/json", headers), id, code,
                  span_str(text), SPAN_EMPTY);
    http_respond_end(x);
}

static void refuse_plain(struct http_exchange *x, int status, int code, const char *text)
{
    refuse(x, status, SPAN_EMPTY, SPAN_EMPTY, code, text);
}

static bool version_is_fine(const struct http_request *req)
{
    struct span version = http_header(req, "mcp-protocol-version");

    return !version.p || mcp_is_legacy_version(version);
}

/* --- sessions --- */

static void on_hang_up(void *arg, struct http_session *hs);

static struct http_session *add_session(struct http_agent *e, const char *id)
{
    struct http_session *hs = http_session_new(e->loop, &e->host, id, &e->idle);

    http_session_on_hang_up(hs, on_hang_up, e);
    map_put(&e->sessions, span_str(id), hs);
    return hs;
}

/* Take over a session that began in the daemon before us; NULL: there is none with this id. */
static struct http_session *recall_session(struct http_agent *e, struct span id)
{
    BUF_SCOPED state = {0}, name = {0};
    const struct http_agent_options *o = &e->options;

    if (!o->inherited || !inherited_take(o->inherited, o->home, id, &state))
        return NULL;
    buf_span(&name, id);
    struct http_session *hs = add_session(e, buf_cstr(&name));
    http_session_import(hs, buf_view(&state));
    return hs;
}

/* The session a request names; if there is none the request has been refused. */
static struct http_session *session_of(struct http_agent *e, struct http_exchange *x,
                                       const struct http_request *req)
{
    struct span id = http_header(req, "mcp-session-id");

    if (!id.p) {
        refuse_plain(x, 400, MCP_ERROR_SERVER,
                     "Bad Request: Mcp-Session-Id header is required (send initialize first)");
        return NULL;
    }
    struct http_session *hs = map_get(&e->sessions, id);
    if (!hs)
        hs = recall_session(e, id);
    if (!hs) {
        refuse_plain(x, 404, MCP_ERROR_TIMEOUT, "Session not found: send initialize again");
        return NULL;
    }
    if (!version_is_fine(req)) {
        refuse_plain(x, 400, MCP_ERROR_SERVER,
                     "Bad Request: Unsupported protocol version in MCP-Protocol-Version");
        return NULL;
    }
    http_session_touch(hs);
    return hs;
}

static void end_session(struct http_agent *e, struct http_session *hs, const char *why)
{
    log_debug("mcp", "session %.8s ended: %s", http_session_id(hs), why);
    map_del(&e->sessions, span_str(http_session_id(hs)));
    http_session_free(hs);
}

static void on_hang_up(void *arg, struct http_session *hs)
{
    end_session(arg, hs, "ended by the operator");
}

static struct http_session *open_session(struct http_agent *e, struct http_exchange *x)
{
    struct http_session *oldest = http_session_oldest(&e->idle);
    char id[ID_TOKEN_SIZE];

    /* Clients that leave without a DELETE must not keep others out until their sessions expire. */
    if (e->sessions.n >= e->options.max_sessions && oldest)
        end_session(e, oldest, "another client needs its place");
    if (e->sessions.n >= e->options.max_sessions) {
        refuse_plain(x, 503, MCP_ERROR_SERVER, "Too many sessions (limits.sessions)");
        return NULL;
    }
    id_token(id);
    return add_session(e, id);
}

/* --- methods --- */

/* An answer or a cancellation may be for a call that the daemon before us still has. */
static void pass_stray(const struct http_agent *e, struct http_session *hs,
                       const struct mcp_message *m)
{
    const struct mcp_session *mcp = http_session_mcp(hs);

    if (e->options.inherited && m->rpc.kind != RPC_REQUEST && mcp_session_is_stray(mcp, m))
        inherited_stray(e->options.inherited, mcp_session_number(mcp), m->rpc.text);
}

/* Deliver each message of a batch; a batch with anything invalid was refused before. */
static void deliver_batch(const struct http_agent *e, struct http_session *hs, struct span batch,
                          struct post *post)
{
    struct json_iter it = json_iter(batch);
    struct mcp_message one;

    while (json_next(&it)) {
        if (mcp_skim(it.value, &one))
            continue;
        pass_stray(e, hs, &one);
        if (one.rpc.kind == RPC_REQUEST && http_session_post_is_full(post))
            http_session_post_refuse(post, one.rpc.id);
        else
            mcp_session_receive(http_session_mcp(hs), &one, post);
    }
}

/* The number of requests in a body; -1 if the body is no valid message, or a batch that has an
 * invalid message, an initialize or a request of the stateless era. */
static int count_requests(const struct mcp_message *m)
{
    struct json_iter it;
    struct mcp_message one;
    int n = 0;

    if (m->rpc.kind != RPC_BATCH)
        return m->rpc.kind == RPC_INVALID ? -1 : m->rpc.kind == RPC_REQUEST;
    it = json_iter(m->rpc.text);
    while (json_next(&it)) {
        if (mcp_skim(it.value, &one) || one.rpc.kind == RPC_INVALID || one.rpc.kind == RPC_BATCH ||
            modern_claims(&one) || rpc_method_is(&one.rpc, "initialize"))
            return -1;
        n += one.rpc.kind == RPC_REQUEST;
    }
    return n;
}

/* False: the batch has too many messages, and has been refused. */
static bool batch_fits(const struct http_agent *e, struct http_exchange *x,
                       const struct mcp_message *m)
{
    BUF_SCOPED why = {0};
    bool fits = m->rpc.kind != RPC_BATCH || rpc_batch_fits(&m->rpc, e->host.max_batch, &why);

    if (!fits)
        refuse_plain(x, 400, RPC_INVALID_REQUEST, buf_cstr(&why));
    return fits;
}

static void handle_post(struct http_agent *e, struct http_exchange *x,
                        const struct http_request *req)
{
    struct mcp_message m;

    if (!http_body_is(req, "application/json")) {
        refuse_plain(x, 415, MCP_ERROR_SERVER,
                     "Unsupported Media Type: Content-Type must be application/json");
        return;
    }
    int code = mcp_skim(req->body, &m);
    if (code) {
        mcp_outcome_put_parse_error(http_respond_begin(x, 400, "application/json", SPAN_EMPTY),
                                    code);
        http_respond_end(x);
        return;
    }
    if (modern_http_claims(&m, req) && m.rpc.kind != RPC_INVALID) {
        modern_http_handle(e->modern, x, req, &m);
        return;
    }
    if (e->host.redacts) {
        refuse_plain(x, 400, MCP_ERROR_SERVER,
                     "Bad Request: only requests of the stateless era are answered here: send "
                     "MCP-Protocol-Version: " MCP_MODERN);
        return;
    }
    if (!http_accepts(req, "application/json") || !http_accepts(req, "text/event-stream")) {
        refuse_plain(x, 406, MCP_ERROR_SERVER,
                     "Not Acceptable: send Accept: application/json, text/event-stream (both by "
                     "name, without wildcards)");
        return;
    }
    if (!batch_fits(e, x, &m))
        return;
    int requests = count_requests(&m);
    if (requests < 0) {
        refuse(x, 400, SPAN_EMPTY, m.rpc.id, RPC_INVALID_REQUEST,
               m.rpc.why ? m.rpc.why : "Invalid Request: the batch holds no valid messages");
        return;
    }
    bool hello = m.rpc.kind == RPC_REQUEST && rpc_method_is(&m.rpc, "initialize");
    struct http_session *hs =
        hello && !http_header(req, "mcp-session-id").p ? open_session(e, x) : session_of(e, x, req);
    if (!hs)
        return;
    bool batch = m.rpc.kind == RPC_BATCH;
    struct post *post = requests ? http_session_post(hs, x, hello, batch, (size_t)requests) : NULL;
    if (batch) {
        deliver_batch(e, hs, m.rpc.text, post);
    } else {
        pass_stray(e, hs, &m);
        mcp_session_receive(http_session_mcp(hs), &m, post);
    }
    if (!post)
        http_respond(x, 202, NULL, SPAN_EMPTY, SPAN_EMPTY);
    if (hello && !mcp_session_ready(http_session_mcp(hs)))
        end_session(e, hs, "initialize failed");
}

static void handle_get(struct http_agent *e, struct http_exchange *x,
                       const struct http_request *req)
{
    if (!http_accepts(req, "text/event-stream")) {
        refuse_plain(x, 406, MCP_ERROR_SERVER,
                     "Not Acceptable: GET needs Accept: text/event-stream");
        return;
    }
    struct http_session *hs = session_of(e, x, req);
    struct span last_id = http_header(req, "last-event-id");
    if (hs && !last_id.n)
        http_session_listen(hs, x);
    else if (hs && !http_session_resume(hs, x, last_id))
        refuse_plain(x, 400, MCP_ERROR_SERVER,
                     "Bad Request: Last-Event-ID is not of this session; leave it out to listen");
}

static void handle_delete(struct http_agent *e, struct http_exchange *x,
                          const struct http_request *req)
{
    struct http_session *hs = session_of(e, x, req);

    if (!hs)
        return;
    end_session(e, hs, "deleted by the agent");
    http_respond(x, 200, NULL, SPAN_EMPTY, SPAN_EMPTY);
}

void http_agent_handle(struct http_agent *e, struct http_exchange *x,
                       const struct http_request *req)
{
    static const struct {
        const char *method;
        void (*handle)(struct http_agent *, struct http_exchange *, const struct http_request *);
    } rows[] = {{"POST", handle_post}, {"GET", handle_get}, {"DELETE", handle_delete}};

    if (!timer_is_set(&e->janitor))
        timer_set(loop_timers(e->loop), &e->janitor, JANITOR_MS);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (span_is(req->method, rows[i].method)) {
            rows[i].handle(e, x, req);
            return;
        }
    }
    refuse(x, 405, SPAN("Allow: GET, POST, DELETE\r\n"), SPAN_EMPTY, MCP_ERROR_SERVER,
           "Method not allowed: use POST, GET or DELETE");
}

/* --- life --- */

/* Periodically: send keep-alive comments and end sessions that are idle for too long. */
static void on_janitor(struct timer *t)
{
    struct http_agent *e = CONTAINER_OF(t, struct http_agent, janitor);
    struct http_session *expired = NULL;
    void *value;

    do {
        size_t at = 0;
        expired = NULL;
        while (!expired && map_next(&e->sessions, &at, NULL, &value))
            if (http_session_idle(value) > e->options.session_ttl)
                expired = value;
        if (expired)
            end_session(e, expired, "idle for too long");
    } while (expired);

    size_t at = 0;
    while (map_next(&e->sessions, &at, NULL, &value))
        http_session_keep_alive(value);
    modern_http_keep_alive(e->modern);
    if (http_agent_in_use(e))
        timer_set(loop_timers(e->loop), &e->janitor, JANITOR_MS);
}

struct http_agent *http_agent_new(struct loop *loop, const struct mcp_host *host,
                                  const struct http_agent_options *options)
{
    struct http_agent *e = MEM_NEW(struct http_agent);

    e->loop = loop;
    e->host = *host;
    e->options = *options;
    list_init(&e->idle);
    e->modern = modern_http_new(host);
    e->janitor.fire = on_janitor;
    return e;
}

void http_agent_free(struct http_agent *e)
{
    size_t at = 0;
    void *hs;

    timer_clear(loop_timers(e->loop), &e->janitor);
    while (map_next(&e->sessions, &at, NULL, &hs))
        http_session_free(hs);
    map_fini(&e->sessions);
    modern_http_free(e->modern);
    mem_free(e);
}

size_t http_agent_sessions(const struct http_agent *e)
{
    return e->sessions.n;
}

bool http_agent_in_use(const struct http_agent *e)
{
    return e->sessions.n || modern_http_waits(e->modern);
}

/* --- another daemon takes over --- */

void http_agent_show(const struct http_agent *e, inherited_show_fn *show, void *arg)
{
    size_t at = 0;
    struct span id;
    void *hs;

    while (e->options.home && map_next(&e->sessions, &at, &id, &hs)) {
        BUF_SCOPED state = {0};
        uint64_t idle = http_session_idle(hs);
        if (idle < e->options.session_ttl && http_session_export(hs, &state))
            show(arg, span_str(e->options.home), id, buf_view(&state),
                 e->options.session_ttl - idle);
    }
}

void http_agent_show_parked(struct http_agent *e, modern_parked_fn *show, void *arg)
{
    modern_agent_show_parked(modern_http_agent(e->modern), show, arg);
}

void http_agent_end_streams(struct http_agent *e)
{
    size_t at = 0;
    void *hs;

    while (map_next(&e->sessions, &at, NULL, &hs))
        http_session_end_stream(hs);
}

void http_agent_pass(struct http_agent *e, uint64_t session, struct span message)
{
    struct mcp_message m;
    size_t at = 0;
    void *hs;

    while (map_next(&e->sessions, &at, NULL, &hs)) {
        struct mcp_session *mcp = http_session_mcp(hs);
        if (mcp_session_number(mcp) != session || mcp_skim(message, &m))
            continue;
        mcp_session_receive(mcp, &m, NULL);
        return;
    }
}
