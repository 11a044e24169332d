/* The initialize request along the chain: starts the components, greets the agent and each proxy,
 * and tries proxy dialects one after another. Called by conductor.c, and by component.c when a
 * process ends early. */
#include "acp/edit.h"
#include "acp/inside.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/* Silence this long is a proxy that does not know the question, or one that is slow to start: the
 * next dialect is tried as well, and an answer to any attempt counts. */
enum { SILENCE_MS = 5000, NEWEST_VERSION = 2 };

/* A proxy that is being initialised. */
struct greeting {
    struct hop *hop, *from;
    char *id, *inner_id; /* of the request that is behind this */
    struct batch *batch;
    struct buf params;
    unsigned tried;        /* 1u << enum proxy_dialect */
    uint64_t ids[P_COUNT]; /* of our attempts */
    enum proxy_dialect revealed;
    bool fixed;     /* the configuration says what it speaks */
    bool accepted;  /* it has passed initialize on */
    bool cancelled; /* the request behind this has been */
    struct timer silence;
};

/* Where the offer and its echo may stand; current place first. */
static const char *const *const offer_paths[] = {
    (const char *const[]){"clientCapabilities", "_meta", "symposium", "proxy", NULL},
    (const char *const[]){"_meta", "symposium", "proxy", NULL},
    (const char *const[]){"_meta", "proxy", NULL},
};
static const char *const *const echo_paths[] = {
    (const char *const[]){"agentCapabilities", "_meta", "symposium", "proxy", NULL},
    (const char *const[]){"_meta", "symposium", "proxy", NULL},
    (const char *const[]){"_meta", "proxy", NULL},
};

static bool has_any(struct span object, const char *const *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (edit_truthy(object, paths[i]))
            return true;
    return false;
}

static struct span object_or_empty(struct span params)
{
    return params.n && params.p[0] == '{' ? params : SPAN("{}");
}

static bool has_offer(const struct acp_message *m)
{
    return has_any(object_or_empty(m->params), offer_paths, COUNT_OF(offer_paths));
}

/* Append the object without any of these members. */
static void put_without(struct buf *out, struct span object, const char *const *const *paths,
                        size_t n)
{
    struct buf now = {0};

    buf_span(&now, object);
    for (size_t i = 0; i < n; i++) {
        struct buf next = {0};
        edit_remove(&next, buf_view(&now), paths[i]);
        buf_fini(&now);
        now = next;
    }
    buf_span(out, buf_view(&now));
    buf_fini(&now);
}

/* --- the answer on its way to whoever asked --- */

static void finish(struct pending *p, bool ok, struct span body)
{
    struct conductor *c = p->to ? p->to->c : p->from->c;
    bool is_up = p->from == &c->up;
    BUF_SCOPED edited = {0};

    if (ok && is_up && c->parent_offered) {
        edit_set(&edited, object_or_empty(body), echo_paths[0], SPAN("true"));
        body = buf_view(&edited);
    }
    if (ok)
        pending_result(p, body);
    else
        pending_error(p, body);
    if (is_up && ok && c->state == CHAIN_OPENING) {
        conductor_opened(c);
    } else if (is_up && !ok && !c->failure.whole.n) {
        conductor_fail(c, body);
        c->may_retry = true;
    }
}

/* Something that we found wrong ourselves; the text may have command lines in it. */
static void put_wrong(struct buf *error, const char *who, const char *text)
{
    BUF_SCOPED clean = {0};

    log_error(who, "%s", text);
    log_redact(&clean, span_str(text));
    buf_printf(error, "{\"code\":%d,\"message\":", RPC_INTERNAL_ERROR);
    json_quote(error, buf_view(&clean));
    buf_char(error, '}');
}

static void finish_wrong(struct pending *p, struct conductor *c, const char *text)
{
    BUF_SCOPED error = {0};

    put_wrong(&error, c->options.name, text);
    conductor_fail(c, buf_view(&error));
    finish(p, false, buf_view(&error));
}

/* --- the agent --- */

