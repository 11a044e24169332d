/* An errand about a task: its requests one after the other, its end, and tasks that are run to
 * their end for a caller that does not know tasks. Called by upstream_tasks.c, task_watch.c and,
 * for answers and the end of calls, by upstream_calls.c. */
#include "mcp/server/task_errand.h"

#include "base/mem.h"
#include "mcp/legacy.h"
#include "mcp/server/task_watch.h"
#include "wire/json_out.h"

/* How often a server is asked for a task's state: as the server says, within these bounds. */
enum { POLL_MS = 1000, POLL_MIN_MS = 20, POLL_MAX_MS = 60 * 1000 };

bool task_errand_for_modern(const struct call *c)
{
    return (c->answers & ANSWERS_ANY_RETRY) != 0;
}

struct tasks *task_errand_tasks(const struct mcp_provider *p)
{
    return router_tasks(p->core.router);
}

struct task *task_errand_task(const struct mcp_provider *p, struct span own)
{
    struct task *t = tasks_find_own(task_errand_tasks(p), span_str(p->alias), p->instance, own);

    return t ? t : tasks_find_own(task_errand_tasks(p), span_str(p->alias), 0, own);
}

/* --- life --- */

void task_errand_free(struct task_errand *e)
{
    if (!e)
        return;
    struct mcp_provider *p = e->provider;
    timer_clear(router_timers(p->core.router), &e->poll);
    if (e->own && map_get(&p->watches, span_str(e->own)) == e)
        map_del(&p->watches, span_str(e->own));
    if (e->token)
        upstream_sent_free(p, e->token);
    task_watch_forget(e);
    map_fini(&e->asked);
    buf_fini(&e->kept.bytes);
    buf_fini(&e->state);
    buf_fini(&e->told);
    buf_fini(&e->responses);
    buf_fini(&e->refusal);
    mem_free(e->own);
    mem_free(e);
}

static void on_poll(struct timer *t);

struct task_errand *task_errand_new(struct mcp_provider *p, struct sent *sent, struct span own)
{
    struct task_errand *e = MEM_NEW(struct task_errand);

    e->provider = p;
    e->sent = sent;
    e->own = own.n ? mem_span(own) : NULL;
    e->poll.fire = on_poll;
    list_init(&e->questions);
    sent->errand = e;
    return e;
}

void task_errand_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    sent->errand->next(p, sent, m);
}

/* Send the next request of an errand. */
void task_errand_go_on(struct mcp_provider *p, struct sent *sent, const char *method,
                       struct span members, task_errand_step *next)
{
    struct task_errand *e = sent->errand;
    BUF_SCOPED all = {0};

    e->next = next;
    sent->keep = true;
    if (!sent->id)
        upstream_sent_renew(p, sent);
    json_out_text(&all, "taskId", span_str(e->own));
    if (members.n)
        buf_char(&all, ',');
    buf_span(&all, members);
    upstream_request_named(p, sent, method, span_str(e->own), buf_view(&all));
}

/* --- the end of an errand --- */

void task_errand_end_result(struct sent *sent, struct span body)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_RESULT, .body = body});
}

void task_errand_end_error(struct sent *sent, struct span error)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_ERROR, .body = error});
}

void task_errand_end_failed(struct sent *sent, enum failure why, struct span text)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_FAILED, .why = why, .text = text});
}

/* True, and the call has ended, if the answer is an error. */
bool task_errand_ended_by_error(struct sent *sent, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_ERROR)
        task_errand_end_error(sent, m->rpc.error);
    return m->rpc.kind == RPC_ERROR;
}

/* End with the result of the task, as the caller's era needs it. */
void task_errand_end_with(struct mcp_provider *p, struct sent *sent, struct span result)
{
    const struct call *c = sent->call;
    const struct task *t =
        c->op == OP_TASK_RESULT ? task_errand_task(p, span_str(sent->errand->own)) : NULL;
    BUF_SCOPED legacy = {0}, body = {0};

    if (json_type_of(result) != JSON_OBJECT) {
        task_errand_end_failed(sent, FAIL_PROTOCOL, SPAN("the task ended without a result"));
        return;
    }
    if (p->modern && !task_errand_for_modern(c)) {
        struct span tool = c->op == OP_CALL_TOOL ? span_of(c->name, c->name_n)
                           : t                   ? span_str(t->tool)
                                                 : SPAN_EMPTY;
        legacy_put_result(&legacy, OP_CALL_TOOL, result, upstream_gives_any(p, tool));
        result = buf_view(&legacy);
    }
    task_text_relate(&body, result, t ? span_str(t->id) : SPAN_EMPTY);
    sent->keep = false;
    call_done(sent->call,
              &(struct outcome){.kind = OUTCOME_RESULT,
                                .body = buf_view(&body),
                                .is_error = json_get(result, "isError").type == JSON_TRUE});
}

