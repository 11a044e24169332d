/* Opening a call: finds its provider, checks the limits of the token, the taps, the rules and the
 * approvals, and refuses the call if one of them says so. From then on call.c has the call. Called
 * by the families, admin/, cmd/call.c, and by call.c, forward.c and subscriptions.c. */
#include "base/log.h"
#include "core/approval.h"
#include "core/inside.h"
#include "core/principal.h"
#include "core/route.h"
#include "core/rules.h"

static struct peer *caller_of(struct peer *consumer, const struct request *request)
{
    return request->behalf ? request->behalf->caller : consumer;
}

/* --- refusals --- */

/* The call exists only during this `done` and has no entry in the router. */
static void refuse(struct router *r, struct peer *consumer, const struct request *request,
                   const struct outcome *outcome, void *data)
{
    struct call stub = {.handle = ++r->last_handle,
                        .op = request->op,
                        .consumer = consumer,
                        .consumer_data = data,
                        .caller = caller_of(consumer, request),
                        .opened_at = r->timers->now};

    stub.principal = stub.caller->principal;

    r->stats.opened++;
    r->stats.failed[outcome->why]++;
    struct outcome instead;
    (void)tap_show_opened(r, &stub, request); /* it is refused anyway */
    consumer->verbs->done(consumer, &stub, tap_show_end(r, &stub, outcome, &instead));
}

static void refuse_unknown(struct router *r, struct peer *consumer, const struct request *request,
                           struct view *v, struct span why, void *data)
{
    struct provider *p;
    BUF_SCOPED text = {0};

    buf_printf(&text, SPAN_FMT ": " SPAN_FMT, SPAN_ARG(why), SPAN_ARG(request->name));
    /* The name may belong to a server that is not up yet. */
    for (size_t i = 0; (p = view_member(v, i)); i++)
        if (p->state != PROVIDER_READY)
            buf_printf(&text, "; server '%s' is not available: %s", p->alias, call_reason(p));
    refuse(r, consumer, request,
           &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_UNKNOWN, .text = buf_view(&text)},
           data);
}

static void refuse_full(struct call *c)
{
    c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
    call_fail(c, FAIL_BUSY, true,
              "the bridge holds as much for its peers as it may (limits.memory): try again later");
}

static void refuse_by_rule(struct call *c, const struct ruling *ruling)
{
    const char *alias = c->provider->alias;

    c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
    if (ruling->misleads.n)
        call_fail(c, FAIL_ARGUMENTS, false,
                  "the arguments of '%s' on server '%s' mislead: " SPAN_FMT, c->name, alias,
                  SPAN_ARG(ruling->misleads));
    else
        call_fail(c, FAIL_DENIED, false, "the call of '%s' on server '%s' is denied by " SPAN_FMT,
                  c->name, alias, SPAN_ARG(ruling->by->name));
}

/* --- rules and approvals --- */

/* The log and the recorder name the rule that decided; allowed calls are logged at level debug. */
static void write_ruling_down(struct call *c, const struct rule *by)
{
    static const char *const did[] = {
        [RULE_ALLOW] = "allowed", [RULE_DENY] = "denied", [RULE_ASK] = "held"};

    log_line(by->then == RULE_ALLOW ? LOG_DEBUG : LOG_INFO, c->provider->alias,
             "the call of '%s' on server '%s' was %s by " SPAN_FMT, c->name, c->provider->alias,
             did[by->then], SPAN_ARG(by->name));
    if (by->then != RULE_ASK)
        (void)tap_show_decided(c, by->then == RULE_ALLOW, by->name);
}

/* What the rules say about the call. RULES_ENDED: it was refused, or is held. */
enum { RULES_SILENT, RULES_ALLOW, RULES_ENDED };

/* Tools of the bridge itself are not judged, but the calls that they make are. */
static bool is_our_own(const struct provider *p)
{
    return p->built_in && !p->told_as;
}

static int ask_rules(struct call *c, const struct request *request)
{
    const struct rules *rules = c->router->rules;
    BUF_SCOPED scratch = {0};

    if (!rules || c->provider->halted || is_our_own(c->provider))
        return RULES_SILENT;
    struct ruling ruling = rules_decide(rules, c->provider, request, &scratch);
    if (ruling.by)
        write_ruling_down(c, ruling.by);
    else if (!ruling.misleads.n)
        return RULES_SILENT;
    if (ruling.by && ruling.by->then == RULE_ALLOW)
        return RULES_ALLOW;
    if (ruling.by && ruling.by->then == RULE_ASK) {
        c->rule = (unsigned)(ruling.by - rules->rows) + 1;
        approval_hold(c, request);
    } else {
        refuse_by_rule(c, &ruling);
    }
    return RULES_ENDED;
}