static bool agent_answered(struct pending *p, const struct acp_message *m)
{
    struct conductor *c = p->to->c;
    BUF_SCOPED result = {0};
    int64_t version = 0;
    char text[120];

    if (m->rpc.kind == RPC_ERROR) {
        finish(p, false, m->rpc.error);
        return true;
    }
    bool has = json_int(m->slots[ACP_VERSION].value, &version);
    if (c->version >= 2 && (!has || version != c->version)) {
        if (has)
            snprintf(text, sizeof text,
                     "the agent answered initialize with protocol version %lld, not with %lld",
                     (long long)version, (long long)c->version);
        else
            snprintf(text, sizeof text,
                     "the agent answered initialize without a protocol version (%lld was selected)",
                     (long long)c->version);
        finish_wrong(p, c, text);
        return true;
    }
    setup_learn_agent(c, m->rpc.result);
    setup_put_welcome(c, &result, m->rpc.result);
    finish(p, true, buf_view(&result));
    return true;
}

/* --- a proxy --- */

static void greeting_free(struct greeting *g)
{
    /* Answers to other attempts are nobody's business any more. */
    LIST_EACH (&g->hop->sent, it) {
        struct pending *p = LIST_ENTRY(it, struct pending, node);
        if (p->owner != g)
            continue;
        p->owner = NULL;
        pending_let_go(p);
    }
    timer_clear(loop_timers(g->hop->c->loop), &g->silence);
    g->hop->greeting = NULL;
    buf_fini(&g->params);
    mem_free(g->id);
    mem_free(g->inner_id);
    batch_release(g->batch);
    mem_free(g);
}

void greet_drop(struct hop *h)
{
    if (h->greeting)
        greeting_free(h->greeting);
}

static bool proxy_answered(struct pending *p, const struct acp_message *m);

/* A cancel reaches the attempt of its time, but it is meant for all that follow. */
static void note_cancel(struct greeting *g)
{
    LIST_EACH (&g->hop->sent, it) {
        const struct pending *p = LIST_ENTRY(it, struct pending, node);
        g->cancelled = g->cancelled || (p->owner == g && p->cancelled);
    }
}

static void attempt(struct greeting *g, enum proxy_dialect d)
{
    const struct proxy_row *row = &proxy_rows[d];
    struct acp_message asked = {.rpc = {.id = span_str(g->id)},
                                .batch = g->batch,
                                .nested = g->inner_id != NULL,
                                .inner_id = span_str(g->inner_id)};
    BUF_SCOPED method = {0}, offered = {0};
    struct conductor *c = g->hop->c;

    log_debug(g->hop->label, "%s as %s", row->initialize, row->name);
    note_cancel(g);
    g->tried |= 1u << d;
    /* What comes in answer is plain, whatever this component's envelopes look like. */
    bool nested = g->hop->nested;
    g->hop->nested = false;
    struct pending *p = pending_new(g->hop, g->from, &asked);
    g->hop->nested = nested;
    p->answered = proxy_answered;
    p->owner = g;
    g->ids[d] = p->id;
    json_quote(&method, span_str(row->initialize));
    struct span params = buf_view(&g->params);
    if (row->offers) {
        edit_set(&offered, object_or_empty(params),
                 EDIT_PATH("clientCapabilities", "_meta", "symposium"),
                 SPAN("{\"version\":\"1.0\",\"proxy\":true}"));
        params = buf_view(&offered);
    }
    p->trace = acp_trace_call(c->options.trace, true, false, g->from->label, g->hop->label,
                              buf_view(&method), params);
    place_send((struct hop_place){g->hop, false}, p, buf_view(&method), params);
    if (g->cancelled)
        pending_cancel(p);
    if (!g->fixed)
        timer_set(loop_timers(c->loop), &g->silence, SILENCE_MS);
}

/* The dialect to try next; P_UNKNOWN when there is none left. */
static enum proxy_dialect next_dialect(const struct greeting *g)
{
    enum proxy_dialect told = g->revealed == P0 ? P1 : g->revealed;

    if (told != P_UNKNOWN && !(g->tried & 1u << told))
        return told;
    for (size_t i = 0; !g->fixed && i < COUNT_OF(proxy_order); i++)
        if (!(g->tried & 1u << proxy_order[i]))
            return proxy_order[i];
    return P_UNKNOWN;
}

