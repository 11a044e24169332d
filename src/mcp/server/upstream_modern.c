/* Servers of the stateless era: `_meta` of each request, rounds of input for one call, and the
 * subscriptions/listen stream; also rounds between an agent of that era and a server of the
 * initialize era. Called by upstream_calls.c, upstream_tasks.c, task_request.c, lists.c and
 * notices.c; the stream's timers are set up by provider.c. */
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/server/task_request.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* A call fails after this many rounds of input, as with the official client. */
enum { MAX_ROUNDS = 10 };
/* The waits before the subscriptions/listen is sent again; one that stayed open for LASTED_MS has
 * worked. */
enum { RELISTEN_MS = 1000, RELISTEN_MAX_MS = 60 * 1000, LASTED_MS = 5 * 1000 };
/* How long a replaced subscription stays open after the new one is acknowledged: notifications that
 * the server sent on the old stream before that may still arrive. */
enum { SETTLE_MS = 100 };
/* How long a call that subscribes waits for the acknowledgement. */
enum { ACKNOWLEDGE_MS = 2000 };
/* The wait before a round without questions: the server only wants the request again. */
enum { PAUSE_MS = 250 };

/* A call that takes several rounds of input: its request, and the answers so far. */
struct rounds {
    struct kept_request kept;
    unsigned done;        /* rounds so far */
    size_t open;          /* asks without an answer */
    struct buf responses; /* "key":{...},... collected so far */
    char *state;          /* the server's requestState, raw; NULL when the server sent none */
    struct mcp_provider *provider;
    struct sent *sent;
    struct timer pause;
    bool refused; /* an ask failed: the call cannot go on */
    enum failure why;
    struct buf refusal; /* raw error object of the agent, or our text */
};

void upstream_modern_put_meta(struct buf *out, unsigned answers, struct span declares)
{
    buf_str(out, "\"" MCP_META_PREFIX "protocolVersion\":\"" MCP_MODERN "\",\"" MCP_META_PREFIX
                 "clientCapabilities\":");
    upstream_put_capabilities(out, answers, declares);
    buf_str(out, ",\"" MCP_META_PREFIX
                 "clientInfo\":{\"name\":\"rialto\",\"version\":\"" RIALTO_VERSION "\"}");
}

void upstream_modern_free(struct rounds *r)
{
    if (!r)
        return;
    timer_clear(router_timers(r->provider->core.router), &r->pause);
    buf_fini(&r->kept.bytes);
    buf_fini(&r->responses);
    buf_fini(&r->refusal);
    mem_free(r->state);
    mem_free(r);
}

static void on_pause_over(struct timer *t);

void upstream_modern_keep(struct mcp_provider *p, struct sent *sent, const struct request *request)
{
    sent->rounds = MEM_NEW(struct rounds);
    sent->rounds->provider = p;
    sent->rounds->sent = sent;
    sent->rounds->pause.fire = on_pause_over;
    kept_request_set(&sent->rounds->kept, request);
}

void upstream_modern_declare(struct rounds *rounds, unsigned answers)
{
    rounds->kept.request.answers |= answers;
}

static void end_refused(struct sent *sent)
{
    struct rounds *r = sent->rounds;
    struct outcome outcome = {.kind = OUTCOME_ERROR, .body = buf_view(&r->refusal)};

    if (r->why != FAIL_NONE)
        outcome =
            (struct outcome){.kind = OUTCOME_FAILED, .why = r->why, .text = buf_view(&r->refusal)};
    call_done(sent->call, &outcome);
}

/* Every ask is answered: send the same request once more, with the answers. */
static void next_round(struct mcp_provider *p, struct sent *sent)
{
    struct rounds *r = sent->rounds;
    BUF_SCOPED extra = {0};

    if (r->responses.n) {
        buf_str(&extra, "\"inputResponses\":{");
        buf_span(&extra, buf_view(&r->responses));
        buf_char(&extra, '}');
    }
    if (r->state)
        buf_printf(&extra, "%s\"requestState\":%s", extra.n ? "," : "", r->state);
    buf_reset(&r->responses, 0);
    upstream_sent_renew(p, sent);
    upstream_send_call(p, sent, &r->kept.request, buf_view(&extra));
}

static void on_pause_over(struct timer *t)
{
    struct rounds *r = CONTAINER_OF(t, struct rounds, pause);

    next_round(r->provider, r->sent);
}

/* The last open ask was answered. True if the call has ended. */
static bool round_complete(struct mcp_provider *p, struct sent *sent)
{
    if (!sent->rounds->refused) {
        next_round(p, sent);
        return false;
    }
    end_refused(sent);
    return true;
}

