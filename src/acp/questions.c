/* Initialising a proxy: the question "will you be a proxy?" in one dialect after another, until the
 * proxy accepts one. A proxy whose dialect is not known is started once more for each dialect.
 * Called by greet.c to begin, by conductor.c for messages of the proxy, and by component.c when a
 * process ends. */
#include "acp/inside.h"
#include "acp/offer.h"

#include "base/log.h"
#include "base/mem.h"

/* A process that has read the question and says nothing for this long does not know the dialect, or
 * is slow: another process is asked in the next dialect, and the first process that accepts becomes
 * the proxy. */
enum { SILENCE_MS = 5000 };

/* One proxy's part of an initialize request. */
struct greeting {
    struct conductor *c;
    struct hop *from;    /* the neighbour that waits for the answer */
    char *id, *inner_id; /* of the request of `from` */
    struct batch *batch;
    struct buf params;
    struct pending *questions[P_COUNT]; /* in flight; `to` of each is the process that was asked */
    unsigned tried;                     /* 1u << enum proxy_dialect */
    enum proxy_dialect told; /* the dialect of the envelope in which a question came back */
    struct buf error;        /* says more than "not a proxy", if no process accepts */
    bool fixed;              /* only one dialect, and one process, to ask */
    bool accepted;           /* the proxy has passed initialize on */
    bool cancelled;          /* `from` has cancelled the request */
    struct timer silence;
};

static bool is_in_chain(const struct hop *h)
{
    return h->c->components[h->index] == h;
}

bool questions_is_spare(const struct hop *h)
{
    return h->index != HOP_UPSTREAM && !is_in_chain(h);
}

static void put_in_chain(struct hop *h)
{
    struct hop **place = &h->c->components[h->index];

    if (*place == h)
        return;
    list_append(&h->c->spares, &(*place)->spare);
    list_remove(&h->spare);
    *place = h;
}

/* A process that is being asked, other than `h`; NULL when there is none. */
static struct hop *asked_besides(const struct greeting *g, const struct hop *h)
{
    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (g->questions[d] && g->questions[d]->to != h)
            return g->questions[d]->to;
    return NULL;
}

/* Ignore the answer to this question. */
static void forget_question(struct greeting *g, enum proxy_dialect d)
{
    struct pending *p = g->questions[d];

    g->cancelled = g->cancelled || p->cancelled;
    g->questions[d] = NULL;
    p->owner = NULL;
    pending_let_go(p);
}

/* End a process of the proxy in favour of another. The hop is freed when the process is gone. */
static void dismiss(struct hop *h)
{
    struct greeting *g = h->greeting;
    struct failure nobody_is_told = {0};

    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (g->questions[d] && g->questions[d]->to == h)
            forget_question(g, d);
    h->greeting = NULL;
    if (is_in_chain(h))
        put_in_chain(asked_besides(g, h));
    lines_stop(&h->lines);
    hop_gone(h, &nobody_is_told);
    component_stop(h);
}

/* Make this process the proxy; end the other processes that were asked. */
static void choose(struct greeting *g, struct hop *h)
{
    g->accepted = true;
    timer_clear(loop_timers(g->c->loop), &g->silence);
    put_in_chain(h);
    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (g->questions[d] && g->questions[d]->to != h)
            dismiss(g->questions[d]->to);
}

static void greeting_free(struct greeting *g)
{
    timer_clear(loop_timers(g->c->loop), &g->silence);
    for (enum proxy_dialect d = P0; d < P_COUNT; d++) {
        if (!g->questions[d])
            continue;
        struct hop *h = g->questions[d]->to;
        if (is_in_chain(h))
            forget_question(g, d);
        else
            dismiss(h);
    }
    buf_fini(&g->params);
    buf_fini(&g->error);
    mem_free(g->id);
    mem_free(g->inner_id);
    batch_release(g->batch);
    mem_free(g);
}

void questions_drop(struct hop *h)
{
    struct greeting *g = h->greeting;

    h->greeting = NULL;
    if (g)
        greeting_free(g);
}

/* --- asking --- */

static bool proxy_answered(struct pending *p, const struct acp_message *m);