static void on_silence(struct timer *t)
{
    struct greeting *g = CONTAINER_OF(t, struct greeting, silence);
    enum proxy_dialect d = next_dialect(g);

    if (g->accepted || d == P_UNKNOWN)
        return;
    log_info(g->hop->label, "no answer to initialize yet: trying %s as well", proxy_rows[d].name);
    attempt(g, d);
}

static void not_a_proxy(struct pending *p, struct hop *h, struct span error)
{
    BUF_SCOPED text = {0};

    component_put_name(&text, h);
    buf_str(&text, " is not a proxy");
    /* The short form is what other programs look for. */
    buf_printf(&text, ": component %d is not a proxy", h->index);
    if (error.n)
        buf_printf(&text, "; it answered " SPAN_FMT, SPAN_ARG(span_cut(error, 0, 200)));
    finish_wrong(p, h->c, buf_cstr(&text));
}

static void proxy_accepted(struct pending *p, struct hop *h, bool offered, struct span result)
{
    BUF_SCOPED stripped = {0};

    if (offered && !has_any(result, echo_paths, COUNT_OF(echo_paths))) {
        not_a_proxy(p, h, SPAN_EMPTY);
        return;
    }
    h->greeted = true;
    if (offered)
        put_without(&stripped, result, echo_paths, COUNT_OF(echo_paths));
    finish(p, true, offered ? buf_view(&stripped) : result);
}

static bool proxy_answered(struct pending *p, const struct acp_message *m)
{
    struct greeting *g = p->owner;

    if (!g)
        return true; /* another attempt was faster */
    struct hop *h = g->hop;
    g->cancelled = g->cancelled || p->cancelled;
    enum proxy_dialect tried = P_UNKNOWN;
    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (g->ids[d] == p->id)
            tried = d;
    if (m->rpc.kind == RPC_RESULT) {
        greeting_free(g);
        if (h->dialect == P_UNKNOWN)
            h->dialect = tried;
        proxy_accepted(p, h, proxy_rows[tried].offers, m->rpc.result);
        return true;
    }
    int64_t code = rpc_error_of(m->rpc.error).code;
    bool unknown =
        code == RPC_METHOD_NOT_FOUND || code == RPC_INVALID_REQUEST || code == RPC_INVALID_PARAMS;
    enum proxy_dialect d = next_dialect(g);
    /* Once it has passed initialize on, an error is the true answer from further right. */
    if (!g->accepted && (unknown || g->revealed != P_UNKNOWN) && d != P_UNKNOWN && h->child) {
        acp_trace_answer(h->c->options.trace, p->trace, false, m->rpc.error);
        attempt(g, d);
        return true;
    }
    bool last = true;
    LIST_EACH (&h->sent, it)
        last = last && LIST_ENTRY(it, struct pending, node)->owner != g;
    if (!last && unknown && !g->accepted)
        return true;
    bool accepted = g->accepted;
    greeting_free(g);
    if (!accepted && unknown)
        not_a_proxy(p, h, m->rpc.error);
    else
        finish(p, false, m->rpc.error);
    return true;
}

/* What the configuration says, or what another component of the same command line turned out to
 * speak. */
static enum proxy_dialect known_dialect(const struct hop *h, bool *fixed)
{
    const struct conductor *c = h->c;
    enum proxy_dialect d = h->line->dialect != P_UNKNOWN ? h->line->dialect : c->options.dialect;

    *fixed = d != P_UNKNOWN;
    for (size_t i = 0; d == P_UNKNOWN && i < c->n; i++) {
        const struct hop *other = &c->components[i];
        bool same = other->greeted && other->line->n_argv == h->line->n_argv;
        for (size_t k = 0; same && k < h->line->n_argv; k++)
            same = strcmp(other->line->argv[k], h->line->argv[k]) == 0;
        if (same)
            d = other->dialect;
    }
    return d;
}

static void greet_proxy(struct hop *h, struct hop *from, const struct acp_message *m,
                        struct span params)
{
    struct greeting *g = MEM_NEW(struct greeting);

    greet_drop(h);
    h->greeting = g;
    g->hop = h;
    g->from = from;
    g->id = mem_span(m->rpc.id);
    g->batch = m->batch;
    batch_hold(g->batch);
    g->inner_id = m->nested && m->inner_id.n ? mem_span(m->inner_id) : NULL;
    g->revealed = P_UNKNOWN;
    g->silence.fire = on_silence;
    buf_span(&g->params, params);
    enum proxy_dialect d = h->greeted ? h->dialect : known_dialect(h, &g->fixed);
    if (d == P0)
        h->dialect = P0;
    attempt(g, d == P_UNKNOWN ? proxy_order[0] : d);
}

