/* A request of a caller about a task: what it takes at the server, step by step, its end, and tasks
 * that are run to their end for a caller that does not know tasks. Called by upstream_tasks.c,
 * task_watch.c and, for answers and the end of calls, by upstream_calls.c. */
#include "mcp/server/task_request.h"

#include "base/mem.h"
#include "mcp/legacy.h"
#include "mcp/server/task_watch.h"
#include "wire/json_out.h"

/* How often a server is asked for a task's state: as the server says, within these bounds. */
enum { POLL_MS = 1000, POLL_MIN_MS = 20, POLL_MAX_MS = 60 * 1000 };

bool task_request_for_modern(const struct call *c)
{
    return (c->answers & ANSWERS_ANY_RETRY) != 0;
}

struct tasks *task_request_tasks(const struct mcp_provider *p)
{
    return router_tasks(p->core.router);
}

struct task *task_request_task(const struct mcp_provider *p, struct span own)
{
    struct task *t = tasks_find_own(task_request_tasks(p), span_str(p->alias), p->instance, own);

    return t ? t : tasks_find_own(task_request_tasks(p), span_str(p->alias), 0, own);
}

const struct task *task_request_next_task(const struct mcp_provider *p, const struct task *after)
{
    while ((after = tasks_next(task_request_tasks(p), after)))
        if ((after->instance == p->instance || !after->instance) &&
            strcmp(after->server, p->alias) == 0)
            return after;
    return NULL;
}

/* --- life --- */

void task_request_free(struct task_request *tr)
{
    if (!tr)
        return;
    struct mcp_provider *p = tr->provider;
    timer_clear(router_timers(p->core.router), &tr->poll);
    if (tr->own && map_get(&p->watches, span_str(tr->own)) == tr)
        map_del(&p->watches, span_str(tr->own));
    if (tr->token)
        upstream_sent_free(p, tr->token);
    task_watch_forget(tr);
    map_fini(&tr->asked);
    buf_fini(&tr->kept.bytes);
    buf_fini(&tr->state);
    buf_fini(&tr->told);
    buf_fini(&tr->responses);
    buf_fini(&tr->refusal);
    mem_free(tr->own);
    mem_free(tr);
}

static void on_poll(struct timer *t);

struct task_request *task_request_new(struct mcp_provider *p, struct sent *sent, struct span own)
{
    struct task_request *tr = MEM_NEW(struct task_request);

    tr->provider = p;
    tr->sent = sent;
    tr->own = own.n ? mem_span(own) : NULL;
    tr->poll.fire = on_poll;
    list_init(&tr->questions);
    sent->task_request = tr;
    return tr;
}

void task_request_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    sent->task_request->next(p, sent, m);
}

/* Send the next message to the server. */
void task_request_go_on(struct mcp_provider *p, struct sent *sent, const char *method,
                        struct span members, task_request_step *next)
{
    struct task_request *tr = sent->task_request;
    BUF_SCOPED all = {0};

    tr->next = next;
    sent->keep = true;
    if (!sent->id)
        upstream_sent_renew(p, sent);
    json_out_text(&all, "taskId", span_str(tr->own));
    if (members.n)
        buf_char(&all, ',');
    buf_span(&all, members);
    upstream_request_named(p, sent, method, span_str(tr->own), buf_view(&all));
}

/* --- the end of the request --- */

void task_request_end_result(struct sent *sent, struct span body)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_RESULT, .body = body});
}

void task_request_end_error(struct sent *sent, struct span error)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_ERROR, .body = error});
}

void task_request_end_failed(struct sent *sent, enum failure why, struct span text)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_FAILED, .why = why, .text = text});
}

/* True, and the call has ended, if the answer is an error. */
bool task_request_ended_by_error(struct sent *sent, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_ERROR)
        task_request_end_error(sent, m->rpc.error);
    return m->rpc.kind == RPC_ERROR;
}