/* Remember the state that the server has sent; NULL: the task is not known here. */
struct task *task_errand_note(struct mcp_provider *p, const struct task_text *text)
{
    BUF_SCOPED scratch = {0}, state = {0};
    struct span own = json_text(text->id, &scratch);
    struct task *t = task_errand_task(p, own);

    if (p->modern && task_text_ended(text))
        upstream_follow_task(p, own, false);
    if (!t)
        return NULL;
    task_text_put(&state, text,
                  &(struct task_style){.modern = true,
                                       .id = span_str(t->id),
                                       .status = t->cancelled ? "cancelled" : NULL,
                                       .brief = true});
    task_note(task_errand_tasks(p), t, buf_view(&state), task_text_ended(text));
    return t;
}

void task_errand_end_with_task(struct mcp_provider *p, struct sent *sent, struct span raw,
                               const char *status, struct span more)
{
    struct task_text text = task_text_read(raw);
    BUF_SCOPED body = {0};

    if (!text.id.n) {
        task_errand_end_failed(sent, FAIL_PROTOCOL,
                               SPAN("the server answered with something that is not a task"));
        return;
    }
    const struct task *t = task_errand_note(p, &text);
    if (!t) {
        task_errand_end_error(sent, SPAN(TASK_NOT_FOUND));
        return;
    }
    bool overruled = t->cancelled && !task_errand_for_modern(sent->call);
    buf_char(&body, '{');
    task_text_put(&body, &text,
                  &(struct task_style){.modern = task_errand_for_modern(sent->call),
                                       .id = span_str(t->id),
                                       .status = overruled ? "cancelled" : status,
                                       .more = more});
    buf_char(&body, '}');
    task_errand_end_result(sent, buf_view(&body));
}

void task_errand_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    BUF_SCOPED text = {0};

    if (!sent->call)
        return; /* a watch: the next tasks/get starts another */
    buf_printf(&text, "server '%s' gave no answer: %s", p->alias, why);
    task_errand_end_failed(sent, status ? FAIL_PROTOCOL : FAIL_UNAVAILABLE, buf_view(&text));
}

/* --- running a task to its end --- */

static void run_got(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);

static void on_poll(struct timer *t)
{
    struct task_errand *e = CONTAINER_OF(t, struct task_errand, poll);

    task_errand_go_on(e->provider, e->sent, "tasks/get", SPAN_EMPTY, run_got);
}

static void poll_after(struct task_errand *e, uint64_t ms)
{
    uint64_t most = ms < POLL_MAX_MS ? ms : POLL_MAX_MS;

    e->sent->keep = true;
    timer_set(router_timers(e->provider->core.router), &e->poll,
              most > POLL_MIN_MS ? most : POLL_MIN_MS);
}

/* Tasks of the stateless era have no progress, but a status message: send it as progress. */
static void tell_progress(struct mcp_provider *p, struct sent *sent, const struct task_text *t)
{
    static const char head[] = "{\"progressToken\":";
    struct task_errand *e = sent->errand;
    BUF_SCOPED params = {0};

    if (!t->message.n || span_eq(t->message, buf_view(&e->told)))
        return;
    buf_reset(&e->told, 0);
    buf_span(&e->told, t->message);
    buf_printf(&params, "%s0,\"progress\":%u,\"message\":" SPAN_FMT "}", head, ++e->ticks,
               SPAN_ARG(t->message));
    call_event(sent->call, &(struct event){.kind = EVENT_PROGRESS,
                                           .params = buf_view(&params),
                                           .token_at = {sizeof head - 1, 1},
                                           .from = &p->core});
}

static void updated(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p;
    if (!task_errand_ended_by_error(sent, m))
        poll_after(sent->errand, POLL_MIN_MS);
}

/* Cancel the task at the server: no caller waits for it any more. */
static void cancel_own(struct mcp_provider *p, const struct task_errand *e);

/* The last question was answered. Called while a server's answer is handled (run_got), or later. */
static void all_answered(struct mcp_provider *p, struct sent *sent)
{
    struct task_errand *e = sent->errand;
    BUF_SCOPED members = {0};

    if (e->refusal.n) {
        if (sent->call->op == OP_CALL_TOOL)
            cancel_own(p, e);
        if (e->why == FAIL_NONE)
            task_errand_end_error(sent, buf_view(&e->refusal));
        else
            task_errand_end_failed(sent, e->why, buf_view(&e->refusal));
        return;
    }
    buf_str(&members, "\"inputResponses\":{");
    buf_span(&members, buf_view(&e->responses));
    buf_char(&members, '}');
    buf_reset(&e->responses, 0);
    task_errand_go_on(p, sent, "tasks/update", buf_view(&members), updated);
}

static void take_answer(struct task_errand *e, struct span key, const struct outcome *outcome)
{
    e->open--;
    if (outcome->kind == OUTCOME_RESULT) {
        if (e->responses.n)
            buf_char(&e->responses, ',');
        buf_span(&e->responses, key);
        buf_char(&e->responses, ':');
        buf_span(&e->responses, outcome->body);
    } else if (!e->refusal.n) {
        bool ours = outcome->kind == OUTCOME_FAILED;
        e->why = ours ? outcome->why : FAIL_NONE;
        buf_span(&e->refusal, ours ? outcome->text : outcome->body);
    }
}