bool greet_heard(struct hop *h, const struct acp_message *m, enum proxy_dialect d)
{
    struct greeting *g = h->greeting;

    if (h->dialect != d)
        log_debug(h->label, "speaks %s", proxy_rows[d].name);
    h->dialect = d;
    h->nested = m->nested;
    if (!g)
        return false;
    enum proxy_dialect probe = proxy_initialize_of(m->method);
    /* Only P0 and P1 are asked by an offer: in another's envelope it is a question come back. */
    if (m->word == WORD_INITIALIZE && !proxy_rows[d].offers && has_offer(m)) {
        probe = P1;
    } else if (m->word == WORD_INITIALIZE) {
        g->accepted = true;
        timer_clear(loop_timers(h->c->loop), &g->silence);
        return false;
    }
    if (probe == d)
        g->accepted = true; /* it knew the question, and makes a mistake of its own */
    if (probe == P_UNKNOWN || !(g->tried & 1u << probe) || probe == d)
        return false;
    /* Proxies pass on what they do not know: our question comes back, and tells what they speak. */
    g->revealed = d;
    if (acp_is_request(m))
        hop_error(h, m, RPC_METHOD_NOT_FOUND, "Method not found", NULL);
    return true;
}

bool greet_restart(struct hop *h)
{
    struct greeting *g = h->greeting;
    enum proxy_dialect d = g && !g->accepted ? next_dialect(g) : P_UNKNOWN;
    struct err err;

    if (d == P_UNKNOWN || h->c->state == CHAIN_FAILED)
        return false;
    log_info(h->label, "ended during initialize: starting it again to try %s", proxy_rows[d].name);
    if (component_start(h, &err)) {
        log_error(h->label, "cannot be started again: %s", err.text);
        return false;
    }
    note_cancel(g);
    LIST_EACH_SAFE (&h->sent, it)
        pending_free(LIST_ENTRY(it, struct pending, node));
    attempt(g, d);
    return true;
}

/* --- which way initialize goes --- */

static bool parent_answered(struct pending *p, const struct acp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;

    finish(p, ok, ok ? m->rpc.result : m->rpc.error);
    return true;
}

static void send_on(struct hop *from, const struct acp_message *m, struct span params)
{
    static const char plain[] = "\"initialize\"";
    struct hop_place to = conductor_right_of(from->c, from->index);
    struct acp_message renamed = *m;

    if (!to.hop || (!conductor_is_agent(to.hop) && !to.wrapped)) {
        if (to.hop)
            greet_proxy(to.hop, from, m, params);
        else
            hop_error(from, m, RPC_INTERNAL_ERROR, "no agent component in list", NULL);
        return;
    }
    /* Behind the last proxy a proxy initialisation goes on as plain initialize. */
    renamed.method = span_of(plain, sizeof plain - 1);
    struct pending *p = conductor_relay(from, &renamed, to, params);
    p->answered = to.wrapped ? parent_answered : agent_answered;
}

void greet_onward(struct hop *from, const struct acp_message *m)
{
    if (!acp_is_request(m))
        return;
    if (from->index != HOP_UPSTREAM && has_offer(m)) {
        hop_error(from, m, RPC_INTERNAL_ERROR,
                  "conductor received unexpected initialization request with proxy capability",
                  NULL);
        return;
    }
    send_on(from, m, m->params);
}

/* 0, or the code to refuse it with. */
static int read_version(struct conductor *c, const struct acp_message *m, const char **why)
{
    int64_t version;

    if (!json_int(m->slots[ACP_VERSION].value, &version) || version < 0 || version > 65535) {
        *why = "`protocolVersion` must be an integer from 1 to 65535";
        return RPC_INVALID_PARAMS;
    }
    if (version == 0) {
        *why = "protocol version 0 is not supported";
        return RPC_INVALID_REQUEST;
    }
    c->version = version > NEWEST_VERSION ? NEWEST_VERSION : version;
    return 0;
}

