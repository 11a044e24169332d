/* The questions that a provider has open on a call or standing call: asked, answered, withdrawn,
 * refused. Called by mcp/, hub/signin/signin_tool.c, approval.c, doubts.c and forward.c to ask, by
 * the consumers' families and cmd/call.c to answer, and by call.c when a call or provider ends. */
#include "base/log.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/doubts.h"
#include "core/inside.h"

/* A provider may have this many questions open on one call; more are refused. */
enum { MAX_OPEN_ASKS = 64 };

/* One ask that waits for its answer. */
struct open_ask {
    struct list node;
    struct provider *provider; /* the provider that asked */
    uint64_t instance;    /* which instance of the provider, by the provider's count of starts */
    size_t key_n, own_at; /* the provider's own key is the end of `key` */
    char key[];
};

static struct span own_key(const struct open_ask *ask)
{
    return span_of(ask->key + ask->own_at, ask->key_n - ask->own_at);
}

/* Does the provider have an instance that was not told to stop? */
static bool is_running(const struct provider *p)
{
    return p->state == PROVIDER_STARTING || p->state == PROVIDER_READY;
}

void ask_forget_all(struct call *c)
{
    LIST_EACH_SAFE (&c->asks, it) {
        list_remove(it);
        mem_free(LIST_ENTRY(it, struct open_ask, node));
    }
    c->n_asks = 0;
}

static void refuse_ask(struct call *c, struct provider *p, struct span key, enum failure why,
                       struct span text)
{
    struct outcome outcome = {.kind = OUTCOME_FAILED, .why = why, .text = text};

    doubts_forget(p, key);
    tap_show(c, &(struct step){.kind = STEP_ANSWER, .outcome = &outcome});
    p->peer.verbs->answer(&p->peer, c, key, &outcome);
}

/* A standing call is never cancelled at a provider, so a provider that asked on it is told here
 * that no answer will come. */
void ask_refuse_all(struct call *c)
{
    struct open_ask *ask;

    while ((ask = LIST_FIRST(&c->asks, struct open_ask, node))) {
        list_remove(&ask->node);
        c->n_asks--;
        if (is_running(ask->provider) && ask->instance == ask->provider->stats.starts)
            refuse_ask(c, ask->provider, own_key(ask), FAIL_CANCELLED, SPAN("the client has left"));
        mem_free(ask);
    }
}

static void remember_ask(struct call *c, struct provider *p, struct span key, size_t own_at)
{
    struct open_ask *open = mem_alloc(sizeof *open + key.n);

    open->provider = p;
    open->instance = p->stats.starts;
    open->key_n = key.n;
    open->own_at = own_at;
    memcpy(open->key, key.p, key.n);
    list_append(&c->asks, &open->node);
    c->n_asks++;
}

/* `c` may be a standing call, which has no deadline and ends with its consumer. */
static void ask_on(struct call *c, struct provider *p, const struct ask *ask)
{
    p->stats.asks++;
    c->router->stats.asks++;
    tap_show(c, &(struct step){.kind = STEP_ASK, .ask = ask});
    if (ask->needs & ~c->answers) {
        c->lacks |= ask->needs & ~c->answers;
        refuse_ask(c, p, ask->key, FAIL_REFUSED, SPAN("the client cannot answer this"));
        return;
    }
    if (c->n_asks == MAX_OPEN_ASKS) {
        refuse_ask(c, p, ask->key, FAIL_BUSY, SPAN("too many questions are open already"));
        return;
    }
    BUF_SCOPED key = {0};
    struct ask told = *ask;
    /* Two providers may use the same key on a standing call: the alias in front makes it unique. */
    if (!c->provider)
        buf_printf(&key, "%s/", p->alias);
    size_t own_at = key.n;
    buf_span(&key, ask->key);
    told.key = buf_view(&key);
    remember_ask(c, p, told.key, own_at);
    if (c->provider)
        call_arm_deadline(c);
    c->repeatable = false; /* a person was asked: the router must not send the call again */
    c->consumer->verbs->ask(c->consumer, c, &told);
}

void ask_put(struct call *c, const struct ask *ask)
{
    ask_on(c, c->provider, ask);
}

bool ask_put_standing(struct provider *p, const struct ask *ask)
{
    struct call *owner = NULL;
    size_t n = 0;

    LIST_EACH (&p->router->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        if (view_has(c->view, p)) {
            owner = c;
            n++;
        }
    }
    /* An instance that is being stopped cannot take the answer; the next instance must not. */
    if (n != 1 || !is_running(p))
        return false;
    ask_on(owner, p, ask);
    return true;
}