/* End with the result of the task, as the caller's era needs it. */
void task_request_end_with(struct mcp_provider *p, struct sent *sent, struct span result)
{
    const struct call *c = sent->call;
    const struct task *t =
        c->op == OP_TASK_RESULT ? task_request_task(p, span_str(sent->task_request->own)) : NULL;
    BUF_SCOPED legacy = {0}, body = {0};

    if (json_type_of(result) != JSON_OBJECT) {
        task_request_end_failed(sent, FAIL_PROTOCOL, SPAN("the task ended without a result"));
        return;
    }
    if (p->modern && !task_request_for_modern(c)) {
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
struct task *task_request_note(struct mcp_provider *p, const struct task_text *text)
{
    BUF_SCOPED scratch = {0}, state = {0};
    struct span own = json_text(text->id, &scratch);
    struct task *t = task_request_task(p, own);

    if (!t)
        return NULL;
    task_text_put(&state, text,
                  &(struct task_style){.modern = true,
                                       .id = span_str(t->id),
                                       .status = t->cancelled ? "cancelled" : NULL,
                                       .brief = true});
    task_note(task_request_tasks(p), t, buf_view(&state), task_text_ended(text));
    return t;
}

void task_request_end_with_task(struct mcp_provider *p, struct sent *sent, struct span raw,
                                const char *status, struct span more)
{
    struct task_text text = task_text_read(raw);
    BUF_SCOPED body = {0};

    if (!text.id.n) {
        task_request_end_failed(sent, FAIL_PROTOCOL,
                                SPAN("the server answered with something that is not a task"));
        return;
    }
    const struct task *t = task_request_note(p, &text);
    if (!t) {
        task_request_end_error(sent, SPAN(TASK_NOT_FOUND));
        return;
    }
    bool overruled = t->cancelled && !task_request_for_modern(sent->call);
    buf_char(&body, '{');
    task_text_put(&body, &text,
                  &(struct task_style){.modern = task_request_for_modern(sent->call),
                                       .id = span_str(t->id),
                                       .status = overruled ? "cancelled" : status,
                                       .more = more});
    buf_char(&body, '}');
    task_request_end_result(sent, buf_view(&body));
}

void task_request_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    BUF_SCOPED text = {0};

    if (!sent->call)
        return; /* a watch: the next tasks/get starts another */
    buf_printf(&text, "server '%s' gave no answer: %s", p->alias, why);
    task_request_end_failed(sent, status ? FAIL_PROTOCOL : FAIL_UNAVAILABLE, buf_view(&text));
}

/* --- running a task to its end --- */

static void run_got(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);

static void on_poll(struct timer *t)
{
    struct task_request *tr = CONTAINER_OF(t, struct task_request, poll);

    task_request_go_on(tr->provider, tr->sent, "tasks/get", SPAN_EMPTY, run_got);
}

static void poll_after(struct task_request *tr, uint64_t ms)
{
    uint64_t most = ms < POLL_MAX_MS ? ms : POLL_MAX_MS;

    tr->sent->keep = true;
    timer_set(router_timers(tr->provider->core.router), &tr->poll,
              most > POLL_MIN_MS ? most : POLL_MIN_MS);
}

/* Tasks of the stateless era have no progress, but a status message: send it as progress. */
static void tell_progress(struct mcp_provider *p, struct sent *sent, const struct task_text *t)
{
    static const char head[] = "{\"progressToken\":";
    struct task_request *tr = sent->task_request;
    BUF_SCOPED params = {0};

    if (!t->message.n || span_eq(t->message, buf_view(&tr->told)))
        return;
    buf_reset(&tr->told, 0);
    buf_span(&tr->told, t->message);
    buf_printf(&params, "%s0,\"progress\":%u,\"message\":" SPAN_FMT "}", head, ++tr->ticks,
               SPAN_ARG(t->message));
    call_event(sent->call, &(struct event){.kind = EVENT_PROGRESS,
                                           .params = buf_view(&params),
                                           .token_at = {sizeof head - 1, 1},
                                           .from = &p->core});
}

static void updated(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p;
    if (!task_request_ended_by_error(sent, m))
        poll_after(sent->task_request, POLL_MIN_MS);
}

/* Cancel the task at the server: no caller waits for it any more. */
static void cancel_own(struct mcp_provider *p, const struct task_request *tr);

/* The last question was answered. Called while a server's answer is handled (run_got), or later. */
static void all_answered(struct mcp_provider *p, struct sent *sent)
{
    struct task_request *tr = sent->task_request;
    BUF_SCOPED members = {0};

    if (tr->refusal.n) {
        if (sent->call->op == OP_CALL_TOOL)
            cancel_own(p, tr);
        if (tr->why == FAIL_NONE)
            task_request_end_error(sent, buf_view(&tr->refusal));
        else
            task_request_end_failed(sent, tr->why, buf_view(&tr->refusal));
        return;
    }
    buf_str(&members, "\"inputResponses\":{");
    buf_span(&members, buf_view(&tr->responses));
    buf_char(&members, '}');
    buf_reset(&tr->responses, 0);
    task_request_go_on(p, sent, "tasks/update", buf_view(&members), updated);
}

static void take_answer(struct task_request *tr, struct span key, const struct outcome *outcome)
{
    tr->open--;
    if (outcome->kind == OUTCOME_RESULT) {
        if (tr->responses.n)
            buf_char(&tr->responses, ',');
        buf_span(&tr->responses, key);
        buf_char(&tr->responses, ':');
        buf_span(&tr->responses, outcome->body);
    } else if (!tr->refusal.n) {
        bool ours = outcome->kind == OUTCOME_FAILED;
        tr->why = ours ? outcome->why : FAIL_NONE;
        buf_span(&tr->refusal, ours ? outcome->text : outcome->body);
    }
}

bool task_request_take_answer(struct mcp_provider *p, struct sent *sent, struct span key,
                              const struct outcome *outcome)
{
    struct task_request *tr = sent->task_request;

    if (!tr || !map_get(&tr->asked, key))
        return false;
    take_answer(tr, key, outcome);
    if (tr->open == 0) {
        all_answered(p, sent);
        if (!sent->keep)
            upstream_sent_free(p, sent);
    }
    return true;
}

/* Ask the questions that were not asked before. */
static void ask_new(struct mcp_provider *p, struct sent *sent, struct json_slot questions)
{
    struct task_request *tr = sent->task_request;
    struct json_iter it = json_iter(questions.value);

    while (questions.type == JSON_OBJECT && json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct json_slot method = json_get(it.value, "method"),
                         params = json_get(it.value, "params");
        if (it.type != JSON_OBJECT || method.type != JSON_STRING || map_get(&tr->asked, it.key))
            continue;
        map_put(&tr->asked, it.key, tr);
        tr->open++;
        struct ask ask = {.key = it.key,
                          .method = json_text(method.value, &scratch),
                          .params = params.type == JSON_OBJECT ? params.value : SPAN_EMPTY};
        ask.needs = mcp_ask_needs(method.value, ask.params);
        if (ask.needs)
            ask_put(sent->call, &ask);
        else
            take_answer(tr, it.key,
                        &(struct outcome){.kind = OUTCOME_FAILED,
                                          .why = FAIL_REFUSED,
                                          .text = SPAN("the task asks for something unknown")});
    }
    (void)p;
}

/* The state of a task that we run, from a server of the stateless era. */
static void run_got(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_request *tr = sent->task_request;
    struct task_text t = task_text_read(m->rpc.result);

    if (task_request_ended_by_error(sent, m))
        return;
    if (!t.id.n) {
        task_request_end_failed(sent, FAIL_PROTOCOL,
                                SPAN("the server answered with something that is not a task"));
        return;
    }
    task_request_note(p, &t);
    if (json_string_is(t.status, SPAN("completed")) && t.result.type != JSON_NONE) {
        task_request_end_with(p, sent, t.result.value);
    } else if (json_string_is(t.status, SPAN("failed")) && t.error.type == JSON_OBJECT) {
        task_request_end_error(sent, t.error.value);
    } else if (task_text_ended(&t)) {
        task_request_end_error(
            sent, SPAN("{\"code\":-32603,\"message\":\"The task ended without a result: it "
                       "was cancelled\"}"));
    } else {
        tell_progress(p, sent, &t);
        sent->keep = true;
        tr->open++; /* answers may come inside ask_new, before all are asked */
        ask_new(p, sent, t.questions);
        bool asked = tr->responses.n || tr->refusal.n;
        if (--tr->open == 0 && asked)
            all_answered(p, sent);
        else if (tr->open == 0)
            poll_after(tr, t.poll ? t.poll : POLL_MS);
    }
}

/* The end of a task that we run, from a server of the initialize era. */
static void ran(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!task_request_ended_by_error(sent, m))
        task_request_end_with(p, sent, m->rpc.result);
}

