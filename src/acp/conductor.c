/* Chooses the next neighbour for each message, holds messages that come before initialize is
 * answered, and starts and ends the conductor. Called by cmd/conductor.c, by hop.c for each
 * message, and by greet.c, component.c, setup.c and channel.c to find neighbours, to relay and to
 * report failures. */
#include "acp/inside.h"

#include "acp/port.h"
#include "acp/secrets.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/* DRAIN: time for answers after the client has closed its end. DYING: time for the rest of the
 * chain to pass on the failure of a component. */
enum { DRAIN_MS = 5000, DYING_MS = 500, FLUSH_MS = 1000, HELD_MAX = 16 * 1024 * 1024 };

/* --- neighbours --- */

bool conductor_is_agent(const struct hop *h)
{
    return h->c->mode == CONDUCT_AGENT && h->index == (int)h->c->n - 1;
}

struct hop_place conductor_right_of(struct conductor *c, int index)
{
    if (index + 1 < (int)c->n)
        return (struct hop_place){c->components[index + 1], false};
    return (struct hop_place){c->mode == CONDUCT_PROXY ? &c->up : NULL, true};
}

struct hop_place conductor_left_of(struct conductor *c, int index)
{
    if (index > 0)
        return (struct hop_place){c->components[index - 1], true};
    return (struct hop_place){&c->up, false};
}

static const char *label_of(struct hop_place p)
{
    return p.wrapped && p.hop->index == HOP_UPSTREAM ? "Successor" : p.hop->label;
}

/* Send the same bytes with another id. */
static void splice_id(struct hop *to, const struct acp_message *m, const struct pending *p)
{
    struct span text = m->rpc.text, id = m->rpc.id;
    struct buf *out = hop_begin(to);

    if (p) {
        size_t at = (size_t)(id.p - text.p);
        buf_span(out, span_cut(text, 0, at));
        buf_u64(out, p->id);
        buf_span(out, span_from(text, at + id.n));
    } else {
        buf_span(out, text);
    }
    hop_end(to);
}

static void trace_relay(const struct hop *from, const struct acp_message *m, struct hop_place to,
                        struct span params, struct pending *p)
{
    bool was_right = from->index == HOP_UPSTREAM && m->wrapped;
    struct acp_carried said = {0};
    bool mcp = (m->word == WORD_MCP || m->word == WORD_MCP_PATH) && acp_carried(m, &said);
    uint64_t id =
        acp_trace_call(from->c->options.trace, p, mcp, was_right ? "Successor" : from->label,
                       label_of(to), mcp ? said.method : m->method, mcp ? said.params : params);

    if (p)
        p->trace = id;
    buf_fini(&said.quoted);
}

/* A neighbour drops a message that is nested too deeply, and the requester would wait for ever. */
static bool fits_envelope(const struct hop *to, struct span params)
{
    unsigned levels = to->nested ? 3 : 2;

    /* A level takes at least two bytes, so most messages need not be measured. */
    return params.n < 2 * (JSON_MAX_DEPTH - 3) || json_depth(params) + levels <= JSON_MAX_DEPTH;
}

struct pending *conductor_relay(struct hop *from, const struct acp_message *m, struct hop_place to,
                                struct span params)
{
    struct pending *p = NULL;

    if (to.wrapped && acp_is_request(m) && !fits_envelope(to.hop, params)) {
        hop_error(from, m, RPC_INVALID_REQUEST, "Invalid request",
                  "nested too deeply to be passed on in an envelope");
        return NULL;
    }

    if (acp_is_request(m))
        p = pending_new(to.hop, from, m);
    if (from->c->options.trace)
        trace_relay(from, m, to, params, p);
    if (!to.wrapped && !m->wrapped && params.p == m->params.p)
        splice_id(to.hop, m, p);
    else
        hop_place_send(to, p, m->method, params);
    return p;
}

/* --- incoming messages --- */

static void refuse(struct hop *from, const struct acp_message *m, int code, const char *text,
                   const char *data)
{
    if (acp_is_request(m))
        hop_error(from, m, code, text, data);
    else
        log_debug(from->label, "dropped a notification: %s", data ? data : text);
}