/* A server of the initialize era that wants pages visited gets no answers, only the call again: so
 * only note whether the user did not agree. */
static void note_visit(const struct mcp_provider *p, struct rounds *r, struct span answer)
{
    if (r->refused || json_string_is(json_get(answer, "action").value, SPAN("accept")))
        return;
    r->refused = true;
    r->why = FAIL_REFUSED;
    buf_printf(&r->refusal, "the user did not agree to visit the page that server '%s' asks for",
               p->alias);
}

void upstream_modern_answered(struct mcp_provider *p, struct sent *sent, struct span key,
                              const struct outcome *outcome)
{
    struct rounds *r = sent->rounds;

    if (outcome->kind == OUTCOME_RESULT && !p->modern) {
        note_visit(p, r, outcome->body);
    } else if (outcome->kind == OUTCOME_RESULT) {
        if (r->responses.n)
            buf_char(&r->responses, ',');
        buf_span(&r->responses, key);
        buf_char(&r->responses, ':');
        buf_span(&r->responses, outcome->body);
    } else if (!r->refused) {
        bool ours = outcome->kind == OUTCOME_FAILED;
        r->refused = true;
        r->why = ours ? outcome->why : FAIL_NONE;
        buf_span(&r->refusal, ours ? outcome->text : outcome->body);
    }
    if (--r->open == 0 && round_complete(p, sent))
        upstream_sent_free(p, sent);
}

static void ask_all(struct mcp_provider *p, struct sent *sent, struct json_slot requests)
{
    const struct outcome no_such_question = {
        .kind = OUTCOME_FAILED,
        .why = FAIL_REFUSED,
        .text = SPAN("the server asked for something that does not exist"),
    };
    struct json_iter it = json_iter(requests.value);

    while (requests.type == JSON_OBJECT && json_next(&it)) {
        struct json_slot method = json_get(it.value, "method"),
                         params = json_get(it.value, "params");
        BUF_SCOPED scratch = {0};
        struct ask ask = {.key = it.key, /* raw, as the answer will carry it */
                          .params = params.type == JSON_OBJECT ? params.value : SPAN_EMPTY};
        if (method.type == JSON_STRING) {
            ask.method = json_text(method.value, &scratch);
            ask.needs = mcp_ask_needs(method.value, ask.params);
        }
        sent->rounds->open++;
        if (ask.needs)
            ask_put(sent->call, &ask);
        else
            upstream_modern_answered(p, sent, it.key, &no_such_question);
    }
}

static void end_unwanted(struct sent *sent, struct span why)
{
    call_done(sent->call,
              &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_PROTOCOL, .text = why});
}

/* Count one more round; false: there were too many, and the call has ended. */
static bool begin_round(struct sent *sent)
{
    if (++sent->rounds->done > MAX_ROUNDS) {
        end_unwanted(sent, SPAN("the server asked for input too many times"));
        return false;
    }
    sent->keep = true;
    return true;
}

static void ask_visit(struct sent *sent, unsigned n, struct span page)
{
    char key[24];

    snprintf(key, sizeof key, UPSTREAM_VISIT_KEY "%u", n);
    sent->rounds->open++;
    ask_put(sent->call, &(struct ask){.key = span_str(key),
                                      .method = SPAN("elicitation/create"),
                                      .params = page,
                                      .needs = ANSWERS_ELICIT_URL});
}

bool upstream_modern_ask_visits(struct mcp_provider *p, struct sent *sent,
                                const struct mcp_message *m)
{
    struct rpc_error error = rpc_error_of(m->rpc.error);
    struct json_slot pages = json_get(error.data, "elicitations");
    struct json_iter it = json_iter(pages.value), first = it;

    if (p->modern || error.code != MCP_ERROR_VISIT_FIRST || pages.type != JSON_ARRAY ||
        !json_next(&first) || first.type != JSON_OBJECT)
        return false;
    if (!begin_round(sent))
        return true;
    sent->rounds->open = 1; /* as in upstream_modern_ask_input */
    for (unsigned n = 0; json_next(&it); n++)
        if (it.type == JSON_OBJECT)
            ask_visit(sent, n, it.value);
    if (--sent->rounds->open == 0 && round_complete(p, sent))
        sent->keep = false;
    return true;
}

