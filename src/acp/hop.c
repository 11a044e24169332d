/* Reading and writing a neighbour's lines, the tables of requests in flight, answers, batches and
 * cancelling. Called by the other files of the conductor (conductor.c, greet.c, questions.c,
 * setup.c, component.c, channel.c, exchange.c, unnamed.c, batch.c). */
#include "acp/inside.h"
#include "acp/json_edit.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

#include <stdio.h>

enum {
    TOLD_WHOLE = 16, /* requesters that get the long form of a failure */
    /* Bytes that may wait for a hop. The neighbours together add less than this before flow.c stops
     * reading them, even if each adds one message of maximum length. */
    QUEUE_MAX = 4 * HOP_MAX_MESSAGE,
    QUEUE_KEEP = 128 * 1024, /* capacity that a hop's output buffer keeps while nothing waits */
    SPARE_MAX = 512,         /* ended requests whose memory is kept for new requests */
};

struct span failure_tell(struct failure *f)
{
    return buf_view(f->brief.n && f->told++ >= TOLD_WHOLE ? &f->brief : &f->whole);
}

void failure_fini(struct failure *f)
{
    buf_fini(&f->whole);
    buf_fini(&f->brief);
    *f = (struct failure){0};
}

void hop_init(struct hop *h, struct conductor *c, int index, const char *label)
{
    h->c = c;
    h->index = index;
    h->dialect = P_UNKNOWN;
    snprintf(h->label, sizeof h->label, "%s", label);
    list_init(&h->in);
    list_init(&h->sent);
    list_init(&h->spare);
    lines_init(&h->lines, HOP_MAX_MESSAGE);
}

void hop_fini(struct hop *h)
{
    LIST_EACH_SAFE (&h->sent, it)
        pending_free(LIST_ENTRY(it, struct pending, node));
    lines_fini(&h->lines);
    idmap_fini(&h->out);
    buf_fini(&h->discard);
    stderr_tail_reset(&h->stderr_tail);
    mem_free(h->closed);
}

void hop_free(struct hop *h)
{
    list_remove(&h->spare);
    flow_forget(h);
    hop_fini(h);
    mem_free(h);
}

void hop_attach(struct hop *h, struct stream *stream, const struct stream_events *on, void *owner)
{
    h->stream = stream;
    stream_set_limit(stream, QUEUE_MAX);
    stream_set_keep(stream, QUEUE_KEEP);
    stream_start(stream, on, owner);
}

void hop_detach(struct hop *h)
{
    h->stream = NULL;
    flow_release(h);
}

/* --- output --- */

struct buf *hop_begin(struct hop *h)
{
    struct buf *out = h->stream ? stream_out(h->stream) : &h->discard;

    if (!h->stream)
        out->n = 0;
    h->line_at = out->n;
    return out;
}

void hop_end(struct hop *h)
{
    if (!h->stream)
        return;
    struct buf *out = stream_out(h->stream);
    if (h->c->options.trace)
        acp_trace_line(h->c->options.trace, h->index, TRACE_SENT,
                       span_from(buf_view(out), h->line_at));
    buf_char(out, '\n');
    size_t n = out->n - h->line_at;
    stream_wrote(h->stream);
    if (stream_is_high(h->stream))
        flow_wrote(h, h->c->reading, n);
}

/* The conductor itself answers a request of the hop, so no relayed answer will be traced. */
static void trace_own(struct hop *h, const struct acp_message *m, bool ok, struct span body)
{
    struct acp_trace *t = h->c->options.trace;

    if (t && m->method.n)
        acp_trace_answer(
            t, acp_trace_call(t, true, false, h->label, "Conductor", m->method, m->params), ok,
            body);
}

void hop_result(struct hop *h, const struct acp_message *m, struct span result)
{
    trace_own(h, m, true, result);
    rpc_put_result(batch_begin(m->batch, h), m->rpc.id, result);
    batch_end(m->batch, h);
}

void hop_refuse(struct hop *h, const struct acp_message *m, struct span error)
{
    trace_own(h, m, false, error);
    rpc_put_error_raw(batch_begin(m->batch, h), m->rpc.id, error);
    batch_end(m->batch, h);
}

/* {code, message, data} */
static void put_error_object(struct buf *out, int code, const char *text, const char *data)
{
    buf_char(out, '{');
    json_out(out, "code");
    buf_printf(out, "%d", code);
    json_out_str(out, "message", text);
    if (data)
        json_out_str(out, "data", data);
    buf_char(out, '}');
}