/* A message on its way toward the agent. */
static void go_right(struct hop *from, const struct acp_message *m, struct hop_place to)
{
    struct conductor *c = from->c;
    bool to_agent = conductor_is_agent(to.hop);

    switch (m->word) {
    case WORD_INITIALIZE:
        greet_onward(from, m);
        return;
    case WORD_PROXY_INITIALIZE:
        refuse(from, m, RPC_INVALID_REQUEST, "Invalid request",
               "initialize/proxy requests are only sent by the conductor");
        return;
    case WORD_SETUP:
    case WORD_SETUP_NEW:
        acp_secrets_learn(m->params);
        setup_note_owners(from, m);
        if (to_agent) {
            setup_relay(from, m, to);
            return;
        }
        break;
    case WORD_CLOSE:
        if (to_agent) {
            setup_close_relay(from, m, to);
            return;
        }
        break;
    case WORD_MCP:
    case WORD_MCP_PATH:
    case WORD_MCP_CLOSE:
        if (to_agent && channel_divert(c, from, m))
            return;
        break;
    case WORD_OTHER:
    case WORD_CANCEL:
    case WORD_MCP_OPEN:
        break;
    }
    conductor_relay(from, m, to, m->params);
}

/* A message on its way toward the client. */
static void go_left(struct hop *from, const struct acp_message *m, struct hop_place to)
{
    if (to.hop == &from->c->up && channel_is_astray(from->c, m))
        refuse(from, m, RPC_METHOD_NOT_FOUND, "Method not found",
               "the component that declared this MCP server does not know the method");
    else
        conductor_relay(from, m, to, m->params);
}

/* --- messages before the chain is open --- */

/* A message of the client that waits for the answer to initialize. */
struct held {
    struct list node;
    struct batch *batch;
    char *text;
    char *id; /* of a request, raw; NULL for a notification */
};

static void hold(struct conductor *c, const struct acp_message *m)
{
    struct held *h = MEM_NEW(struct held);

    h->batch = m->batch;
    batch_hold(h->batch);
    h->text = mem_span(m->rpc.text);
    h->id = acp_is_request(m) ? mem_span(m->rpc.id) : NULL;
    c->held_bytes += m->rpc.text.n + sizeof *h;
    list_append(&c->held, &h->node);
}

static void held_free(struct held *h)
{
    list_remove(&h->node);
    batch_release(h->batch);
    mem_free(h->text);
    mem_free(h->id);
    mem_free(h);
}

/* Receive the held messages again, or drop them. */
static void release_held(struct conductor *c, bool receive)
{
    while (!list_empty(&c->held)) {
        struct held *h = LIST_FIRST(&c->held, struct held, node);
        list_remove(&h->node);
        if (receive)
            hop_receive(&c->up, span_str(h->text), h->batch);
        held_free(h);
    }
    c->held_bytes = 0;
    if (receive)
        conductor_check_end(c);
}

static void cancel_held(struct conductor *c, struct span id)
{
    LIST_EACH (&c->held, it) {
        struct held *h = LIST_ENTRY(it, struct held, node);
        if (!h->id || !span_is(id, h->id))
            continue;
        const struct acp_message asked = {.rpc = {.id = id}, .batch = h->batch};
        hop_error(&c->up, &asked, ACP_CANCELLED, "Request cancelled", NULL);
        c->held_bytes -= strlen(h->text) + sizeof *h;
        held_free(h);
        return;
    }
}

static void on_cancel(struct hop *from, const struct acp_message *m)
{
    struct json_slot id = acp_first(m, ACP_REQUEST_ID, ACP_REQUEST_ID);
    struct pending *p = id.type == JSON_NONE ? NULL : hop_asked(from, id.value);

    /* An unknown id is no mistake: the answer may have been sent before the cancellation came. */
    if (p && p->to)
        pending_cancel(p, m->params);
    else if (p)
        channel_withdraw_ask(p, m->params);
    else if (from->index == HOP_UPSTREAM)
        cancel_held(from->c, id.value);
}

/* Handle a message of the client that comes before the chain is open, or after the chain failed.
 * False: the chain is open. */