enum call_prospect call_foresee(const struct router *r, struct view *v,
                                const struct request *request)
{
    static const enum call_prospect by_rule[] = {
        [RULE_ALLOW] = PROSPECT_FREE, [RULE_DENY] = PROSPECT_DENIED, [RULE_ASK] = PROSPECT_ASKED};
    BUF_SCOPED scratch = {0};
    struct ruling ruling = {0};
    struct request own = *request;
    struct route route;

    if (!route_find(v, request, &route))
        return PROSPECT_DENIED;
    own.name = route.own_name;
    if (r->rules)
        ruling = rules_decide(r->rules, route.provider, &own, &scratch);
    if (ruling.by)
        return by_rule[ruling.by->then];
    if (ruling.misleads.n)
        return PROSPECT_DENIED;
    return approval_needed(route.provider, own.name) ? PROSPECT_ASKED : PROSPECT_FREE;
}

bool call_may_pass(struct call *c, const struct request *request)
{
    struct router *r = c->router;
    struct provider *p = c->provider;

    if (r->kept.in && !holdings_fit(r->kept.in, request->params.n)) {
        refuse_full(c);
        return false;
    }
    if (request->op != OP_CALL_TOOL)
        return true;
    int said = ask_rules(c, request);
    if (said == RULES_SILENT && !p->halted && approval_needed(p, request->name)) {
        approval_hold(c, request);
        return false;
    }
    return said != RULES_ENDED;
}

/* --- opening --- */

/* A new call for this provider, not handed over yet; `request` has the provider's own name of the
 * item. */
static struct call *call_new_at(struct provider *p, struct peer *consumer, struct view *v,
                                const struct request *request, void *data)
{
    struct router *r = p->router;
    struct call *c = call_new(r, consumer, request->op, request->name, data);

    c->provider = p;
    c->caller = caller_of(consumer, request);
    c->principal = principal_hold(c->caller->principal);
    c->view = v;
    c->sees_whole = !v || view_is_whole(v);
    c->party = request->party;
    c->anybody = request->anybody;
    c->answers = request->answers;
    c->wants_progress = request->wants_progress;
    c->timeout = request->timeout;
    c->takes_structured = request->takes_structured;
    p->stats.opened++;
    r->stats.opened++;
    if (consumer != &r->own)
        c->objection = tap_show_opened(r, c, request);
    return c;
}

/* A request about a task goes to the task's server, if the consumer still sees that server. */
static bool find_task(struct router *r, struct peer *consumer, const struct view *v,
                      const struct request *request, struct route *out)
{
    struct provider *p;

    if (request->op < OP_TASK_GET)
        return false;
    const char *owner = request->task_owner
                            ? request->task_owner
                            : principal_name(caller_of(consumer, request)->principal);
    const struct task *t = tasks_find(r->tasks, request->name, owner, request->party);
    out->why = SPAN("Task not found");
    for (size_t i = 0; t && (p = view_member(v, i)); i++) {
        if (strcmp(p->alias, t->server) != 0)
            continue;
        out->provider = p;
        out->own_name = span_str(t->own);
        return true;
    }
    return false;
}

/* False: a limit of the caller's token is reached, and the call has ended. A call of one of our own
 * tools does not count; the calls that the tool makes do. */
static bool is_within_limits(struct call *c, const struct request *request)
{
    uint64_t retry_ms;
    BUF_SCOPED why = {0};

    if (!call_concerns_people(c))
        return true;
    c->counts =
        principal_take(c->principal, c->router->timers->now, request->params.n, &why, &retry_ms);
    c->bytes = request->params.n;
    if (c->counts)
        return true;
    if (retry_ms)
        buf_printf(&why, ": try again in %llu s", (unsigned long long)(retry_ms + 999) / 1000);
    c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
    call_finish(c, &(struct outcome){.kind = OUTCOME_FAILED,
                                     .why = FAIL_LIMITED,
                                     .text = buf_view(&why),
                                     .retry_ms = retry_ms,
                                     .retryable = retry_ms > 0});
    return false;
}

struct call *call_open(struct router *r, struct peer *consumer, struct view *v,
                       const struct request *request, void *data)
{
    struct route route;

    if (r->draining) {
        refuse(r, consumer, request,
               &(struct outcome){.kind = OUTCOME_FAILED,
                                 .why = FAIL_SHUTDOWN,
                                 .text = SPAN("this Rialto is being stopped: no more calls"),
                                 .retryable = true},
               data);
        return NULL;
    }
    if (!route_find(v, request, &route) && !find_task(r, consumer, v, request, &route)) {
        refuse_unknown(r, consumer, request, v, route.why, data);
        return NULL;
    }
    struct request own = *request;
    own.name = route.own_name;
    struct call *c = call_new_at(route.provider, consumer, v, &own, data);
    uint64_t handle = c->handle;
    c->repeatable = route.repeatable;
    if (c->objection) {
        c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
        call_fail(c, FAIL_UNAVAILABLE, true, "%s", c->objection);
    } else if (!c->principal || is_within_limits(c, &own)) {
        call_admit(c, &own);
    }
    return router_find(r, handle);
}

void call_open_own(struct provider *p, const struct request *request, bool goes_first)
{
    struct call *c = call_new_at(p, &p->router->own, NULL, request, NULL);

    c->goes_first = goes_first;
    call_admit(c, request);
}