static void put_error(struct hop *h, struct batch *batch, struct span id, int code,
                      const char *text, const char *data)
{
    BUF_SCOPED error = {0};

    put_error_object(&error, code, text, data);
    rpc_put_error_raw(batch_begin(batch, h), id, buf_view(&error));
    batch_end(batch, h);
}

void hop_error(struct hop *h, const struct acp_message *m, int code, const char *text,
               const char *data)
{
    BUF_SCOPED error = {0};

    put_error_object(&error, code, text, data);
    hop_refuse(h, m, buf_view(&error));
}

/* The beginning of a request (id > 0) or notification, up to the value of "method". */
static void put_call_head(struct buf *out, uint64_t id)
{
    buf_span(out, SPAN("{\"jsonrpc\":\"2.0\""));
    if (id) {
        buf_span(out, SPAN(",\"id\":"));
        buf_u64(out, id);
    }
    buf_span(out, SPAN(",\"method\":"));
}

static void put_call(struct buf *out, uint64_t id, struct span method, struct span params)
{
    put_call_head(out, id);
    buf_span(out, method);
    if (params.n) {
        buf_span(out, SPAN(",\"params\":"));
        buf_span(out, params);
    }
    buf_char(out, '}');
}

/* The successor envelope of the hop's dialect around a call. */
static void put_envelope(struct buf *out, const struct hop *h, uint64_t id, struct span method,
                         struct span params)
{
    const struct proxy_row *row = &proxy_rows[h->dialect == P_UNKNOWN ? P3 : h->dialect];
    /* Toward a parent we are a proxy, and proxies forward. */
    bool forward = h->index == HOP_UPSTREAM;
    const char *request = forward ? row->forward_request : row->deliver_request;
    const char *notification = forward ? row->forward_notification : row->deliver_notification;

    put_call_head(out, id);
    buf_char(out, '"');
    buf_str(out, id ? request : notification);
    if (h->nested) {
        buf_str(out, "\",\"params\":{\"message\":");
        put_call(out, id, method, params);
    } else {
        buf_str(out, "\",\"params\":{\"method\":");
        buf_span(out, method);
        /* Old parsers fail when the inner params are missing; null means none. */
        buf_str(out, ",\"params\":");
        buf_span(out, params.n ? params : SPAN("null"));
    }
    buf_str(out, "}}");
}

void hop_place_send(struct hop_place to, const struct pending *p, struct span method,
                    struct span params)
{
    struct buf *out = hop_begin(to.hop);
    uint64_t id = p ? p->id : 0;

    if (to.wrapped)
        put_envelope(out, to.hop, id, method, params);
    else
        put_call(out, id, method, params);
    hop_end(to.hop);
}

/* --- requests in flight --- */

/* Reuse the memory of a request that has ended, or allocate. */
static struct pending *take_spare(struct conductor *c)
{
    struct pending *p = LIST_FIRST(&c->idle, struct pending, node);

    if (!p)
        return MEM_NEW(struct pending);
    list_remove(&p->node);
    c->n_idle--;
    *p = (struct pending){0};
    return p;
}

static char *keep_id(struct pending *p, struct span id)
{
    if (id.n >= sizeof p->short_id)
        return mem_span(id);
    memcpy(p->short_id, id.p, id.n);
    return p->short_id;
}

struct pending *pending_new(struct hop *to, struct hop *from, const struct acp_message *m)
{
    struct conductor *c = to ? to->c : from->c;
    struct pending *p = take_spare(c);

    p->c = c;
    p->to = to;
    p->from = from;
    list_init(&p->node);
    list_init(&p->waiting);
    if (to) {
        p->id = ++to->last_id;
        p->sent_nested = to->nested;
        idmap_put(&to->out, p->id, p);
        list_append(&to->sent, &p->node);
    }
    if (from) {
        p->from_id = keep_id(p, m->rpc.id);
        if (m->nested && m->inner_id.n)
            p->inner_id = mem_span(m->inner_id);
        p->batch = m->batch;
        batch_hold(p->batch);
        list_append(&from->in, &p->waiting);
    }
    return p;
}

void pending_let_go(struct pending *p)
{
    if (!p->from)
        return;
    list_remove(&p->waiting);
    p->from = NULL;
    batch_release(p->batch);
    p->batch = NULL;
}

