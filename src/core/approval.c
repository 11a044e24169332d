#include "core/approval.h"

#include "core/inside.h"

#include <stdarg.h>

/* The provider has not seen the call yet, so no key of its own can be open. */
static const struct span approval_key = {"approval", 8};

void router_set_approver(struct router *r, const struct approver *approver)
{
    r->approver = approver;
}

bool approval_needed(const struct provider *p, struct span tool)
{
    for (size_t i = 0; i < p->policy.n_approve; i++)
        if (span_glob(p->policy.approve[i], tool))
            return true;
    return false;
}

bool approval_is_with_consumer(const struct call *c)
{
    return !list_empty(&c->asks);
}

/* --- decisions --- */

static void allow(struct call *c)
{
    list_remove(&c->in_provider);
    c->state = CALL_WAITING;
    /* How long people think says nothing about the server. */
    c->opened_at = c->router->timers->now;
    call_admit(c, &c->kept.request);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct call *c, const char *fmt, ...)
{
    struct buf text = {0};
    va_list ap;

    buf_printf(&text, "the call of '%s' on server '%s' ", c->name, c->provider->alias);
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    router_done(
        c, &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_REFUSED, .text = buf_view(&text)});
    buf_fini(&text);
}

/* Its consumer cannot say, so somebody else must. */
static void wait_for_operator(struct call *c)
{
    struct router *r = c->router;

    if (!r->approver || !r->approver->has_operator) {
        refuse(c, "needs a person's approval, and there is nobody to ask");
        return;
    }
    events_publish(&r->events, &(struct happening){
                                   .kind = HAPPENED_APPROVAL_WANTED,
                                   .server = span_str(c->provider->alias),
                                   .tool = span_of(c->name, c->name_n),
                                   .call = c->handle,
                               });
}

static void ask_consumer(struct call *c)
{
    struct buf params = {0};

    c->router->approver->put_question(&params, c);
    router_ask(c, &(struct ask){.key = approval_key,
                                .method = SPAN("elicitation/create"),
                                .params = buf_view(&params),
                                .needs = ANSWERS_ELICIT_FORM});
    buf_fini(&params);
}

/* --- the way of a held call --- */

void approval_hold(struct call *c, const struct request *request)
{
    request_keep(&c->kept, request);
    /* One consent is for one call: were its consumer to resume it by a call of its own, a person
     * would be asked in every round. So questions of the server come as asks on this one. */
    c->kept.request.answers &= ~(unsigned)ANSWERS_BY_RETRY;
    c->answers &= ~(unsigned)ANSWERS_BY_RETRY;
    c->repeatable = false;
    c->state = CALL_HELD;
    list_append(&c->provider->held, &c->in_provider);
    timer_set(c->router->timers, &c->deadline, c->provider->policy.approve_timeout);
    if (c->router->approver && (c->answers & ANSWERS_ELICIT_FORM))
        ask_consumer(c);
    else
        wait_for_operator(c);
}

void approval_answered(struct call *c, const struct outcome *answer)
{
    switch (c->router->approver->read_answer(answer)) {
    case CONSENT_GIVEN:
        allow(c);
        break;
    case CONSENT_DENIED:
        refuse(c, "was refused by the person at the client");
        break;
    case CONSENT_UNASKED:
        wait_for_operator(c);
        break;
    }
}

enum decided approval_decide(struct router *r, uint64_t handle, bool allowed, const char *who)
{
    struct call *c = router_find(r, handle);

    if (!c || c->state != CALL_HELD)
        return DECIDED_UNKNOWN;
    if (approval_is_with_consumer(c))
        return DECIDED_ELSEWHERE;
    if (allowed)
        allow(c);
    else
        refuse(c, "was refused by %s", who);
    return DECIDED;
}

struct call *approval_next(const struct router *r, const struct call *c)
{
    const struct provider *p = c ? c->provider : router_next_provider(r, NULL);
    const struct list *next = c ? c->in_provider.next : p ? p->held.next : NULL;

    while (p && next == &p->held) {
        p = router_next_provider(r, p);
        next = p ? p->held.next : NULL;
    }
    return p ? LIST_ENTRY(next, struct call, in_provider) : NULL;
}