static void ignore(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p, (void)sent, (void)m;
}

static void ignore_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)p, (void)sent, (void)status, (void)why;
}

static void cancel_own(struct mcp_provider *p, const struct task_request *tr)
{
    struct sent *sent = upstream_sent_new(p, ignore, ignore_failed);
    BUF_SCOPED members = {0};

    json_out_text(&members, "taskId", span_str(tr->own));
    upstream_request_named(p, sent, "tasks/cancel", span_str(tr->own), buf_view(&members));
}

/* The entry only takes progress: another answer with its id is ignored. */
static void token_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p, (void)m;
    sent->keep = true;
}

void task_request_keep_token(struct mcp_provider *p, struct task_request *tr, struct span raw_id)
{
    int64_t id;

    if (!json_int(raw_id, &id))
        return;
    tr->token = upstream_sent_new(p, token_answered, ignore_failed);
    idmap_take(&p->sent, tr->token->id);
    tr->token->id = (uint64_t)id;
    tr->token->progress_only = true;
    tr->token->call = tr->sent->call;
    idmap_put(&p->sent, tr->token->id, tr->token);
}

void task_request_run(struct mcp_provider *p, struct sent *sent)
{
    if (p->modern)
        poll_after(sent->task_request, POLL_MIN_MS);
    else
        task_request_go_on(p, sent, "tasks/result", SPAN_EMPTY, ran);
}

void task_request_cancelled(struct mcp_provider *p, struct sent *sent)
{
    if (sent->task_request->own && sent->call->op == OP_CALL_TOOL)
        cancel_own(p, sent->task_request);
}