/* Searches the list: few requests are cancelled, so a map of all requests would cost more. */
struct pending *hop_asked(const struct hop *h, struct span id)
{
    for (const struct list *it = h->in.prev; it != &h->in; it = it->prev) {
        struct pending *p = LIST_ENTRY(it, struct pending, waiting);
        if (span_is(id, p->from_id))
            return p;
    }
    return NULL;
}

static struct acp_trace *trace_of(const struct pending *p)
{
    return p->c->options.trace;
}

void pending_free(struct pending *p)
{
    if (p->dropped)
        p->dropped(p);
    acp_trace_forget(trace_of(p), p->trace);
    pending_let_go(p);
    if (p->to)
        idmap_take(&p->to->out, p->id);
    list_remove(&p->node);
    if (p->from_id != p->short_id)
        mem_free(p->from_id);
    mem_free(p->inner_id);
    if (p->c->n_idle == SPARE_MAX) {
        mem_free(p);
        return;
    }
    p->c->n_idle++;
    list_append(&p->c->idle, &p->node);
}

/* An answer in the nested form is a whole message inside a result. */
static void answer_nested(struct pending *p, const char *member, struct span body)
{
    struct buf *out = batch_begin(p->batch, p->from);

    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"message\":{", p->from_id);
    buf_printf(out, "\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":", p->inner_id, member);
    buf_span(out, body);
    buf_str(out, "}}}");
    batch_end(p->batch, p->from);
}

/* The requester has been answered; this may have been the last open request. */
static void answered(struct pending *p)
{
    struct conductor *c = p->from->c;

    pending_let_go(p);
    conductor_check_end(c);
}

static void answer(struct pending *p, bool ok, struct span body)
{
    acp_trace_answer(trace_of(p), p->trace, ok, body);
    if (!p->from)
        return;
    const struct acp_message asked = {.rpc = {.id = span_str(p->from_id)}, .batch = p->batch};
    if (p->inner_id)
        answer_nested(p, ok ? "result" : "error", body);
    else if (ok)
        hop_result(p->from, &asked, body);
    else
        hop_refuse(p->from, &asked, body);
    answered(p);
}

void pending_result(struct pending *p, struct span result)
{
    answer(p, true, result);
}

void pending_error(struct pending *p, struct span error)
{
    answer(p, false, error);
}

/* Pass the answer of the other neighbour on to the requester. Frees nothing. */
static void pass_answer(struct pending *p, const struct acp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    struct span text = m->rpc.text, id = m->rpc.id;

    if (!p->from || p->inner_id || !id.n) {
        answer(p, ok, ok ? m->rpc.result : m->rpc.error);
        return;
    }
    acp_trace_answer(p->from->c->options.trace, p->trace, ok, ok ? m->rpc.result : m->rpc.error);
    /* The same bytes, with the requester's id instead of ours. */
    size_t at = (size_t)(id.p - text.p);
    struct buf *out = batch_begin(p->batch, p->from);
    buf_span(out, span_cut(text, 0, at));
    buf_str(out, p->from_id);
    buf_span(out, span_from(text, at + id.n));
    batch_end(p->batch, p->from);
    answered(p);
}

void pending_cancel(struct pending *p, struct span said)
{
    BUF_SCOPED params = {0}, id = {0};

    if (p->cancelled || !p->to)
        return;
    p->cancelled = true;
    buf_u64(&id, p->id);
    json_edit_set(&params, said, EDIT_PATH("requestId"), buf_view(&id));
    /* Never in an envelope: the cancellation is about a request on this connection, even if that
     * request was in an envelope. */
    struct span method = SPAN("\"$/cancel_request\"");
    acp_trace_call(trace_of(p), false, false, p->from ? p->from->label : "Conductor", p->to->label,
                   method, buf_view(&params));
    hop_place_send((struct hop_place){p->to, false}, NULL, method, buf_view(&params));
}

void hop_gone(struct hop *h, struct failure *why)
{
    uint64_t last = h->last_id; /* requests that the hooks send meanwhile do not fail here */
    struct pending *p;

    while ((p = LIST_FIRST(&h->sent, struct pending, node)) && p->id <= last) {
        struct span error = failure_tell(why);
        struct acp_message m = {.rpc = {.kind = RPC_ERROR, .error = error}};
        idmap_take(&h->out, p->id);
        list_remove(&p->node);
        p->dropped = NULL;
        if (!p->answered || !p->answered(p, &m))
            pending_error(p, error);
        pending_free(p);
    }
    while ((p = LIST_FIRST(&h->in, struct pending, waiting))) {
        pending_let_go(p);
        pending_cancel(p, SPAN("{}"));
    }
}