/* The agent first: it is the slowest to start as a rule. */
static int start_components(struct conductor *c, struct buf *error)
{
    struct err err;

    for (size_t i = c->n; i-- > 0;) {
        struct hop *h = &c->components[i];
        if (h->child || component_start(h, &err) == 0)
            continue;
        BUF_SCOPED text = {0};
        component_put_name(&text, h);
        buf_printf(&text, " cannot be started: %s", err.text);
        put_wrong(error, h->label, buf_cstr(&text));
        return ERR_PROTOCOL;
    }
    return 0;
}

/* The mode this first message asks for is settled: NULL, or why it cannot be. */
static const char *settle_mode(struct conductor *c, const struct acp_message *m, bool offered)
{
    enum proxy_dialect d = proxy_initialize_of(m->method);

    if (m->word != WORD_INITIALIZE && d == P_UNKNOWN)
        return c->mode == CONDUCT_PROXY ? "expected `proxy/initialize` request"
                                        : "expected `initialize` request";
    if (d == P_UNKNOWN && !offered)
        return c->mode == CONDUCT_PROXY ? "expected `proxy/initialize` request" : NULL;
    if (c->mode == CONDUCT_AGENT && c->options.strict)
        return "expected `initialize` request";
    if (c->mode == CONDUCT_AGENT && c->n)
        snprintf(c->components[c->n - 1].label, sizeof c->up.label, "Proxy(%u)",
                 (unsigned)(c->n - 1) % 10000);
    c->mode = CONDUCT_PROXY;
    c->parent_offered = d == P_UNKNOWN;
    /* P0 and P1 greet alike; only the configuration can tell. */
    c->up.dialect = d != P_UNKNOWN ? d : c->options.dialect == P0 ? P0 : P1;
    return NULL;
}

static void refuse_upstream(struct conductor *c, const struct acp_message *m, int code,
                            const char *text, const char *data, bool for_good)
{
    BUF_SCOPED error = {0};

    buf_printf(&error, "{\"code\":%d,\"message\":", code);
    json_quote(&error, span_str(text));
    if (data) {
        buf_str(&error, ",\"data\":");
        json_quote(&error, span_str(data));
    }
    buf_char(&error, '}');
    hop_refuse(&c->up, m, buf_view(&error));
    if (for_good)
        conductor_fail(c, buf_view(&error));
}

void greet_upstream(struct conductor *c, const struct acp_message *m)
{
    struct span given = object_or_empty(m->params);
    bool offered = m->word == WORD_INITIALIZE && has_offer(m);
    BUF_SCOPED error = {0};
    struct buf params = {0};

    if (!acp_is_request(m))
        return;
    const char *why = settle_mode(c, m, offered);
    if (why) {
        bool hello = m->word == WORD_INITIALIZE || m->word == WORD_PROXY_INITIALIZE;
        refuse_upstream(c, m, RPC_INVALID_REQUEST, "Invalid request", why, hello);
        return;
    }
    int code = read_version(c, m, &why);
    if (code) {
        refuse_upstream(c, m, code,
                        code == RPC_INVALID_PARAMS ? "Invalid params" : "Invalid request", why,
                        false);
        return;
    }
    if (c->mode == CONDUCT_AGENT && !c->n) {
        refuse_upstream(c, m, RPC_INTERNAL_ERROR, "no agent component in list", NULL, true);
        return;
    }
    c->may_retry = false;
    c->status = 0;
    failure_fini(&c->failure);
    c->state = CHAIN_OPENING;
    if (offered)
        put_without(&params, given, offer_paths, COUNT_OF(offer_paths));
    else
        buf_span(&params, given);
    int64_t asked = 0;
    if (json_int(m->slots[ACP_VERSION].value, &asked) && asked != c->version) {
        struct buf clamped = {0}, number = {0};
        buf_u64(&number, (uint64_t)c->version);
        edit_set(&clamped, buf_view(&params), EDIT_PATH("protocolVersion"), buf_view(&number));
        buf_fini(&number);
        buf_fini(&params);
        params = clamped;
    }
    if (start_components(c, &error)) {
        hop_refuse(&c->up, m, buf_view(&error));
        conductor_fail(c, buf_view(&error));
    } else {
        send_on(&c->up, m, buf_view(&params));
    }
    buf_fini(&params);
}
