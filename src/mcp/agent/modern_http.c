/* POSTs of the stateless era: headers checked against the body, the answer as JSON or as an SSE
 * stream. Called by http_agent.c. */
#include "mcp/agent/modern_http.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/principal.h"
#include "mcp/header_value.h"
#include "mcp/param_headers.h"
#include "wire/sse.h"

/* When a POST without an answer becomes a stream, if its client reads streams. */
enum { STREAM_AFTER_MS = 10 * 1000 };

/* One POST that waits for its answer. */
struct modern_post {
    struct modern_http *http;
    struct list node;
    struct http_exchange *x;
    uint64_t since;
    int status;
    bool reads_streams;
    bool sse;
};

struct modern_http {
    struct mcp_host host;
    struct modern_agent *agent;
    struct list posts;
    struct buf event;
    struct buf plain; /* the message, before secrets are hidden in it */
};

/* --- writing --- */

/* Where the next message of this answer goes. */
static struct buf *open_message(struct modern_http *h, struct modern_post *p)
{
    if (!p->sse)
        return http_respond_begin(p->x, p->status, "application/json", SPAN_EMPTY);
    buf_reset(&h->event, 64 * 1024);
    buf_str(&h->event, SSE_MESSAGE);
    return &h->event;
}

/* Hiding a secret that is more than one JSON string may leave invalid JSON: an error is sent
 * instead. */
static void put_redacted(struct buf *out, struct span message)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, message);
    if (json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0)
        buf_span(out, buf_view(&shown));
    else
        rpc_put_error(out, json_get(message, "id").value, RPC_INTERNAL_ERROR,
                      SPAN("This cannot be shown: a secret in it is more than a text"), SPAN_EMPTY);
}

static void begin_stream(struct modern_post *p)
{
    p->sse = true;
    http_stream_begin(p->x, 200, "text/event-stream", SPAN(SSE_HEADERS));
}

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct modern_http *h = owner;
    struct modern_post *p = reply;

    if (kind == MCP_OUT_RELATED && !p->sse)
        begin_stream(p);
    if (!h->host.redacts)
        return open_message(h, p);
    buf_reset(&h->plain, 64 * 1024);
    return &h->plain;
}

static void post_free(struct modern_post *p)
{
    list_remove(&p->node);
    mem_free(p);
}

static void post_gone(void *owner)
{
    struct modern_post *p = owner;

    modern_agent_cancel(p->http->agent, p);
    post_free(p);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct modern_http *h = owner;
    struct modern_post *p = reply;

    if (h->host.redacts)
        put_redacted(open_message(h, p), buf_view(&h->plain));
    if (p->sse) {
        json_join_lines(&h->event, sizeof SSE_MESSAGE - 1);
        buf_str(&h->event, "\n\n");
        http_stream_write(p->x, buf_view(&h->event));
        if (kind == MCP_OUT_FINAL)
            http_stream_end(p->x);
    } else {
        http_respond_end(p->x);
    }
    if (kind == MCP_OUT_FINAL)
        post_free(p);
}

static void out_abandon(void *owner, void *reply)
{
    struct modern_post *p = reply;

    (void)owner;
    if (p->sse)
        http_stream_end(p->x);
    else
        http_respond(p->x, 204, NULL, SPAN_EMPTY, SPAN_EMPTY);
    post_free(p);
}

static void out_status(void *owner, void *reply, int status)
{
    struct modern_post *p = reply;

    (void)owner;
    p->status = status;
}

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, out_status};

/* --- checking --- */

bool modern_http_claims(const struct mcp_message *m, const struct http_request *req)
{
    struct span version = http_header(req, "mcp-protocol-version");

    return modern_claims(m) || (version.p && span_cmp(version, SPAN(MCP_MODERN)) >= 0);
}

static void refuse(struct http_exchange *x, struct span id, const struct modern_fault *fault)
{
    modern_put_fault(http_respond_begin(x, fault->status, "application/json", SPAN_EMPTY), id,
                     fault);
    http_respond_end(x);
}

static bool header_is(const struct http_request *req, const char *name, struct span raw_string)
{
    struct span value = http_header(req, name);
    BUF_SCOPED text = {0};

    return value.p && header_value_decode(value, &text) &&
           json_string_is(raw_string, buf_view(&text));
}

/* The member that Mcp-Name repeats; NULL: the method has none. */
static const struct json_slot *named_by(const struct mcp_message *m)
{
    static const enum op ops[] = {OP_CALL_TOOL, OP_GET_PROMPT,  OP_READ_RESOURCE,
                                  OP_TASK_GET,  OP_TASK_UPDATE, OP_TASK_CANCEL};

    for (size_t i = 0; i < COUNT_OF(ops); i++)
        if (rpc_method_is(&m->rpc, mcp_operations[ops[i]].method))
            return &m->slots[mcp_operations[ops[i]].name_slot];
    return NULL;
}