/* --- input --- */

/* Take the message out of an answer in the nested form. False: there is none. */
static bool unnest(const struct acp_message *m, struct acp_message *inner)
{
    if (m->rpc.kind != RPC_RESULT || m->slots[ACP_MESSAGE].type != JSON_OBJECT)
        return false;
    return acp_skim(m->slots[ACP_MESSAGE].value, inner) == 0 &&
           (inner->rpc.kind == RPC_RESULT || inner->rpc.kind == RPC_ERROR);
}

static void receive_answer(struct hop *h, const struct acp_message *m)
{
    int64_t id;
    struct pending *p =
        json_int(m->rpc.id, &id) && id > 0 ? idmap_get(&h->out, (uint64_t)id) : NULL;
    struct acp_message inner;

    if (!p) {
        log_debug(h->label, "answer to id " SPAN_FMT ", which is not open",
                  SPAN_ARG(span_cut(m->rpc.id, 0, 60)));
        return;
    }
    /* Remove the request from the tables first: the hook may do anything, even send to this hop
     * again. */
    idmap_take(&h->out, p->id);
    list_remove(&p->node);
    p->dropped = NULL;
    if (p->sent_nested && unnest(m, &inner))
        m = &inner;
    if (!p->answered || !p->answered(p, m))
        pass_answer(p, m);
    pending_free(p);
}

static bool is_response_like(struct span text)
{
    return json_get(text, "result").type != JSON_NONE || json_get(text, "error").type != JSON_NONE;
}

static void receive_invalid(struct hop *h, const struct rpc_message *m, struct batch *batch)
{
    BUF_SCOPED without = {0};

    if (json_get(m->text, "params").type == JSON_NULL) {
        /* Strictly invalid, but null params of an envelope arrive like this, and mean none. */
        json_edit_remove(&without, m->text, EDIT_PATH("params"));
        hop_receive(h, buf_view(&without), batch);
    } else if (!is_response_like(m->text)) {
        /* A message that looks like an answer is never answered: two peers would go on for ever. */
        put_error(h, batch, SPAN("null"), RPC_INVALID_REQUEST, "Invalid request", m->why);
    }
}

/* The hop's answer to the request `id` had to be dropped: send the requester this error instead. */
static void answer_instead(struct hop *h, struct span id, const char *how)
{
    BUF_SCOPED text = {0}, clean = {0}, answer = {0};

    if (h->index == HOP_UPSTREAM)
        buf_str(&text, "the client");
    else
        component_put_name(&text, h);
    buf_printf(&text, " answered with %s", how);
    log_redact(&clean, buf_view(&text));
    rpc_put_error(&answer, id, RPC_INTERNAL_ERROR, buf_view(&clean), SPAN_EMPTY);
    hop_receive(h, buf_view(&answer), NULL);
}

/*
 * A message that the JSON reader refuses: too deep, bad UTF-8, a duplicate member, or no JSON at
 * all. If the message looks like an answer, the requester gets an error; otherwise the sender does.
 */
static void receive_unreadable(struct hop *h, struct span text, struct batch *batch, int code)
{
    struct json_slot id = json_get(text, "id");
    bool has_id = (id.type == JSON_STRING || id.type == JSON_NUMBER) &&
                  json_skim(id.value, NULL, NULL, NULL, NULL) == 0;
    bool asks = json_get(text, "method").type == JSON_STRING;
    BUF_SCOPED how = {0};

    /* JSON may hold secrets that the redactor has not been told of. */
    bool is_json = json_type_of(span_trim(text)) >= JSON_ARRAY;
    log_warn(h->label, "sent %zu bytes that are not a message (%s)%s" SPAN_FMT, text.n,
             err_name(code), is_json ? "" : ": ", SPAN_ARG(span_cut(text, 0, is_json ? 0 : 120)));
    buf_printf(&how, "what cannot be read: %s", err_name(code));
    if (code == ERR_DEPTH)
        buf_printf(&how, ", %d levels are allowed", JSON_MAX_DEPTH);
    /* A message that looks like an answer is never answered: two peers would go on for ever. */
    if (asks || !is_response_like(text))
        put_error(h, batch, asks && has_id ? id.value : SPAN("null"), RPC_PARSE_ERROR,
                  "Parse error", buf_cstr(&how));
    else if (has_id)
        answer_instead(h, id.value, buf_cstr(&how));
}

