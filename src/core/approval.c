/* Holding a call, asking its consumer or waiting for an operator, and carrying out the decision.
 * Called by call_open.c and ask.c; operators decide through admin/approvals.c and
 * rockbot/news.c. */
#include "core/approval.h"

#include "base/log.h"
#include "core/inside.h"
#include "core/principal.h"

#include <stdarg.h>

/* The provider has not seen the call yet, so this key cannot clash with a key of the provider. */
static const struct span approval_key = {"approval", 8};

void approval_set_approver(struct router *r, const struct approver *approver)
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
    list_remove(&c->standing);
    c->state = CALL_WAITING;
    /* The time that a person takes does not count as the server's duration. */
    c->opened_at = c->router->timers->now;
    call_admit(c, &c->kept.request);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct call *c, const char *fmt, ...)
{
    BUF_SCOPED text = {0};
    va_list ap;

    buf_printf(&text, "the call of '%s' on server '%s' ", c->name, c->provider->alias);
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    call_done(
        c, &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_REFUSED, .text = buf_view(&text)});
}

/* Logs the decision and shows it to the taps; NULL, or why a tap objects to it. */
static const char *write_down(struct call *c, bool allowed, const char *by)
{
    BUF_SCOPED who = {0};

    buf_str(&who, by);
    if (c->rule)
        buf_printf(&who, ", asked because of rule %u", c->rule);
    log_info(c->provider->alias, "the call of '%s' on server '%s' was %s by %s", c->name,
             c->provider->alias, allowed ? "approved" : "refused", buf_cstr(&who));
    return tap_show_decided(c, allowed, buf_view(&who));
}

static void consumer_decides(struct call *c, bool allowed)
{
    BUF_SCOPED by = {0};

    buf_str(&by, "the client");
    if (c->principal)
        buf_printf(&by, " (token %s)", c->principal->name);
    const char *objection = write_down(c, allowed, buf_cstr(&by));
    if (allowed && objection)
        refuse(c, "is not made: %s", objection);
    else if (allowed)
        allow(c);
    else
        refuse(c, "was refused by the person at the client");
}

/* The call's consumer cannot be asked, or must not decide, so an operator has to. */
static void wait_for_operator(struct call *c)
{
    struct router *r = c->router;
    enum approve_by by = c->provider->policy.approve_by;

    if (by == APPROVE_BY_CLIENT) {
        refuse(c, "needs the approval of the person at the client (approve_by), and this client "
                  "cannot put a form before its user");
    } else if (!r->approver || !r->approver->has_operator) {
        refuse(c, "needs %s approval, and there is nobody to ask",
               by == APPROVE_BY_OPERATOR ? "an operator's" : "a person's");
    } else {
        events_publish(&r->events, &(struct happening){
                                       .kind = HAPPENED_APPROVAL_WANTED,
                                       .server = span_str(c->provider->alias),
                                       .tool = span_of(c->name, c->name_n),
                                       .call = c->handle,
                                   });
    }
}

static void ask_consumer(struct call *c)
{
    BUF_SCOPED params = {0};

    c->router->approver->put_question(&params, c);
    ask_put(c, &(struct ask){.key = approval_key,
                             .method = SPAN("elicitation/create"),
                             .params = buf_view(&params),
                             .needs = ANSWERS_ELICIT_FORM});
}

/* --- the life of a held call --- */

void approval_hold(struct call *c, const struct request *request)
{
    bool may_answer = c->provider->policy.approve_by != APPROVE_BY_OPERATOR;

    call_keep(c, request);
    /* A consent is for one call: if the consumer resumed this call by another call, a person would
     * be asked in every round. So questions of the server come as asks on this call. */
    if (c->answers & ANSWERS_BY_RETRY)
        c->answers ^= ANSWERS_ANY_RETRY;
    c->kept.request.answers = c->answers;
    c->repeatable = false;
    c->state = CALL_HELD;
    list_append(&c->provider->held, &c->in_provider);
    list_append(&c->router->held, &c->standing);
    timer_set(c->router->timers, &c->deadline, c->provider->policy.approve_timeout);
    tap_show(c, &(struct step){.kind = STEP_HELD});
    if (may_answer && c->router->approver && (c->answers & ANSWERS_ELICIT_FORM))
        ask_consumer(c);
    else
        wait_for_operator(c);
}

void approval_answered(struct call *c, const struct outcome *answer)
{
    enum consent consent = c->router->approver->read_answer(answer);

    if (c->word == WORD_NO)
        refuse(c, "was refused by the operator");
    else if (c->word == WORD_YES && consent != CONSENT_DENIED)
        allow(c);
    else if (consent == CONSENT_UNASKED || c->provider->policy.approve_by == APPROVE_BY_OPERATOR)
        wait_for_operator(c); /* the configuration may have changed since the question was asked */
    else
        consumer_decides(c, consent == CONSENT_GIVEN);
}

static bool is_undecided(const struct call *c)
{
    return c->state == CALL_HELD && c->word == WORD_NONE;
}

enum decided approval_decide(struct router *r, uint64_t handle, const struct verdict *verdict)
{
    struct call *c = router_find(r, handle);

    if (!c || !is_undecided(c))
        return DECIDED_UNKNOWN;
    bool asked = approval_is_with_consumer(c);
    if (asked && c->provider->policy.approve_by == APPROVE_BY_CLIENT)
        return DECIDED_ELSEWHERE;
    const char *objection = write_down(c, verdict->allowed, verdict->by);
    bool allowed = verdict->allowed && !objection;
    c->word = allowed ? WORD_YES : WORD_NO;
    if (asked && (c->answers & ANSWERS_HELD_RETRY)) /* it got the question as a result */
        return DECIDED;
    if (asked) {
        ask_take_back(c, approval_key);
        c = router_find(r, handle); /* the call's consumer may have left meanwhile */
    }
    if (c && allowed)
        allow(c);
    else if (c && verdict->allowed)
        refuse(c, "is not made: %s", objection);
    else if (c)
        refuse(c, "was refused by %s", verdict->told);
    return DECIDED;
}

static struct call *next_held(const struct router *r, const struct call *c)
{
    const struct list *next = c ? c->standing.next : r->held.next;

    return next == &r->held ? NULL : LIST_ENTRY(next, struct call, standing);
}

struct call *approval_next(const struct router *r, const struct call *c)
{
    struct call *next = next_held(r, c);

    while (next && !is_undecided(next))
        next = next_held(r, next);
    return next;
}
