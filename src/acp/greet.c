/* The initialize request along the chain: starts the components, limits the protocol version, reads
 * the agent's answer, and gives up on a component that takes too long. Called by conductor.c, and
 * by questions.c, which initialises each proxy. */
#include "acp/inside.h"
#include "acp/json_edit.h"
#include "acp/offer.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

#include <stdio.h>

enum { OLDEST_VERSION = 1, NEWEST_VERSION = 2 };

/* --- which component the chain is waiting for --- */

void greet_over(struct conductor *c)
{
    timer_clear(loop_timers(c->loop), &c->late);
}

static void on_late(struct timer *t)
{
    struct conductor *c = CONTAINER_OF(t, struct conductor, late);
    const struct hop *h = c->components[c->slow];
    struct failure why = {0};
    char how[120];

    snprintf(how, sizeof how,
             "did not answer initialize within %.10g s (--start-timeout allows more)",
             (double)c->options.start_timeout / 1000);
    log_error(h->label, "%s", how);
    buf_span(&why.whole, questions_error(h));
    if (!why.whole.n)
        component_put_failure(&why, h, how);
    conductor_fail_as(c, &why);
    failure_fini(&why);
}

/* The chain now waits for this neighbour, which gets the whole start timeout for itself. */
static void wait_for(const struct hop *h)
{
    struct conductor *c = h->c;

    greet_over(c);
    /* Once the chain is open, the client decides how long to wait. */
    if (h->index == HOP_UPSTREAM || c->state != CHAIN_OPENING || !c->options.start_timeout)
        return;
    c->slow = h->index;
    c->late.fire = on_late;
    timer_set(loop_timers(c->loop), &c->late, c->options.start_timeout);
}

/* --- the answer to initialize on its way back --- */