static void receive_batch(struct hop *h, const struct rpc_message *m, struct batch *around)
{
    struct json_iter it = json_iter(m->text);
    BUF_SCOPED why = {0};
    struct batch *batch;

    if (around) {
        put_error(h, around, SPAN("null"), RPC_INVALID_REQUEST, "a batch inside a batch", NULL);
        return;
    }
    if (!rpc_batch_fits(m, h->c->options.max_batch, &why)) {
        put_error(h, NULL, SPAN("null"), RPC_INVALID_REQUEST, buf_cstr(&why), NULL);
        return;
    }
    batch = batch_new(h);
    if (!json_next(&it))
        put_error(h, NULL, SPAN("null"), RPC_INVALID_REQUEST, "an empty batch", NULL);
    else
        do
            hop_receive(h, it.value, batch);
        while (json_next(&it));
    batch_release(batch);
}

void hop_receive(struct hop *h, struct span text, struct batch *batch)
{
    struct acp_message m;
    int code = acp_skim(text, &m);

    m.batch = batch;
    /* One bad message does not spoil the whole array: each message is read by itself. */
    if (code && code != ERR_SYNTAX && json_type_of(m.rpc.text) == JSON_ARRAY) {
        receive_batch(h, &m.rpc, batch);
        return;
    }
    if (code) {
        receive_unreadable(h, text, batch, code);
        return;
    }
    switch (m.rpc.kind) {
    case RPC_REQUEST:
    case RPC_NOTIFICATION:
        conductor_receive(h, &m);
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        receive_answer(h, &m);
        break;
    case RPC_BATCH:
        receive_batch(h, &m.rpc, batch);
        break;
    case RPC_INVALID:
        receive_invalid(h, &m.rpc, batch);
        break;
    }
}

static void on_line(void *owner, struct span line)
{
    struct hop *h = owner;

    if (h->c->options.trace)
        acp_trace_line(h->c->options.trace, h->index, TRACE_RECEIVED, line);
    /* While ending, every request has been answered already and the channels are gone. */
    if (h->c->state != CHAIN_ENDING)
        hop_receive(h, line, NULL);
}

/* Write the members that are complete in the beginning of a message as an object: enough to
 * recognise the message, since the long members usually come last. Returns their length, or 0. */
static size_t put_beginning(struct buf *out, struct span head)
{
    for (size_t n = head.n; n-- > 0;) {
        if (head.p[n] != ',')
            continue;
        out->n = 0;
        buf_span(out, span_cut(head, 0, n));
        buf_char(out, '}');
        if (json_skim(buf_view(out), NULL, NULL, NULL, NULL) == 0)
            return n;
    }
    out->n = 0;
    buf_str(out, "{}");
    return 0;
}

static void on_too_long(void *owner, struct span head)
{
    struct hop *h = owner;
    BUF_SCOPED start = {0};

    if (h->c->state == CHAIN_ENDING)
        return;
    struct span next = span_trim(span_from(head, put_beginning(&start, head) + 1));
    struct json_slot id = json_get(buf_view(&start), "id");
    bool has_id = id.type == JSON_STRING || id.type == JSON_NUMBER;
    struct json_slot method = json_get(buf_view(&start), "method");
    bool asks = method.type == JSON_STRING;
    bool answers = span_starts(next, SPAN("\"result\"")) || span_starts(next, SPAN("\"error\""));
    BUF_SCOPED how = {0};
    buf_printf(&how, "more than %d bytes", HOP_MAX_MESSAGE);
    log_warn(h->label, "sent a message of %s: dropped (" SPAN_FMT ")", buf_cstr(&how),
             SPAN_ARG(asks      ? method.value
                      : answers ? SPAN("an answer")
                                : SPAN("of unknown kind")));
    /* As always, notifications and answers get no answer. */
    if (!asks && answers && has_id)
        answer_instead(h, id.value, buf_cstr(&how));
    else if (asks ? has_id : !answers)
        put_error(h, NULL, has_id ? id.value : SPAN("null"), RPC_INVALID_REQUEST,
                  "Message too long", NULL);
}

static const struct lines_events line_events = {on_line, on_too_long};

void hop_feed(struct hop *h, struct span chunk)
{
    h->c->reading = h;
    lines_feed(&h->lines, chunk, &line_events, h);
    h->c->reading = NULL;
}

void hop_feed_end(struct hop *h)
{
    lines_end(&h->lines, &line_events, h);
}