static bool is_early(struct conductor *c, struct hop *from, struct acp_message *m)
{
    if (from->index != HOP_UPSTREAM)
        return false;
    bool initialize = m->word == WORD_INITIALIZE || m->word == WORD_PROXY_INITIALIZE;
    if (c->state == CHAIN_FRESH || (c->may_retry && initialize)) {
        greet_upstream(c, m);
        return true;
    }
    if (c->failure.whole.n) {
        if (acp_is_request(m))
            hop_refuse(from, m, failure_tell(&c->failure));
        return true;
    }
    /* In proxy mode the answer to initialize comes back through the same parent, in envelopes. */
    if (c->state == CHAIN_OPENING && !m->wrapped) {
        if (c->held_bytes + m->rpc.text.n > HELD_MAX)
            refuse(from, m, RPC_INVALID_REQUEST, "initialize has not been answered yet", NULL);
        else
            hold(c, m);
        return true;
    }
    return false;
}

void conductor_receive(struct hop *from, struct acp_message *m)
{
    struct conductor *c = from->c;

    if (m->envelope != P_UNKNOWN) {
        bool may =
            from->index == HOP_UPSTREAM ? c->mode == CONDUCT_PROXY : !conductor_is_agent(from);
        if (!may || !acp_unwrap(m)) {
            refuse(from, m, RPC_INVALID_REQUEST, "Invalid request",
                   may ? "the envelope holds no message" : "only proxies have a successor");
            return;
        }
        if (from->index != HOP_UPSTREAM && questions_heard(from, m, m->envelope))
            return;
    }
    if (from->greeting && questions_is_spare(from)) {
        refuse(from, m, RPC_INVALID_REQUEST, "initialize has not been answered yet", NULL);
        return;
    }
    if (m->word == WORD_CANCEL && !acp_is_request(m)) {
        on_cancel(from, m);
        return;
    }
    if (is_early(c, from, m))
        return;
    bool rightward = (from->index == HOP_UPSTREAM) != m->wrapped;
    int at = from->index;
    if (from->index == HOP_UPSTREAM && m->wrapped)
        at = (int)c->n; /* a message from the parent's successor enters at our right end */
    struct hop_place to = rightward ? conductor_right_of(c, at) : conductor_left_of(c, at);
    if (!to.hop)
        refuse(from, m, RPC_INVALID_REQUEST, "there is no successor", NULL);
    else if (c->failure.whole.n && !to.hop->stream && acp_is_request(m))
        hop_refuse(from, m, failure_tell(&c->failure));
    else if (rightward)
        go_right(from, m, to);
    else
        go_left(from, m, to);
}

/* --- the client's pipe --- */

static void up_data(void *owner, struct span chunk)
{
    struct conductor *c = owner;

    hop_feed(&c->up, chunk);
}

static void up_eof(void *owner)
{
    struct conductor *c = owner;

    hop_feed_end(&c->up);
    c->at_eof = true;
    setup_hurry(c);
    timer_set(loop_timers(c->loop), &c->end, DRAIN_MS);
    conductor_check_end(c);
}

static void up_drained(void *owner)
{
    struct conductor *c = owner;

    flow_release(&c->up);
}

static void up_closed(void *owner, const char *reason)
{
    struct conductor *c = owner;

    log_debug(c->up.label, "closed: %s", reason);
    hop_detach(&c->up);
    if (c->state == CHAIN_ENDING) {
        conductor_check_end(c);
        return;
    }
    /* A client that is done closes its end first (at_eof); if it did not, the pipe broke. */
    if (!c->at_eof)
        log_error(c->options.name, "the client is given up: %s", reason);
    conductor_end(c, c->failure.whole.n || !c->at_eof ? 1 : c->status);
}

static const struct stream_events up_events = {
    .data = up_data, .eof = up_eof, .drained = up_drained, .closed = up_closed};

/* --- life --- */

void conductor_opened(struct conductor *c)
{
    c->state = CHAIN_OPEN;
    release_held(c, true);
}

void conductor_fail(struct conductor *c, struct span error)
{
    struct failure why = {0};

    buf_span(&why.whole, error);
    conductor_fail_as(c, &why);
    failure_fini(&why);
}

/* Answer everything that the client still waits for with the failure. */
static void fail_the_rest(struct conductor *c)
{
    if (!c->failure.whole.n)
        buf_str(&c->failure.whole, "{\"code\":-32603,\"message\":\"the conductor is ending\"}");
    for (size_t i = 0; i < c->n; i++) {
        LIST_EACH (&c->components[i]->sent, it) {
            struct pending *p = LIST_ENTRY(it, struct pending, node);
            if (p->from == &c->up)
                pending_error(p, failure_tell(&c->failure));
        }
        questions_drop(c->components[i]);
    }
    greet_over(c);
    release_held(c, true);
}

