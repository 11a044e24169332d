/* Calls of the stateless era that wait for input: questions collected into an input_required
 * result, and retries matched to their parked call. Called by modern.c, and by duplex.c and
 * http_agent.c when another daemon takes over. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "mcp/agent/inherited.h"
#include "mcp/agent/modern_request.h"
#include "mcp/agent/modern_result.h"
#include "mcp/agent/seal.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* The most calls that may be parked, of all principals and of one; beyond that an ask is
 * refused. */
enum { PARKED_MAX = 1000, PARKED_BY_ONE = 100 };

uint64_t modern_digest(const struct mcp_message *m)
{
    const struct json_slot *pieces[] = {&m->slots[SLOT_NAME], &m->slots[SLOT_URI],
                                        &m->slots[SLOT_ARGUMENTS]};
    BUF_SCOPED text = {0};

    buf_span(&text, m->rpc.method);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        buf_char(&text, '\0');
        buf_span(&text, pieces[i]->value);
    }
    return seal_digest(buf_view(&text));
}

void modern_ask_free(struct modern_ask *ask)
{
    list_remove(&ask->node);
    mem_free(ask->provider_key);
    mem_free(ask->method);
    mem_free(ask->params);
    mem_free(ask);
}

void modern_unask(struct modern_request *r, struct span provider_key)
{
    LIST_EACH (&r->asks, it) {
        struct modern_ask *ask = LIST_ENTRY(it, struct modern_ask, node);
        if (span_is(provider_key, ask->provider_key)) {
            modern_ask_free(ask);
            return;
        }
    }
}

/* In the stateless era an elicitation by URL has no id. */
static void put_ask_params(struct buf *out, struct span params)
{
    struct json_iter it = json_iter(params);

    if (json_get(params, "elicitationId").type == JSON_NONE) {
        buf_span(out, params);
        return;
    }
    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        if (json_string_is(it.key, SPAN("elicitationId")))
            continue;
        if (out->n > start)
            buf_char(out, ',');
        buf_span(out, it.member);
    }
    buf_char(out, '}');
}

static void put_input_requests(struct buf *out, const struct modern_request *r)
{
    buf_str(out, "\"inputRequests\":{");
    LIST_EACH (&r->asks, it) {
        const struct modern_ask *ask = LIST_ENTRY(it, struct modern_ask, node);
        buf_printf(out, "%s\"%s\":{\"method\":", it == r->asks.next ? "" : ",", ask->key);
        json_quote(out, span_str(ask->method));
        buf_str(out, ",\"params\":");
        put_ask_params(out, ask->params ? span_str(ask->params) : SPAN("{}"));
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

/* End the reply with all open questions; the call goes on waiting without a reply. */
static void park(struct timer *t)
{
    struct modern_request *r = CONTAINER_OF(t, struct modern_request, flush);
    struct modern_agent *a = r->agent;
    const struct seal seal = {
        .call = r->call->handle,
        .principal = r->principal,
        .request = r->digest,
        .expires = r->call->deadline.at,
    };

    if (!r->waits || list_empty(&r->asks))
        return;
    struct buf *out = a->out->begin(a->owner, r->reply, MCP_OUT_FINAL);
    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"input_required\",",
               r->id);
    put_input_requests(out, r);
    buf_str(out, ",\"requestState\":\"");
    seal_put(out, &seal);
    buf_str(out, "\"," MODERN_IDENTITY "}}");
    a->out->end(a->owner, r->reply, MCP_OUT_FINAL);
    r->reply = NULL;
    r->waits = false;
    r->expires = seal.expires;
    if (!r->parked)
        a->n_parked++;
    r->parked = true;
}

static bool may_park(const struct modern_agent *a, const struct modern_request *r)
{
    size_t own = 0;

    LIST_EACH (&a->requests, it) {
        const struct modern_request *other = LIST_ENTRY(it, struct modern_request, node);
        own += other->parked && other->principal == r->principal;
    }
    return r->parked || (a->n_parked < PARKED_MAX && own < PARKED_BY_ONE);
}

void modern_on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct modern_agent *a = CONTAINER_OF(self, struct modern_agent, peer);
    struct modern_request *r = call->consumer_data;

    if (!may_park(a, r)) {
        ask_answer(call, ask->key,
                   &(struct outcome){.kind = OUTCOME_FAILED,
                                     .why = FAIL_REFUSED,
                                     .text = SPAN("too many calls wait for their client")});
        return;
    }
    struct modern_ask *open = MEM_NEW(struct modern_ask);
    snprintf(open->key, sizeof open->key, "ask-%" PRIu64, ++a->last_ask);
    open->provider_key = mem_span(ask->key);
    open->method = mem_span(ask->method);
    open->params = ask->params.n ? mem_span(ask->params) : NULL;
    list_append(&r->asks, &open->node);
    r->call = call;
    r->flush.fire = park;
    /* The timer fires from the loop, so questions that come at the same time go into one result. */
    timer_set(router_timers(a->host.router), &r->flush, 0);
}