static void ask(struct greeting *g, struct hop *h, enum proxy_dialect d)
{
    const struct proxy_row *row = &proxy_rows[d];
    struct acp_message asked = {.rpc = {.id = span_str(g->id)},
                                .batch = g->batch,
                                .nested = g->inner_id != NULL,
                                .inner_id = span_str(g->inner_id)};
    BUF_SCOPED method = {0}, offered = {0};
    struct span params = buf_view(&g->params);

    log_debug(h->label, "%s as %s", row->initialize, row->name);
    for (enum proxy_dialect k = P0; k < P_COUNT; k++)
        g->cancelled = g->cancelled || (g->questions[k] && g->questions[k]->cancelled);
    g->tried |= 1u << d;
    h->greeting = g;
    /* The answer to initialize is plain even where envelopes hold whole messages. */
    bool nested = h->nested;
    h->nested = false;
    struct pending *p = pending_new(h, g->from, &asked);
    h->nested = nested;
    p->answered = proxy_answered;
    p->owner = g;
    g->questions[d] = p;
    json_quote(&method, span_str(row->initialize));
    if (row->offers) {
        offer_add(&offered, params);
        params = buf_view(&offered);
    }
    p->trace = acp_trace_call(g->c->options.trace, true, false, g->from->label, h->label,
                              buf_view(&method), params);
    hop_place_send((struct hop_place){h, false}, p, buf_view(&method), params);
    if (g->cancelled)
        pending_cancel(p, SPAN("{}"));
    if (!g->fixed)
        timer_set(loop_timers(g->c->loop), &g->silence, SILENCE_MS);
}

/* The dialect to try next; P_UNKNOWN when there is none left. */
static enum proxy_dialect next_dialect(const struct greeting *g)
{
    enum proxy_dialect told = g->told == P0 ? P1 : g->told;

    if (told != P_UNKNOWN)
        return g->tried & 1u << told ? P_UNKNOWN : told;
    for (size_t i = 0; !g->fixed && i < COUNT_OF(proxy_order); i++)
        if (!(g->tried & 1u << proxy_order[i]))
            return proxy_order[i];
    return P_UNKNOWN;
}

/* Start the same program once more and ask the new process. */
static void ask_another(struct greeting *g, const struct hop *like, enum proxy_dialect d)
{
    struct hop *h = MEM_NEW(struct hop);
    struct err err;

    hop_init(h, g->c, like->index, like->label);
    h->line = like->line;
    h->version = like->version;
    if (component_start(h, &err)) {
        log_error(h->label, "cannot be started again: %s", err.text);
        g->tried |= 1u << d;
        hop_free(h);
        return;
    }
    list_append(&g->c->spares, &h->spare);
    ask(g, h, d);
}

static void on_silence(struct timer *t)
{
    struct greeting *g = CONTAINER_OF(t, struct greeting, silence);
    enum proxy_dialect d = next_dialect(g);
    struct hop *h = asked_besides(g, NULL);

    if (d == P_UNKNOWN || !h)
        return;
    for (enum proxy_dialect k = P0; k < P_COUNT; k++) {
        /* The question is still unread in the pipe: that process is still starting, not silent. */
        if (g->questions[k] && g->questions[k]->to->stream &&
            stream_unread(g->questions[k]->to->stream)) {
            timer_set(loop_timers(g->c->loop), t, SILENCE_MS);
            return;
        }
    }
    log_info(h->label, "no answer to initialize yet: trying %s as well", proxy_rows[d].name);
    ask_another(g, h, d);
}

/* The configured dialect, or the one that another component with the same command line was found to
 * speak. */
static enum proxy_dialect known_dialect(const struct hop *h, bool *fixed)
{
    const struct conductor *c = h->c;
    enum proxy_dialect d = h->line->dialect != P_UNKNOWN ? h->line->dialect : c->options.dialect;

    *fixed = d != P_UNKNOWN;
    for (size_t i = 0; d == P_UNKNOWN && i < c->n; i++) {
        const struct hop *other = c->components[i];
        bool same = other->greeted && other->line->n_argv == h->line->n_argv;
        for (size_t k = 0; same && k < h->line->n_argv; k++)
            same = strcmp(other->line->argv[k], h->line->argv[k]) == 0;
        if (same)
            d = other->dialect;
    }
    return d;
}

void questions_begin(struct hop *h, struct hop *from, const struct acp_message *m,
                     struct span params)
{
    struct greeting *g = MEM_NEW(struct greeting);
    enum proxy_dialect d = h->dialect;

    questions_drop(h);
    g->c = h->c;
    g->from = from;
    g->id = mem_span(m->rpc.id);
    g->batch = m->batch;
    batch_hold(g->batch);
    g->inner_id = m->nested && m->inner_id.n ? mem_span(m->inner_id) : NULL;
    g->told = P_UNKNOWN;
    g->fixed = h->greeted;
    g->silence.fire = on_silence;
    buf_span(&g->params, params);
    if (!h->greeted)
        d = known_dialect(h, &g->fixed);
    if (d == P0)
        h->dialect = P0;
    ask(g, h, d == P_UNKNOWN ? proxy_order[0] : d);
}

/* --- answers --- */

static void not_a_proxy(struct pending *p, struct hop *h, struct span error)
{
    BUF_SCOPED text = {0};

    component_put_name(&text, h);
    buf_str(&text, " is not a proxy");
    /* Other programs look for this short form. */
    buf_printf(&text, ": component %d is not a proxy", h->index);
    if (error.n)
        buf_printf(&text, "; it answered " SPAN_FMT, SPAN_ARG(span_cut(error, 0, 200)));
    greet_finish_wrong(p, h->c, buf_cstr(&text));
}