void ask_answer(struct call *c, struct span key, const struct outcome *outcome)
{
    LIST_EACH (&c->asks, it) {
        struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
        if (!span_eq(span_of(ask->key, ask->key_n), key))
            continue;
        list_remove(it);
        c->n_asks--;
        if (c->provider)
            call_arm_deadline(c);
        doubts_forget(ask->provider, own_key(ask));
        tap_show(c, &(struct step){.kind = STEP_ANSWER, .outcome = outcome});
        /* The provider is given our copy of the key: the consumer's copy may go away with its
         * request. */
        struct peer *provider = &ask->provider->peer;
        if (c->state == CALL_HELD)
            approval_answered(c, outcome); /* approval.c asked, not the provider */
        else if (is_running(ask->provider))
            provider->verbs->answer(provider, c, own_key(ask), outcome);
        mem_free(ask);
        return;
    }
    log_debug("router", "answer to '" SPAN_FMT "', which nobody asked", SPAN_ARG(key));
}

void ask_nobody(struct peer *self, struct call *c, const struct ask *ask)
{
    (void)self;
    ask_answer(c, ask->key,
               &(struct outcome){.kind = OUTCOME_FAILED,
                                 .why = FAIL_REFUSED,
                                 .text = SPAN("there is nobody to be asked")});
}

void ask_ignore_event(struct peer *self, struct call *c, const struct event *event)
{
    (void)self, (void)c, (void)event;
}

/* Forget the provider's ask with this key and tell the consumer. False if no such ask is open on
 * this call. */
static bool unask_on(struct call *c, const struct provider *p, struct span key,
                     const struct event *said)
{
    LIST_EACH (&c->asks, it) {
        struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
        if (ask->provider != p || !span_eq(own_key(ask), key))
            continue;
        list_remove(it);
        c->n_asks--;
        if (c->provider)
            call_arm_deadline(c);
        doubts_forget(ask->provider, key);
        struct event event = said ? *said : (struct event){0};
        event.kind = EVENT_UNASKED;
        event.name = span_of(ask->key, ask->key_n);
        tap_show(c, &(struct step){.kind = STEP_UNASK, .event = &event});
        c->consumer->verbs->event(c->consumer, c, &event);
        mem_free(ask);
        return true;
    }
    return false;
}

/* A question on a standing call whose instance of the provider is gone, or NULL. */
static const struct open_ask *find_orphan(const struct provider *p, struct call **standing)
{
    LIST_EACH (&p->router->standing, at) {
        *standing = LIST_ENTRY(at, struct call, standing);
        LIST_EACH (&(*standing)->asks, it) {
            const struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
            if (ask->provider == p && !(is_running(p) && ask->instance == p->stats.starts))
                return ask;
        }
    }
    return NULL;
}

/* Any standing call may end inside an event, so they are searched again each time. */
void ask_forget_standing(struct provider *p)
{
    const struct open_ask *ask;
    struct call *c;

    while ((ask = find_orphan(p, &c)))
        unask_on(c, p, own_key(ask), NULL);
}

bool ask_take_back(struct call *c, struct span key)
{
    return unask_on(c, c->provider, key, NULL);
}

bool ask_take_back_any(struct provider *p, struct span key, const struct event *said)
{
    LIST_EACH (&p->open, it)
        if (unask_on(LIST_ENTRY(it, struct call, in_provider), p, key, said))
            return true;
    LIST_EACH (&p->router->standing, it)
        if (unask_on(LIST_ENTRY(it, struct call, standing), p, key, said))
            return true;
    return doubts_forget(p, key);
}

/* Servers ask during these operations; they carry out the other ones without asking. */
bool ask_may_come_on(const struct call *c)
{
    return c->op == OP_CALL_TOOL || c->op == OP_READ_RESOURCE || c->op == OP_GET_PROMPT ||
           c->op == OP_OTHER;
}

struct call *ask_sole_call(const struct provider *p)
{
    struct call *sole = NULL, *running = NULL;
    size_t n = 0, n_running = 0;

    LIST_EACH (&p->open, it) {
        struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (!ask_may_come_on(c))
            continue;
        if (sole && (c->consumer != sole->consumer || c->party != sole->party))
            return NULL;
        sole = c;
        n++;
        if (list_empty(&c->asks)) {
            running = c;
            n_running++;
        }
    }
    if (n == 1)
        return sole;
    return n_running == 1 ? running : NULL;
}