/* --- calls that end while they are parked --- */

static void forget_ended(struct timer *t)
{
    modern_request_free(CONTAINER_OF(t, struct modern_request, flush));
}

bool modern_keep_end(struct modern_request *r, const struct call *call,
                     const struct outcome *outcome)
{
    const struct outcome no_room = {
        .kind = OUTCOME_FAILED,
        .why = FAIL_BUSY,
        .text =
            SPAN("the call has ended, but there was no room to keep its answer (limits.memory)")};
    struct timers *timers = router_timers(r->agent->host.router);
    bool news = outcome->kind != OUTCOME_FAILED ||
                (outcome->why != FAIL_CANCELLED && outcome->why != FAIL_TIMEOUT);

    if (!r->parked || r->waits || !news || r->expires <= timers->now)
        return false;
    if (!modern_request_hold(r, outcome->body.n + outcome->text.n))
        outcome = &no_room;
    r->call = NULL;
    r->ended = call->handle;
    r->op = call->op;
    r->lacks = call->lacks;
    r->end = *outcome;
    buf_span(&r->end_bytes, outcome->body);
    buf_span(&r->end_bytes, outcome->text);
    r->end.body = span_of(r->end_bytes.p, outcome->body.n);
    r->end.text = span_of(r->end_bytes.p + outcome->body.n, outcome->text.n);
    r->flush.fire = forget_ended;
    timer_set(timers, &r->flush, r->expires - timers->now);
    return true;
}

static struct modern_request *find_ended(const struct modern_agent *a, uint64_t handle)
{
    LIST_EACH (&a->requests, it) {
        struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        if (r->ended == handle)
            return r;
    }
    return NULL;
}

static bool responses_are_objects(const struct json_slot *responses)
{
    struct json_iter it = json_iter(responses->value);

    if (responses->type != JSON_OBJECT)
        return false;
    while (json_next(&it))
        if (it.type != JSON_OBJECT)
            return false;
    return true;
}

/* The parked request that a seal names, if this retry may resume it. `*goes_on` is set, and NULL
 * returned, if it was parked in the daemon before us. */
static struct modern_request *unseal(struct modern_agent *a, const struct mcp_message *m,
                                     struct span state, struct span principal,
                                     const struct going_on **goes_on)
{
    struct seal seal;

    if (!seal_open(state, &seal) || seal.principal != seal_digest(principal) ||
        seal.request != modern_digest(m) || seal.expires < router_timers(a->host.router)->now)
        return NULL;
    const struct json_slot *responses = &m->slots[SLOT_INPUT_RESPONSES];
    if (a->host.inherited && (responses->type == JSON_NONE || responses_are_objects(responses)))
        *goes_on =
            inherited_take_parked(a->host.inherited, a->host.home, seal.call,
                                  responses->type == JSON_OBJECT ? responses->value : SPAN_EMPTY);
    if (*goes_on)
        return NULL;
    struct call *call = router_find(a->host.router, seal.call);
    if (!call)
        return find_ended(a, seal.call);
    if (call->consumer != &a->peer || call->op == OP_STANDING)
        return NULL;
    struct modern_request *r = call->consumer_data;
    return r->parked && !r->waits ? r : NULL;
}