static void proxy_accepted(struct pending *p, struct hop *h, bool offered, struct span result)
{
    BUF_SCOPED stripped = {0};

    if (offered && !offer_echoed(result)) {
        not_a_proxy(p, h, SPAN_EMPTY);
        return;
    }
    h->greeted = true;
    if (offered)
        offer_remove_echo(&stripped, result);
    greet_finish(p, true, offered ? buf_view(&stripped) : result);
}

static bool is_of_unknown_question(struct span error)
{
    int64_t code = rpc_error_of(error).code;

    return code == RPC_METHOD_NOT_FOUND || code == RPC_INVALID_REQUEST ||
           code == RPC_INVALID_PARAMS;
}

/* The question was refused: ask the next one, or wait for those that are still open. False: this
 * was the last question. */
static bool goes_on(struct greeting *g, struct hop *h, struct span error)
{
    bool unknown = is_of_unknown_question(error);
    enum proxy_dialect d = unknown || g->told != P_UNKNOWN ? next_dialect(g) : P_UNKNOWN;

    if (g->accepted || !h->child || (g->cancelled && !unknown))
        return false;
    /* A proxy that sends unknown questions back is ready for the next question. Any other process
     * may be in an undefined state after a wrong question. */
    if (d != P_UNKNOWN && g->told != P_UNKNOWN && h->dialect == g->told) {
        ask(g, h, d);
        return true;
    }
    if (d != P_UNKNOWN)
        ask_another(g, h, d);
    if (!asked_besides(g, h))
        return false;
    if (!unknown && !g->error.n)
        buf_span(&g->error, error);
    dismiss(h);
    return true;
}

static bool proxy_answered(struct pending *p, const struct acp_message *m)
{
    struct greeting *g = p->owner;
    enum proxy_dialect asked = P0;

    if (!g)
        return true; /* another process was faster */
    struct hop *h = p->to;
    while (g->questions[asked] != p)
        asked++;
    g->questions[asked] = NULL;
    g->cancelled = g->cancelled || p->cancelled;
    if (m->rpc.kind == RPC_RESULT) {
        choose(g, h);
        questions_drop(h);
        if (h->dialect == P_UNKNOWN)
            h->dialect = asked;
        proxy_accepted(p, h, proxy_rows[asked].offers, m->rpc.result);
        return true;
    }
    if (goes_on(g, h, m->rpc.error)) {
        acp_trace_answer(g->c->options.trace, p->trace, false, m->rpc.error);
        return true;
    }
    BUF_SCOPED error = {0};
    bool refused = !g->accepted && is_of_unknown_question(m->rpc.error);
    bool knows_better = refused && g->error.n;
    buf_span(&error, knows_better ? buf_view(&g->error) : m->rpc.error);
    questions_drop(h);
    if (refused && !knows_better)
        not_a_proxy(p, h, buf_view(&error));
    else
        greet_finish(p, false, buf_view(&error));
    return true;
}

bool questions_heard(struct hop *h, const struct acp_message *m, enum proxy_dialect d)
{
    struct greeting *g = h->greeting;

    if (h->dialect != d)
        log_debug(h->label, "speaks %s", proxy_rows[d].name);
    h->dialect = d;
    h->nested = m->nested;
    if (!g)
        return false;
    enum proxy_dialect probe = proxy_dialect_of_initialize(m->method);
    bool plain = m->word == WORD_INITIALIZE;
    /* Only P0 and P1 ask by an offer: an offer in an envelope of another dialect is our question
     * coming back. */
    if (plain && !proxy_rows[d].offers && offer_in(m->params))
        probe = P1;
    else if (plain || probe == d) /* if it passes on proxy/initialize itself, that is its mistake */
        choose(g, h);
    if (probe == P_UNKNOWN || !(g->tried & 1u << probe) || probe == d)
        return false;
    /* Proxies pass on methods they do not know: our question comes back, and the envelope tells the
     * proxy's dialect. */
    g->told = d;
    if (acp_is_request(m))
        hop_error(h, m, RPC_METHOD_NOT_FOUND, "Method not found", NULL);
    return true;
}

struct span questions_error(const struct hop *h)
{
    return h->greeting ? buf_view(&h->greeting->error) : SPAN_EMPTY;
}

bool questions_outlive(struct hop *h, const char *how)
{
    struct greeting *g = h->greeting;

    if (!g)
        return questions_is_spare(h); /* the process was dismissed */
    if (g->accepted || h->c->state == CHAIN_FAILED)
        return false;
    enum proxy_dialect d = next_dialect(g);
    if (d != P_UNKNOWN) {
        log_info(h->label, "ended during initialize: starting it again to try %s",
                 proxy_rows[d].name);
        ask_another(g, h, d);
    }
    if (!asked_besides(g, h))
        return false; /* the requester is told how the last process ended */
    if (!g->error.n)
        component_put_end(&g->error, h, how);
    dismiss(h);
    return true;
}