void greet_finish(struct pending *p, bool ok, struct span body)
{
    struct conductor *c = p->to ? p->to->c : p->from->c;
    bool is_up = p->from == &c->up;
    BUF_SCOPED edited = {0};

    if (ok && is_up && c->parent_offered) {
        offer_add_echo(&edited, body);
        body = buf_view(&edited);
    }
    if (p->from)
        wait_for(p->from);
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

/* Log and append an error of our own. Command lines in the text may hold secrets. */
static void put_wrong(struct buf *error, const char *who, const char *text)
{
    BUF_SCOPED clean = {0};

    log_error(who, "%s", text);
    log_redact(&clean, span_str(text));
    buf_printf(error, "{\"code\":%d,\"message\":", RPC_INTERNAL_ERROR);
    json_quote(error, buf_view(&clean));
    buf_char(error, '}');
}

void greet_finish_wrong(struct pending *p, struct conductor *c, const char *text)
{
    BUF_SCOPED error = {0};

    put_wrong(&error, c->options.name, text);
    conductor_fail(c, buf_view(&error));
    greet_finish(p, false, buf_view(&error));
}

/* --- the agent --- */

static bool agent_answered(struct pending *p, const struct acp_message *m)
{
    struct conductor *c = p->to->c;
    BUF_SCOPED result = {0};

    if (m->rpc.kind == RPC_ERROR) {
        greet_finish(p, false, m->rpc.error);
        return true;
    }
    /* The conductor relays any version; the client decides if it accepts the agent's version. */
    c->version = p->to->version;
    if (!json_int(m->slots[ACP_VERSION].value, &c->version) && c->version >= 2) {
        greet_finish_wrong(p, c, "the agent answered initialize without a protocol version");
        return true;
    }
    setup_learn_agent(c, m->rpc.result);
    setup_put_welcome(c, &result, m->rpc.result);
    greet_finish(p, true, buf_view(&result));
    return true;
}

/* --- passing initialize on --- */

static bool parent_answered(struct pending *p, const struct acp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;

    greet_finish(p, ok, ok ? m->rpc.result : m->rpc.error);
    return true;
}

/* The params with this version; the returned span may point into `scratch`. */
static struct span with_version(struct span params, int64_t version, struct buf *scratch)
{
    BUF_SCOPED number = {0};

    buf_u64(&number, (uint64_t)version);
    json_edit_set(scratch, params, EDIT_PATH("protocolVersion"), buf_view(&number));
    return buf_view(scratch);
}

/* Pass initialize on to the right; the chain from there on has this version. */
static void send_on(struct hop *from, const struct acp_message *m, struct span params,
                    int64_t version)
{
    static const char plain[] = "\"initialize\"";
    struct hop_place to = conductor_right_of(from->c, from->index);
    struct acp_message renamed = *m;

    if (!to.hop) {
        hop_error(from, m, RPC_INTERNAL_ERROR, "no agent component in list", NULL);
        return;
    }
    if (to.wrapped) {
        greet_over(from->c); /* the conductor around this one has its own timeout for the rest */
    } else {
        to.hop->version = version;
        wait_for(to.hop);
    }
    if (!conductor_is_agent(to.hop) && !to.wrapped) {
        questions_begin(to.hop, from, m, params);
        return;
    }
    /* After the last proxy, a proxy initialisation is passed on as plain initialize. */
    renamed.method = span_of(plain, sizeof plain - 1);
    struct pending *p = conductor_relay(from, &renamed, to, params);
    if (p)
        p->answered = to.wrapped ? parent_answered : agent_answered;
}

void greet_onward(struct hop *from, const struct acp_message *m)
{
    bool is_up = from->index == HOP_UPSTREAM;
    int64_t asked, most = is_up ? NEWEST_VERSION : from->version;
    struct span params = m->params;
    BUF_SCOPED bounded = {0};

    if (!acp_is_request(m))
        return;
    if (!is_up && offer_in(params)) {
        hop_error(from, m, RPC_INTERNAL_ERROR,
                  "conductor received unexpected initialization request with proxy capability",
                  NULL);
        return;
    }
    /* A proxy may ask for a lower version, which then holds for everything to the right of the
     * proxy. */
    if (!json_int(m->slots[ACP_VERSION].value, &asked))
        asked = most;
    if (asked > most)
        params = with_version(params, most, &bounded);
    send_on(from, m, params, asked < most ? asked : most);
}

/* Choose the version of the chain: 0, or the error code to refuse the request with. */
static int read_version(struct conductor *c, const struct acp_message *m, const char **why)
{
    int64_t version;

    if (!json_int(m->slots[ACP_VERSION].value, &version) || version < 0 || version > 65535) {
        *why = "`protocolVersion` must be an integer from 0 to 65535";
        return RPC_INVALID_PARAMS;
    }
    c->up.version = version < OLDEST_VERSION   ? OLDEST_VERSION
                    : version > NEWEST_VERSION ? NEWEST_VERSION
                                               : version;
    return 0;
}

/* Start the components that are not running, the agent first because the agent usually takes the
 * longest. */
static int start_components(struct conductor *c, struct buf *error)
{
    struct err err;

    for (size_t i = c->n; i-- > 0;) {
        struct hop *h = c->components[i];
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

/* Choose the mode by the first message: NULL, or why this message cannot be the first. */
static const char *settle_mode(struct conductor *c, const struct acp_message *m, bool offered)
{
    enum proxy_dialect d = proxy_dialect_of_initialize(m->method);

    if (m->word != WORD_INITIALIZE && d == P_UNKNOWN)
        return c->mode == CONDUCT_PROXY ? "expected `proxy/initialize` request"
                                        : "expected `initialize` request";
    if (d == P_UNKNOWN && !offered)
        return c->mode == CONDUCT_PROXY ? "expected `proxy/initialize` request" : NULL;
    if (c->mode == CONDUCT_AGENT && c->options.strict)
        return "expected `initialize` request";
    if (c->mode == CONDUCT_AGENT && c->n)
        snprintf(c->components[c->n - 1]->label, sizeof c->up.label, "Proxy(%u)",
                 (unsigned)(c->n - 1) % 10000);
    c->mode = CONDUCT_PROXY;
    c->parent_offered = d == P_UNKNOWN;
    /* Parents of P0 and P1 send the same initialize; only the configuration tells which of the two
     * the parent speaks. */
    c->up.dialect = d != P_UNKNOWN ? d : c->options.dialect == P0 ? P0 : P1;
    return NULL;
}

/* `for_good`: every later request gets the same answer. */
static void refuse_upstream(struct conductor *c, const struct acp_message *m, int code,
                            const char *text, const char *data, bool for_good)
{
    BUF_SCOPED error = {0};

    buf_printf(&error, "{\"code\":%d,\"message\":", code);
    json_quote(&error, span_str(text));
    if (data)
        json_out_text(&error, "data", span_str(data));
    buf_char(&error, '}');
    hop_refuse(&c->up, m, buf_view(&error));
    if (for_good)
        conductor_fail(c, buf_view(&error));
}

/* Send initialize into the chain: without the offer that was made to us, and with the version we
 * chose. */
static void send_first(struct conductor *c, const struct acp_message *m, bool offered)
{
    struct span params = json_type_of(m->params) == JSON_OBJECT ? m->params : SPAN("{}");
    BUF_SCOPED plain = {0}, bounded = {0};
    int64_t asked = 0;

    if (offered) {
        offer_remove(&plain, params);
        params = buf_view(&plain);
    }
    if (json_int(m->slots[ACP_VERSION].value, &asked) && asked != c->up.version)
        params = with_version(params, c->up.version, &bounded);
    send_on(&c->up, m, params, c->up.version);
}

void greet_upstream(struct conductor *c, const struct acp_message *m)
{
    bool offered = m->word == WORD_INITIALIZE && offer_in(m->params);
    BUF_SCOPED error = {0};

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
        refuse_upstream(c, m, code, "Invalid params", why, false);
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
    if (start_components(c, &error)) {
        hop_refuse(&c->up, m, buf_view(&error));
        conductor_fail(c, buf_view(&error));
    } else {
        send_first(c, m, offered);
    }
}