static struct span header_of(void *arg, struct span name)
{
    const struct http_request *req = arg;
    char *text = mem_span(name);
    struct span value = http_header(req, text);

    mem_free(text);
    return value;
}

static bool params_match(struct modern_http *h, const struct mcp_message *m,
                         const struct http_request *req)
{
    BUF_SCOPED scratch = {0};
    const struct target *t = NULL;

    if (rpc_method_is(&m->rpc, "tools/call") && m->slots[SLOT_NAME].type == JSON_STRING)
        t = view_find(h->host.view, ITEM_TOOL, json_text(m->slots[SLOT_NAME].value, &scratch));
    if (!t || !param_headers_possible(t->item->raw))
        return true;
    const struct json_slot *arguments = &m->slots[SLOT_ARGUMENTS];
    return param_headers_match(t->item->raw,
                               arguments->type == JSON_OBJECT ? arguments->value : SPAN_EMPTY,
                               header_of, (void *)(uintptr_t)req);
}

/* Has the request a fault? The checks are in the order that the protocol demands. */
static bool find_fault(struct modern_http *h, const struct http_request *req,
                       const struct mcp_message *m, struct modern_fault *fault, struct buf *scratch)
{
    static const struct modern_fault header_fault = {
        400, MCP_ERROR_HEADER,
        "Header mismatch: MCP-Protocol-Version, Mcp-Method, Mcp-Name and "
        "Mcp-Param-* must repeat the body",
        NULL};
    static const struct modern_fault unknown = {404, RPC_METHOD_NOT_FOUND, "Method not found",
                                                NULL};
    struct span version = http_header(req, "mcp-protocol-version");
    const struct json_slot *claimed = &m->slots[SLOT_META_VERSION], *name = named_by(m);

    *fault = header_fault;
    if (version.p && claimed->type == JSON_STRING && !json_string_is(claimed->value, version))
        return true;
    if (!modern_check(m, fault, scratch))
        return true;
    bool known = modern_knows_method(&h->host, m);
    *fault = known ? header_fault : unknown;
    return !known || !version.p || !header_is(req, "mcp-method", rpc_method_quoted(&m->rpc)) ||
           (name && name->type == JSON_STRING && !header_is(req, "mcp-name", name->value)) ||
           !params_match(h, m, req);
}

/* False when the request was refused. */
static bool check_request(struct modern_http *h, struct http_exchange *x,
                          const struct http_request *req, const struct mcp_message *m)
{
    struct modern_fault fault;
    BUF_SCOPED scratch = {0};
    bool faulty = find_fault(h, req, m, &fault, &scratch);

    if (faulty)
        refuse(x, m->rpc.id, &fault);
    return !faulty;
}

void modern_http_handle(struct modern_http *h, struct http_exchange *x,
                        const struct http_request *req, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_NOTIFICATION) {
        http_respond(x, 202, NULL, SPAN_EMPTY, SPAN_EMPTY);
        return;
    }
    if (m->rpc.kind != RPC_REQUEST) {
        refuse(x, SPAN_EMPTY,
               &(struct modern_fault){400, RPC_INVALID_REQUEST,
                                      "One request or notification per POST", NULL});
        return;
    }
    if (!check_request(h, x, req, m))
        return;
    struct modern_post *p = MEM_NEW(struct modern_post);
    p->http = h;
    p->x = x;
    p->since = router_timers(h->host.router)->now;
    p->status = 200;
    p->reads_streams = http_accepts(req, "text/event-stream");
    list_append(&h->posts, &p->node);
    http_exchange_on_gone(x, post_gone, p);
    modern_agent_receive(h->agent, m, p,
                         h->host.principal ? span_str(h->host.principal->name)
                                           : http_header(req, "authorization"));
}

bool modern_http_waits(const struct modern_http *h)
{
    return !list_empty(&h->posts);
}

/* Who waits long without a byte takes the connection for dead, and so do proxies: that would cancel
 * the call. */
void modern_http_keep_alive(struct modern_http *h)
{
    uint64_t now = router_timers(h->host.router)->now;

    LIST_EACH (&h->posts, it) {
        struct modern_post *p = LIST_ENTRY(it, struct modern_post, node);
        if (!p->sse && p->reads_streams && now - p->since >= STREAM_AFTER_MS)
            begin_stream(p);
        if (p->sse)
            http_stream_write(p->x, SPAN(SSE_KEEP_ALIVE));
    }
}

struct modern_http *modern_http_new(const struct mcp_host *host)
{
    struct modern_http *h = MEM_NEW(struct modern_http);

    h->host = *host;
    list_init(&h->posts);
    h->agent = modern_agent_new(host, &out_ops, h);
    return h;
}

void modern_http_free(struct modern_http *h)
{
    modern_agent_free(h->agent);
    buf_fini(&h->event);
    buf_fini(&h->plain);
    mem_free(h);
}

struct modern_agent *modern_http_agent(const struct modern_http *h)
{
    return h->agent;
}