static struct modern_ask *find_ask(const struct modern_request *r, struct span raw_key)
{
    LIST_EACH (&r->asks, it) {
        struct modern_ask *ask = LIST_ENTRY(it, struct modern_ask, node);
        if (json_string_is(raw_key, span_str(ask->key)))
            return ask;
    }
    return NULL;
}

static void fail(struct modern_agent *a, void *reply, struct span id, const char *text)
{
    rpc_put_error(a->out->begin(a->owner, reply, MCP_OUT_FINAL), id, RPC_INVALID_PARAMS,
                  span_str(text), SPAN_EMPTY);
    a->out->end(a->owner, reply, MCP_OUT_FINAL);
}

bool modern_resume(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, const struct going_on **goes_on)
{
    const struct json_slot *state = &m->slots[SLOT_REQUEST_STATE];
    const struct json_slot *responses = &m->slots[SLOT_INPUT_RESPONSES];
    BUF_SCOPED scratch = {0};

    if (state->type != JSON_STRING)
        return false;
    struct span text = json_text(state->value, &scratch);
    if (!span_starts(text, SPAN(SEAL_PREFIX)))
        return false; /* the server's own state: passed on to the server */
    struct modern_request *r = unseal(a, m, text, principal, goes_on);
    if (*goes_on)
        return false;
    if (!r) {
        fail(a, reply, m->rpc.id,
             "Invalid requestState: it was changed, has expired, or belongs to another request");
        return true;
    }
    if (responses->type != JSON_NONE && !responses_are_objects(responses)) {
        fail(a, reply, m->rpc.id, "Invalid inputResponses: each must be an object");
        return true;
    }
    modern_request_bind(r, m, reply);
    r->parked = false;
    a->n_parked--;
    if (r->ended) {
        modern_request_finish(r, r->op, r->lacks, &r->end);
        return true;
    }
    /* Questions that this retry leaves open are asked again. An answer may end the call and free r.
     */
    timer_set(router_timers(a->host.router), &r->flush, 0);
    uint64_t handle = r->call->handle;
    struct json_iter it = json_iter(responses->value);
    while (responses->type == JSON_OBJECT && json_next(&it)) {
        if (!router_find(a->host.router, handle))
            break;
        struct modern_ask *ask = find_ask(r, it.key);
        if (!ask)
            continue;
        char *key = ask->provider_key;
        ask->provider_key = NULL;
        modern_ask_free(ask);
        ask_answer(r->call, span_str(key),
                   &(struct outcome){.kind = OUTCOME_RESULT, .body = it.value});
        mem_free(key);
    }
    return true;
}

/* --- another daemon takes over --- */

static void put_asks(struct buf *out, const struct modern_request *r)
{
    json_out_open(out, "asks", '[');
    LIST_EACH (&r->asks, it) {
        const struct modern_ask *ask = LIST_ENTRY(it, struct modern_ask, node);
        json_out_open(out, NULL, '{');
        json_out_str(out, "key", ask->key);
        json_out_str(out, "id", ask->provider_key);
        json_out_str(out, "method", ask->method);
        if (ask->params)
            json_out_raw(out, "params", span_str(ask->params));
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void modern_agent_show_parked(struct modern_agent *a, modern_parked_fn *show, void *arg)
{
    LIST_EACH (&a->requests, it) {
        struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        BUF_SCOPED members = {0};
        if (!r->parked || r->waits || r->moved || !r->call || !a->host.home)
            continue;
        json_out_number(&members, "handle", r->call->handle);
        json_out_number(&members, "expires", r->expires);
        json_out_str(&members, "home", a->host.home);
        put_asks(&members, r);
        r->moved = show(arg, r->call, buf_view(&members));
    }
}