bool upstream_modern_ask_input(struct mcp_provider *p, struct sent *sent,
                               const struct mcp_message *m)
{
    struct rounds *r = sent->rounds;
    const struct json_slot *state = &m->slots[SLOT_REQUEST_STATE];
    struct span type = m->slots[SLOT_RESULT_TYPE].value;

    if (!p->modern || json_string_is(type, SPAN("complete")))
        return false;
    if (!json_string_is(type, SPAN("input_required"))) {
        end_unwanted(sent, SPAN("the server answered with a type of result that nobody asked for"));
        return true;
    }
    if (!r)
        return false;
    if (!begin_round(sent))
        return true;
    mem_free(r->state);
    r->state = state->type == JSON_NONE ? NULL : mem_span(state->value);
    struct json_iter any = json_iter(m->slots[SLOT_INPUT_REQUESTS].value);
    if (m->slots[SLOT_INPUT_REQUESTS].type != JSON_OBJECT || !json_next(&any)) {
        timer_set(router_timers(p->core.router), &r->pause, PAUSE_MS);
        return true;
    }
    /* Answers may come inside ask_all: the 1 keeps the round open until all asks are made. */
    r->open = 1;
    ask_all(p, sent, m->slots[SLOT_INPUT_REQUESTS]);
    if (--r->open == 0 && round_complete(p, sent))
        sent->keep = false;
    return true;
}

/* --- subscriptions --- */

/* The first call that waits for this subscriptions/listen or an earlier one, or NULL. UINT64_MAX:
 * also calls whose subscriptions/listen is not sent yet. */
static struct sent *first_subscribing(const struct mcp_provider *p, uint64_t id)
{
    LIST_EACH (&p->all_sent, it) {
        struct sent *sent = LIST_ENTRY(it, struct sent, node);
        if (sent->subscribes && sent->listen <= id && (sent->listen || id == UINT64_MAX))
            return sent;
    }
    return NULL;
}

/* End the calls that wait for this subscription. Inside call_done, others may begin and end. */
static void end_subscribing(struct mcp_provider *p, uint64_t id)
{
    struct sent *sent;

    while ((sent = first_subscribing(p, id))) {
        struct call *call = sent->call;
        upstream_sent_free(p, sent);
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
    }
    if (!first_subscribing(p, UINT64_MAX))
        timer_clear(router_timers(p->core.router), &p->listen_wait);
}

void upstream_on_listen_silence(struct timer *t)
{
    end_subscribing(CONTAINER_OF(t, struct mcp_provider, listen_wait), UINT64_MAX);
}

static void listen_later(struct mcp_provider *p)
{
    struct timers *timers = router_timers(p->core.router);
    struct backoff *b = &p->listen_backoff;

    b->first = RELISTEN_MS;
    b->max = RELISTEN_MAX_MS;
    if (timers->now - p->listened_at >= LASTED_MS)
        backoff_reset(b);
    timer_set(timers, &p->listen, backoff_next(b, id_random_u64()));
}

/* The server has ended a subscription. If it was the newest, the one before it stays. */
static void listen_over(struct mcp_provider *p, bool again)
{
    if (!mcp_provider_expects(p, p->listen_old))
        p->listen_old = 0;
    if (mcp_provider_expects(p, p->listen_id))
        return;
    p->listen_id = p->listen_old;
    p->listen_old = 0;
    p->listen_acked = false;
    if (again)
        listen_later(p);
    else
        end_subscribing(p, UINT64_MAX); /* this server has no subscriptions */
}

static void listen_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    int64_t code = m->rpc.kind == RPC_ERROR ? rpc_error_of(m->rpc.error).code : 0;
    bool refused = code == RPC_METHOD_NOT_FOUND || code == RPC_INVALID_PARAMS;

    (void)sent;
    if (m->rpc.kind == RPC_ERROR)
        log_debug(p->alias, "subscriptions/listen: " SPAN_FMT, SPAN_ARG(m->rpc.error));
    if (code == RPC_INVALID_PARAMS && p->listen_tasks.n) {
        /* Perhaps the server has forgotten one of its tasks: callers can still ask for them. */
        map_fini(&p->listen_tasks);
        refused = false;
    }
    listen_over(p, !refused);
}

static void listen_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)sent;
    log_debug(p->alias, "subscriptions/listen ended: %s (%d)", why, status);
    listen_over(p, status == 0 || status == 429 || status >= 500);
}

/* Only tasks that we know, and that have not ended, are still subscribed to. */
static void prune_tasks(struct mcp_provider *p)
{
    const struct task *t = NULL;
    struct map left = {0};

    while (p->listen_tasks.n && (t = task_request_next_task(p, t)))
        if (!t->ended && map_get(&p->listen_tasks, span_str(t->own)))
            map_put(&left, span_str(t->own), p);
    map_fini(&p->listen_tasks);
    p->listen_tasks = left;
}