bool task_errand_take_answer(struct mcp_provider *p, struct sent *sent, struct span key,
                             const struct outcome *outcome)
{
    struct task_errand *e = sent->errand;

    if (!e || !map_get(&e->asked, key))
        return false;
    take_answer(e, key, outcome);
    if (e->open == 0) {
        all_answered(p, sent);
        if (!sent->keep)
            upstream_sent_free(p, sent);
    }
    return true;
}

/* Ask the questions that were not asked before. */
static void ask_new(struct mcp_provider *p, struct sent *sent, struct json_slot questions)
{
    struct task_errand *e = sent->errand;
    struct json_iter it = json_iter(questions.value);

    while (questions.type == JSON_OBJECT && json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct json_slot method = json_get(it.value, "method"),
                         params = json_get(it.value, "params");
        if (it.type != JSON_OBJECT || method.type != JSON_STRING || map_get(&e->asked, it.key))
            continue;
        map_put(&e->asked, it.key, e);
        e->open++;
        struct ask ask = {.key = it.key,
                          .method = json_text(method.value, &scratch),
                          .params = params.type == JSON_OBJECT ? params.value : SPAN_EMPTY};
        ask.needs = mcp_ask_needs(method.value, ask.params);
        if (ask.needs)
            ask_put(sent->call, &ask);
        else
            take_answer(e, it.key,
                        &(struct outcome){.kind = OUTCOME_FAILED,
                                          .why = FAIL_REFUSED,
                                          .text = SPAN("the task asks for something unknown")});
    }
    (void)p;
}

/* The state of a task that we run, from a server of the stateless era. */
static void run_got(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_errand *e = sent->errand;
    struct task_text t = task_text_read(m->rpc.result);

    if (task_errand_ended_by_error(sent, m))
        return;
    if (!t.id.n) {
        task_errand_end_failed(sent, FAIL_PROTOCOL,
                               SPAN("the server answered with something that is not a task"));
        return;
    }
    task_errand_note(p, &t);
    if (json_string_is(t.status, SPAN("completed")) && t.result.type != JSON_NONE) {
        task_errand_end_with(p, sent, t.result.value);
    } else if (json_string_is(t.status, SPAN("failed")) && t.error.type == JSON_OBJECT) {
        task_errand_end_error(sent, t.error.value);
    } else if (task_text_ended(&t)) {
        task_errand_end_error(
            sent, SPAN("{\"code\":-32603,\"message\":\"The task ended without a result: it "
                       "was cancelled\"}"));
    } else {
        tell_progress(p, sent, &t);
        sent->keep = true;
        e->open++; /* answers may come inside ask_new, before all are asked */
        ask_new(p, sent, t.questions);
        bool asked = e->responses.n || e->refusal.n;
        if (--e->open == 0 && asked)
            all_answered(p, sent);
        else if (e->open == 0)
            poll_after(e, t.poll ? t.poll : POLL_MS);
    }
}

/* The end of a task that we run, from a server of the initialize era. */
static void ran(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!task_errand_ended_by_error(sent, m))
        task_errand_end_with(p, sent, m->rpc.result);
}

static void ignore(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p, (void)sent, (void)m;
}

static void ignore_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)p, (void)sent, (void)status, (void)why;
}

static void cancel_own(struct mcp_provider *p, const struct task_errand *e)
{
    struct sent *sent = upstream_sent_new(p, ignore, ignore_failed);
    BUF_SCOPED members = {0};

    json_out_text(&members, "taskId", span_str(e->own));
    upstream_request_named(p, sent, "tasks/cancel", span_str(e->own), buf_view(&members));
}

/* The entry only takes progress: another answer with its id is ignored. */
static void token_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p, (void)m;
    sent->keep = true;
}

void task_errand_keep_token(struct mcp_provider *p, struct task_errand *e, struct span raw_id)
{
    int64_t id;

    if (!json_int(raw_id, &id))
        return;
    e->token = upstream_sent_new(p, token_answered, ignore_failed);
    idmap_take(&p->sent, e->token->id);
    e->token->id = (uint64_t)id;
    e->token->progress_only = true;
    e->token->call = e->sent->call;
    idmap_put(&p->sent, e->token->id, e->token);
}

void task_errand_run(struct mcp_provider *p, struct sent *sent)
{
    if (p->modern)
        poll_after(sent->errand, POLL_MIN_MS);
    else
        task_errand_go_on(p, sent, "tasks/result", SPAN_EMPTY, ran);
}

void task_errand_cancelled(struct mcp_provider *p, struct sent *sent)
{
    if (sent->errand->own && sent->call->op == OP_CALL_TOOL)
        cancel_own(p, sent->errand);
}