void conductor_fail_as(struct conductor *c, struct failure *why)
{
    bool was_open = c->state == CHAIN_OPEN;

    if (c->failure.whole.n || c->state == CHAIN_ENDING)
        return;
    c->failure = *why;
    *why = (struct failure){0};
    c->status = 1;
    c->state = CHAIN_FAILED;
    if (was_open) {
        /* The other components get a moment to pass the failure on; then the conductor ends. */
        c->dying = true;
        timer_set(loop_timers(c->loop), &c->end, DYING_MS);
        release_held(c, true); /* each is answered with the failure */
    } else {
        fail_the_rest(c);
    }
}

static void tell_ended(struct timer *t)
{
    struct conductor *c = CONTAINER_OF(t, struct conductor, end);

    c->host.ended(c->host.arg, c->status);
}

static void on_end(struct timer *t)
{
    struct conductor *c = CONTAINER_OF(t, struct conductor, end);

    conductor_end(c, c->status);
}

void conductor_end(struct conductor *c, int status)
{
    if (c->state == CHAIN_ENDING)
        return;
    c->status = status;
    fail_the_rest(c);
    c->state = CHAIN_ENDING;
    timer_clear(loop_timers(c->loop), &c->end);
    setup_free_all(c);
    port_close_extra(c);
    lines_stop(&c->up.lines);
    if (c->up.stream)
        stream_finish(c->up.stream, "the conductor is ending", FLUSH_MS);
    for (size_t i = 0; i < c->n; i++)
        component_stop(c->components[i]);
    conductor_check_end(c);
}

void conductor_check_end(struct conductor *c)
{
    if (c->state != CHAIN_ENDING) {
        /* End when no request of the client is open any more. */
        if ((c->at_eof || c->dying) && list_empty(&c->up.in) && list_empty(&c->held))
            timer_set(loop_timers(c->loop), &c->end, 0);
        return;
    }
    if (c->up.stream || c->told_ended)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (c->components[i]->child)
            return;
    if (!list_empty(&c->spares))
        return;
    c->told_ended = true;
    c->end.fire = tell_ended;
    timer_set(loop_timers(c->loop), &c->end, 0);
}

struct conductor *conductor_new(struct loop *loop, const struct conductor_options *options,
                                const struct acp_host *host, struct stream *upstream)
{
    struct conductor *c = MEM_NEW(struct conductor);

    c->loop = loop;
    c->options = *options;
    c->host = *host;
    c->mode = options->mode;
    c->n = options->n_components;
    c->end.fire = on_end;
    list_init(&c->setups);
    list_init(&c->unproven);
    list_init(&c->unnamed);
    list_init(&c->held);
    list_init(&c->spares);
    list_init(&c->idle);
    hop_init(&c->up, c, HOP_UPSTREAM, "Client");
    c->components = MEM_ARRAY(struct hop *, c->n + 1);
    for (size_t i = 0; i < c->n; i++) {
        char label[ACP_LABEL_SIZE];
        snprintf(label, sizeof label, "Proxy(%u)", (unsigned)i % 10000);
        bool agent = c->mode == CONDUCT_AGENT && i + 1 == c->n;
        c->components[i] = MEM_NEW(struct hop);
        hop_init(c->components[i], c, (int)i, agent ? "Agent" : label);
        c->components[i]->line = &options->components[i];
    }
    hop_attach(&c->up, upstream, &up_events, c);
    return c;
}

void conductor_free(struct conductor *c)
{
    timer_clear(loop_timers(c->loop), &c->end);
    for (size_t i = 0; i < c->n; i++)
        hop_fini(c->components[i]);
    hop_fini(&c->up);
    /* Requests in flight point at both of their hops: free the hops when all requests are gone. */
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->components[i]);
    release_held(c, false);
    LIST_EACH_SAFE (&c->idle, it)
        mem_free(LIST_ENTRY(it, struct pending, node));
    failure_fini(&c->failure);
    map_fini(&c->owners);
    map_fini(&c->channels);
    mem_free(c->components);
    mem_free(c);
}