static void put_filter(const struct mcp_provider *p, struct buf *out)
{
    buf_str(out, "\"notifications\":{\"toolsListChanged\":true");
    if (p->offers & OFFERS_PROMPTS)
        buf_str(out, ",\"promptsListChanged\":true");
    if (p->offers & OFFERS_RESOURCES)
        buf_str(out, ",\"resourcesListChanged\":true");
    mcp_put_names(out, "resourceSubscriptions", &p->listen_uris);
    mcp_put_names(out, "taskIds", &p->listen_tasks);
    buf_char(out, '}');
}

static void end_listen(struct mcp_provider *p, uint64_t id)
{
    struct sent *sent = idmap_get(&p->sent, id);

    if (sent) {
        upstream_withdraw(p, id, "replaced");
        upstream_sent_free(p, sent);
    }
}

/*
 * The old subscription stays until the new one is acknowledged: between the two no notification
 * may be lost, and one that comes twice only makes agents look twice. At most two are open: one
 * that was never acknowledged is itself replaced.
 */
void upstream_listen(struct mcp_provider *p)
{
    BUF_SCOPED filter = {0};
    bool settled = !p->listen_old || p->listen_acked;

    timer_clear(router_timers(p->core.router), &p->listen);
    end_listen(p, settled ? p->listen_old : p->listen_id);
    if (settled)
        p->listen_old = p->listen_id;
    p->listen_due = p->listen_acked = false;
    p->listened_at = router_timers(p->core.router)->now;
    prune_tasks(p);
    put_filter(p, &filter);
    struct sent *sent = upstream_sent_new(p, listen_answered, listen_failed);
    p->listen_id = sent->id;
    LIST_EACH (&p->all_sent, it) {
        struct sent *waits = LIST_ENTRY(it, struct sent, node);
        if (waits->subscribes && !waits->listen)
            waits->listen = sent->id;
    }
    upstream_request(p, sent, "subscriptions/listen", buf_view(&filter));
}

void upstream_on_listen(struct timer *t)
{
    struct mcp_provider *p = CONTAINER_OF(t, struct mcp_provider, listen);

    if (p->core.state != PROVIDER_READY || !p->modern)
        return;
    if (p->listen_due || !p->listen_acked) {
        upstream_listen(p);
        return;
    }
    end_listen(p, p->listen_old); /* if the server has not ended it already */
    p->listen_old = 0;
}

void upstream_listen_acknowledged(struct mcp_provider *p, uint64_t id)
{
    if (id != p->listen_id)
        return;
    p->listen_acked = true;
    if (p->listen_old && !p->listen_due)
        timer_set(router_timers(p->core.router), &p->listen, SETTLE_MS);
    end_subscribing(p, id);
}

void upstream_listen_put(const struct mcp_provider *p, struct buf *note)
{
    json_out_number(note, "listen", p->listen_id);
    json_out_number(note, "listen_old", p->listen_old);
    json_out_bool(note, "listen_acked", p->listen_acked);
}

static uint64_t resume_listen(struct mcp_provider *p, uint64_t id)
{
    if (id)
        upstream_sent_resume(p, upstream_sent_new(p, listen_answered, listen_failed), id);
    return id;
}

void upstream_listen_resume(struct mcp_provider *p, struct span note)
{
    p->listen_id = resume_listen(p, json_count(note, "listen"));
    p->listen_old = resume_listen(p, json_count(note, "listen_old"));
    p->listen_acked = json_get(note, "listen_acked").type == JSON_TRUE;
}

static void listen_soon(struct mcp_provider *p)
{
    p->listen_due = true;
    /* From the loop, so that several changes make one new stream. A call that is sent earlier opens
     * the stream first (upstream_send_call). */
    timer_set(router_timers(p->core.router), &p->listen, 0);
}

void upstream_subscribe(struct mcp_provider *p, struct call *call, struct span uri)
{
    struct sent *sent = upstream_sent_new(p, NULL, NULL);

    idmap_take(&p->sent, sent->id); /* nothing is sent for this call alone */
    sent->id = 0;
    sent->call = call;
    sent->subscribes = true;
    call->provider_data = sent;
    map_put(&p->listen_uris, uri, p);
    listen_soon(p);
    if (!timer_is_set(&p->listen_wait))
        timer_set(router_timers(p->core.router), &p->listen_wait, ACKNOWLEDGE_MS);
}

void upstream_unsubscribe(struct mcp_provider *p, struct span uri)
{
    map_del(&p->listen_uris, uri);
    listen_soon(p);
}

void upstream_follow_task(struct mcp_provider *p, struct span own)
{
    map_put(&p->listen_tasks, own, p);
    listen_soon(p);
}
