/* Tasks on a server: calls that become tasks, requests about tasks in the words of either era, and
 * tasks that are run to their end for a caller that knows none. Called by upstream_calls.c for
 * calls and by provider.c for questions and notifications of tasks. */
#include "base/log.h"
#include "base/mem.h"
#include "core/principal.h"
#include "mcp/legacy.h"
#include "mcp/outcome.h"
#include "mcp/server/upstream.h"
#include "mcp/task_text.h"

#include <stdio.h>

/* How often a server is asked for a task's state: as it says, within these bounds. */
enum { POLL_MS = 1000, POLL_MIN_MS = 20, POLL_MAX_MS = 60 * 1000 };
/* A task may have this many questions open; more are refused. */
enum { MAX_QUESTIONS = 64 };

#define NOT_FOUND "{\"code\":-32602,\"message\":\"Task not found: its server has forgotten it\"}"

typedef void task_errand_step(struct mcp_provider *p, struct sent *sent,
                              const struct mcp_message *m);

/*
 * What it takes to do one request of a caller that concerns a task: often more than one request to
 * the server. A *watch* is an errand without a call: tasks/result of a server of the initialize
 * era, kept open to collect the questions for an agent of the stateless era.
 */
struct task_errand {
    struct mcp_provider *provider;
    struct sent *sent;
    task_errand_step *next; /* takes the answer to the request that is on its way */
    bool as_task;           /* the caller gets the task, not its end */
    bool declared;          /* the server was told that we take tasks */
    char *own;              /* the server's id of the task; NULL until there is one */
    struct kept_request kept;
    struct buf state;   /* the last state of the task, raw */
    struct timer poll;  /* asks for the state again */
    struct sent *token; /* takes the progress of the request that made the task */
    struct buf told;    /* the last status message that was told as progress */
    unsigned ticks;     /* how often that was done */

    struct map asked; /* keys of questions that were asked -> the errand */
    size_t open;      /* those without an answer */
    struct buf responses;
    struct buf refusal; /* raw error, or our text: a question was not answered */
    enum failure why;
    struct list questions; /* of a watch: struct task_question */
    size_t n_questions;
    unsigned answers; /* of a watch: what its agent can be asked */
};

/* A question that waits for tasks/update. */
struct task_question {
    struct list node;
    char *id; /* raw, of the server's request */
    char *method, *params;
};

static bool is_modern(const struct call *c)
{
    return (c->answers & ANSWERS_BY_RETRY) != 0;
}

static struct tasks *table(const struct mcp_provider *p)
{
    return router_tasks(p->core.router);
}

static struct task *task_of(const struct mcp_provider *p, struct span own)
{
    struct task *t = tasks_find_own(table(p), span_str(p->alias), p->instance, own);

    return t ? t : tasks_find_own(table(p), span_str(p->alias), 0, own);
}

/* --- life --- */

static void question_free(struct task_errand *watch, struct task_question *q)
{
    watch->n_questions--;
    list_remove(&q->node);
    mem_free(q->id);
    mem_free(q->method);
    mem_free(q->params);
    mem_free(q);
}

void upstream_tasks_free(struct task_errand *e)
{
    if (!e)
        return;
    struct mcp_provider *p = e->provider;
    timer_clear(router_timers(p->core.router), &e->poll);
    if (e->own && map_get(&p->watches, span_str(e->own)) == e)
        map_del(&p->watches, span_str(e->own));
    if (e->token)
        upstream_sent_free(p, e->token);
    LIST_EACH_SAFE (&e->questions, it)
        question_free(e, LIST_ENTRY(it, struct task_question, node));
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

static struct task_errand *errand_new(struct mcp_provider *p, struct sent *sent, struct span own)
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

static void errand_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    sent->errand->next(p, sent, m);
}

/* Send the next request of an errand. */
static void go_on(struct mcp_provider *p, struct sent *sent, const char *method,
                  struct span members, task_errand_step *next)
{
    struct task_errand *e = sent->errand;
    BUF_SCOPED all = {0};

    e->next = next;
    sent->keep = true;
    if (!sent->id)
        upstream_sent_renew(p, sent);
    buf_str(&all, "\"taskId\":");
    json_quote(&all, span_str(e->own));
    if (members.n)
        buf_char(&all, ',');
    buf_span(&all, members);
    upstream_request_named(p, sent, method, span_str(e->own), buf_view(&all));
}

/* --- the end of an errand --- */

static void end_result(struct sent *sent, struct span body)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_RESULT, .body = body});
}

static void end_error(struct sent *sent, struct span error)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_ERROR, .body = error});
}

static void end_failed(struct sent *sent, enum failure why, struct span text)
{
    sent->keep = false;
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_FAILED, .why = why, .text = text});
}

/* True, and the call has ended, if the answer is an error. */
static bool ended_by_error(struct sent *sent, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_ERROR)
        end_error(sent, m->rpc.error);
    return m->rpc.kind == RPC_ERROR;
}

/* The result of the call behind a task, as the consumer of this errand has to see it. */
static void end_with(struct mcp_provider *p, struct sent *sent, struct span result)
{
    const struct call *c = sent->call;
    const struct task *t = c->op == OP_TASK_RESULT ? task_of(p, span_str(sent->errand->own)) : NULL;
    BUF_SCOPED legacy = {0}, body = {0};

    if (json_type_of(result) != JSON_OBJECT) {
        end_failed(sent, FAIL_PROTOCOL, SPAN("the task ended without a result"));
        return;
    }
    if (p->modern && !is_modern(c)) {
        legacy_put_result(&legacy, OP_CALL_TOOL, result, false);
        result = buf_view(&legacy);
    }
    task_text_relate(&body, result, t ? span_str(t->id) : SPAN_EMPTY);
    sent->keep = false;
    call_done(sent->call,
              &(struct outcome){.kind = OUTCOME_RESULT,
                                .body = buf_view(&body),
                                .is_error = json_get(result, "isError").type == JSON_TRUE});
}

/* Remember the state that the server has told; NULL: the task is not known here. */
static struct task *note(struct mcp_provider *p, const struct task_text *text)
{
    BUF_SCOPED scratch = {0}, state = {0};
    struct span own = json_text(text->id, &scratch);
    struct task *t = task_of(p, own);

    if (p->modern && task_text_ended(text))
        upstream_follow_task(p, own, false);
    if (!t)
        return NULL;
    task_text_put(&state, text,
                  &(struct task_style){.modern = true,
                                       .id = span_str(t->id),
                                       .status = t->cancelled ? "cancelled" : NULL,
                                       .brief = true});
    task_note(table(p), t, buf_view(&state), task_text_ended(text));
    return t;
}

static void end_with_task(struct mcp_provider *p, struct sent *sent, struct span raw,
                          const char *status, struct span more)
{
    struct task_text text = task_text_read(raw);
    BUF_SCOPED body = {0};

    if (!text.id.n) {
        end_failed(sent, FAIL_PROTOCOL, SPAN("the server answered with something that is no task"));
        return;
    }
    const struct task *t = note(p, &text);
    if (!t) {
        end_error(sent, SPAN(NOT_FOUND));
        return;
    }
    bool overruled = t->cancelled && !is_modern(sent->call);
    buf_char(&body, '{');
    task_text_put(&body, &text,
                  &(struct task_style){.modern = is_modern(sent->call),
                                       .id = span_str(t->id),
                                       .status = overruled ? "cancelled" : status,
                                       .more = more});
    buf_char(&body, '}');
    end_result(sent, buf_view(&body));
}

static void errand_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    BUF_SCOPED text = {0};

    if (!sent->call)
        return; /* a watch: the next tasks/get starts another */
    buf_printf(&text, "server '%s' gave no answer: %s", p->alias, why);
    end_failed(sent, status ? FAIL_PROTOCOL : FAIL_UNAVAILABLE, buf_view(&text));
}

/* --- running a task to its end --- */

static void run_got(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);

static void on_poll(struct timer *t)
{
    struct task_errand *e = CONTAINER_OF(t, struct task_errand, poll);

    go_on(e->provider, e->sent, "tasks/get", SPAN_EMPTY, run_got);
}

static void poll_after(struct task_errand *e, uint64_t ms)
{
    uint64_t most = ms < POLL_MAX_MS ? ms : POLL_MAX_MS;

    e->sent->keep = true;
    timer_set(router_timers(e->provider->core.router), &e->poll,
              most > POLL_MIN_MS ? most : POLL_MIN_MS);
}

/* The stateless era has no progress of tasks, but a message that says how they stand. */
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
    if (!ended_by_error(sent, m))
        poll_after(sent->errand, POLL_MIN_MS);
}

/* Nobody waits for the task any more. */
static void cancel_own(struct mcp_provider *p, const struct task_errand *e);

/* The last question was answered; from inside and from outside of an answer. */
static void all_answered(struct mcp_provider *p, struct sent *sent)
{
    struct task_errand *e = sent->errand;
    BUF_SCOPED members = {0};

    if (e->refusal.n) {
        if (sent->call->op == OP_CALL_TOOL)
            cancel_own(p, e);
        if (e->why == FAIL_NONE)
            end_error(sent, buf_view(&e->refusal));
        else
            end_failed(sent, e->why, buf_view(&e->refusal));
        return;
    }
    buf_str(&members, "\"inputResponses\":{");
    buf_span(&members, buf_view(&e->responses));
    buf_char(&members, '}');
    buf_reset(&e->responses, 0);
    go_on(p, sent, "tasks/update", buf_view(&members), updated);
}

static void take_answer(struct task_errand *e, struct span key, const struct outcome *outcome)
{
    e->open--;
    if (outcome->kind == OUTCOME_RESULT) {
        if (e->responses.n)
            buf_char(&e->responses, ',');
        buf_span(&e->responses, key);
        buf_char(&e->responses, ':');
        mcp_put_raw(&e->responses, outcome->body);
    } else if (!e->refusal.n) {
        bool ours = outcome->kind == OUTCOME_FAILED;
        e->why = ours ? outcome->why : FAIL_NONE;
        buf_span(&e->refusal, ours ? outcome->text : outcome->body);
    }
}

bool upstream_tasks_answered(struct mcp_provider *p, struct sent *sent, struct span key,
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
        struct rpc_message as_request = {.kind = RPC_REQUEST,
                                         .method = json_text(method.value, &scratch),
                                         .params = params.type == JSON_OBJECT ? params.value
                                                                              : SPAN_EMPTY};
        map_put(&e->asked, it.key, e);
        e->open++;
        struct ask ask = {.key = it.key,
                          .method = as_request.method,
                          .params = as_request.params,
                          .needs = mcp_ask_needs(&as_request)};
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

    if (ended_by_error(sent, m))
        return;
    if (!t.id.n) {
        end_failed(sent, FAIL_PROTOCOL, SPAN("the server answered with something that is no task"));
        return;
    }
    note(p, &t);
    if (json_string_is(t.status, SPAN("completed")) && t.result.type != JSON_NONE) {
        end_with(p, sent, t.result.value);
    } else if (json_string_is(t.status, SPAN("failed")) && t.error.type == JSON_OBJECT) {
        end_error(sent, t.error.value);
    } else if (task_text_ended(&t)) {
        end_error(sent, SPAN("{\"code\":-32603,\"message\":\"The task ended without a result: it "
                             "was cancelled\"}"));
    } else {
        tell_progress(p, sent, &t);
        sent->keep = true;
        e->open++; /* answers may come inside ask_new */
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
    if (!ended_by_error(sent, m))
        end_with(p, sent, m->rpc.result);
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

    buf_str(&members, "\"taskId\":");
    json_quote(&members, span_str(e->own));
    upstream_request_named(p, sent, "tasks/cancel", span_str(e->own), buf_view(&members));
}

/* The token of the call is good for as long as its task. */
static void token_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p, (void)m;
    sent->keep = true;
}

static void keep_token(struct mcp_provider *p, struct task_errand *e, struct span raw_id)
{
    int64_t id;

    if (!json_int(raw_id, &id))
        return;
    e->token = upstream_sent_new(p, token_answered, ignore_failed);
    idmap_take(&p->sent, e->token->id);
    e->token->id = (uint64_t)id;
    e->token->call = e->sent->call;
    idmap_put(&p->sent, e->token->id, e->token);
}

static void run(struct mcp_provider *p, struct sent *sent)
{
    if (p->modern)
        poll_after(sent->errand, POLL_MIN_MS);
    else
        go_on(p, sent, "tasks/result", SPAN_EMPTY, ran);
}

void upstream_tasks_cancelled(struct mcp_provider *p, struct sent *sent)
{
    if (sent->errand->own && sent->call->op == OP_CALL_TOOL)
        cancel_own(p, sent->errand);
}

/* --- questions for an agent of the stateless era --- */

static void put_questions(struct buf *out, const struct task_errand *watch)
{
    buf_str(out, "\"inputRequests\":{");
    LIST_EACH (&watch->questions, it) {
        const struct task_question *q = LIST_ENTRY(it, struct task_question, node);
        if (it != watch->questions.next)
            buf_char(out, ',');
        json_quote(out, span_str(q->id));
        buf_str(out, ":{\"method\":");
        json_quote(out, span_str(q->method));
        buf_printf(out, ",\"params\":%s}", q->params);
    }
    buf_char(out, '}');
}

static void tell(struct mcp_provider *p, const struct task *t, struct span members, bool whole)
{
    BUF_SCOPED params = {0};

    buf_char(&params, '{');
    buf_span(&params, members);
    buf_char(&params, '}');
    router_broadcast(&p->core, &(struct event){.kind = EVENT_TASK,
                                               .name = span_str(t->id),
                                               .params = buf_view(&params),
                                               .whole = whole,
                                               .from = &p->core});
}

/* Tell those who listen, with the last known state but for its status. */
static void tell_watched(struct mcp_provider *p, const struct task_errand *watch,
                         const char *status, struct span more)
{
    struct task *t = task_of(p, span_str(watch->own));
    bool watch_asks = strcmp(status, "input_required") == 0;
    BUF_SCOPED members = {0}, brief = {0};

    if (!t)
        return;
    struct task_style style = {.modern = true, .id = span_str(t->id), .status = status};
    task_text_put_again(&brief, span_str(t->state), &style);
    task_note(table(p), t, buf_view(&brief), !watch_asks);
    style.more = more;
    task_text_put_again(&members, span_str(t->state), &style);
    tell(p, t, buf_view(&members), true);
}

/* A result of the initialize era inside a task of the stateless era. */
static void put_result(struct buf *out, struct span result)
{
    BUF_SCOPED plain = {0};

    buf_str(out, "\"result\":");
    task_text_relate(&plain, result, SPAN_EMPTY);
    json_insert(out, buf_view(&plain), SPAN("\"resultType\":\"complete\""));
}

/* The answer to tasks/result as a member of the task. */
static void put_end(struct buf *out, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_RESULT) {
        put_result(out, m->rpc.result);
    } else {
        buf_str(out, "\"error\":");
        buf_span(out, m->rpc.error);
    }
}

static void watch_ended(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    BUF_SCOPED more = {0};

    put_end(&more, m);
    tell_watched(p, sent->errand, ok ? "completed" : "failed", buf_view(&more));
}

static struct task_errand *watch_start(struct mcp_provider *p, struct span own, unsigned answers)
{
    struct task_errand *watch = map_get(&p->watches, own);

    if (!watch) {
        struct sent *sent = upstream_sent_new(p, errand_answered, errand_failed);
        watch = errand_new(p, sent, own);
        map_put(&p->watches, own, watch);
        go_on(p, sent, "tasks/result", SPAN_EMPTY, watch_ended);
    }
    watch->answers = answers;
    return watch;
}

/* The watch that a message of the server belongs to: it says so, or came on the watch's stream. */
static struct task_errand *watch_of(const struct mcp_provider *p, struct span related,
                                    uint64_t about)
{
    const struct sent *sent = idmap_get(&p->sent, about);
    BUF_SCOPED scratch = {0};

    if (related.n)
        return map_get(&p->watches, json_text(related, &scratch));
    return sent && !sent->call ? sent->errand : NULL;
}

bool upstream_tasks_ask(struct mcp_provider *p, const struct mcp_message *m, uint64_t about,
                        const struct ask *ask)
{
    struct task_errand *watch = watch_of(p, task_text_related(m->rpc.params), about);
    BUF_SCOPED params = {0}, more = {0};

    if (!watch)
        return false;
    if ((ask->needs & ~watch->answers) || watch->n_questions == MAX_QUESTIONS) {
        rpc_put_error(p->ops->begin(p->link), m->rpc.id, RPC_METHOD_NOT_FOUND,
                      SPAN("The client of this task cannot be asked that"), SPAN_EMPTY);
        upstream_send(p, (struct mcp_parcel){.kind = RPC_ERROR, .about = watch->sent->id});
        return true;
    }
    struct task_question *q = MEM_NEW(struct task_question);
    task_text_relate(&params, m->rpc.params.n ? m->rpc.params : SPAN("{}"), SPAN_EMPTY);
    q->id = mem_span(m->rpc.id);
    q->method = mem_span(ask->method);
    q->params = buf_take(&params);
    list_append(&watch->questions, &q->node);
    watch->n_questions++;
    put_questions(&more, watch);
    tell_watched(p, watch, "input_required", buf_view(&more));
    return true;
}

bool upstream_tasks_unask(struct mcp_provider *p, struct span id)
{
    void *watch;
    size_t at = 0;

    while (map_next(&p->watches, &at, NULL, &watch)) {
        LIST_EACH (&((struct task_errand *)watch)->questions, it) {
            struct task_question *q = LIST_ENTRY(it, struct task_question, node);
            if (!span_is(id, q->id))
                continue;
            question_free(watch, q);
            return true;
        }
    }
    return false;
}

static void answer_question(struct mcp_provider *p, struct task_errand *watch, struct span key,
                            struct span response)
{
    LIST_EACH_SAFE (&watch->questions, it) {
        struct task_question *q = LIST_ENTRY(it, struct task_question, node);
        if (!json_string_is(key, span_str(q->id)))
            continue;
        BUF_SCOPED body = {0};
        task_text_relate(&body, response, span_str(watch->own));
        rpc_put_result(p->ops->begin(p->link), span_str(q->id), buf_view(&body));
        upstream_send(p, (struct mcp_parcel){.kind = RPC_RESULT, .about = watch->sent->id});
        question_free(watch, q);
    }
}

/* --- requests about a task, between two eras --- */

static void update_here(struct mcp_provider *p, struct sent *sent, const struct request *request)
{
    struct task_errand *watch = map_get(&p->watches, request->name);
    struct json_slot responses = json_get(request->params, "inputResponses");
    struct json_iter it = json_iter(responses.value);

    while (watch && responses.type == JSON_OBJECT && json_next(&it))
        if (it.type == JSON_OBJECT)
            answer_question(p, watch, it.key, it.value);
    end_result(sent, SPAN("{}"));
}

static void inlined(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    BUF_SCOPED more = {0};

    put_end(&more, m);
    end_with_task(p, sent, buf_view(&sent->errand->state), ok ? "completed" : "failed",
                  buf_view(&more));
}

/* A server of the initialize era has told the state: add what the stateless era has in it. */
static void got_for_modern(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_errand *e = sent->errand;
    struct task_text t = task_text_read(m->rpc.result);
    BUF_SCOPED more = {0};

    if (ended_by_error(sent, m))
        return;
    bool cancelled = json_string_is(t.status, SPAN("cancelled"));
    if (t.id.n && task_text_ended(&t) && !cancelled) {
        buf_span(&e->state, m->rpc.result);
        go_on(p, sent, "tasks/result", SPAN_EMPTY, inlined);
        return;
    }
    const char *status = NULL;
    if (t.id.n && !cancelled) {
        const struct task_errand *watch = watch_start(p, span_str(e->own), sent->call->answers);
        bool asks = !list_empty(&watch->questions);
        if (asks)
            put_questions(&more, watch);
        status = asks ? "input_required" : "working"; /* the questions are still on their way */
    }
    end_with_task(p, sent, m->rpc.result, status, buf_view(&more));
}

static void get_for_modern(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    go_on(p, sent, "tasks/get", SPAN_EMPTY, got_for_modern);
}

/* --- cancelling --- */

static void exists(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p;
    if (!ended_by_error(sent, m))
        end_result(sent, SPAN("{}"));
}

/* In the stateless era a task that has ended can be cancelled, which does nothing. */
static void cancelled_for_modern(struct mcp_provider *p, struct sent *sent,
                                 const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_ERROR)
        go_on(p, sent, "tasks/get", SPAN_EMPTY, exists);
    else
        end_result(sent, SPAN("{}"));
}

static void cancel_for_modern(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    go_on(p, sent, "tasks/cancel", SPAN_EMPTY, cancelled_for_modern);
}

static void got_cancelled(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task *t = task_of(p, span_str(sent->errand->own));

    if (ended_by_error(sent, m))
        return;
    if (t)
        task_cancelled(table(p), t);
    end_with_task(p, sent, m->rpc.result, "cancelled", SPAN_EMPTY);
}

static void acknowledged(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!ended_by_error(sent, m))
        go_on(p, sent, "tasks/get", SPAN_EMPTY, got_cancelled);
}

#define ENDED                                                                                      \
    "{\"code\":-32602,\"message\":\"Cannot cancel task: it has ended already (completed, failed "  \
    "or cancelled)\"}"

/* In the initialize era a task that has ended cannot be cancelled, and is cancelled at once. */
static void got_before_cancel(struct mcp_provider *p, struct sent *sent,
                              const struct mcp_message *m)
{
    struct task_text t = task_text_read(m->rpc.result);
    const struct task *known = task_of(p, span_str(sent->errand->own));

    if (ended_by_error(sent, m))
        return;
    if (task_text_ended(&t) || (known && known->cancelled))
        end_error(sent, SPAN(ENDED));
    else
        go_on(p, sent, "tasks/cancel", SPAN_EMPTY, acknowledged);
}

static void cancel_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    go_on(p, sent, "tasks/get", SPAN_EMPTY, got_before_cancel);
}

static void got_for_legacy(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!ended_by_error(sent, m))
        end_with_task(p, sent, m->rpc.result, NULL, SPAN_EMPTY);
}

static void get_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    go_on(p, sent, "tasks/get", SPAN_EMPTY, got_for_legacy);
}

static void run_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    run(p, sent);
}

/* --- requests about a task, inside one era --- */

/* Append the object with the id that the caller knows. */
static void put_with_id(struct buf *out, struct span object, struct span id_at, const char *id)
{
    size_t at = (size_t)(id_at.p - object.p);

    buf_span(out, span_cut(object, 0, at));
    json_quote(out, span_str(id));
    buf_span(out, span_from(object, at + id_at.n));
}

static void passed(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_text text = task_text_read(m->rpc.result);
    BUF_SCOPED body = {0};

    if (ended_by_error(sent, m))
        return;
    if (sent->call->op == OP_TASK_RESULT) {
        end_with(p, sent, m->rpc.result);
        return;
    }
    const struct task *t = text.id.n ? note(p, &text) : NULL;
    if (t)
        put_with_id(&body, m->rpc.result, text.id, t->id);
    end_result(sent, t ? buf_view(&body) : m->rpc.result);
}

static void pass(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    sent->errand->next = passed;
    sent->keep = true;
    upstream_sent_renew(p, sent);
    upstream_send_call(p, sent, r, SPAN_EMPTY);
}

/* A task whose result we keep has ended, and no server knows it. */
static void answer_kept(struct sent *sent, const struct task *t)
{
    BUF_SCOPED body = {0}, more = {0};
    bool modern = is_modern(sent->call);

    if (sent->call->op == OP_TASK_RESULT) {
        task_text_relate(&body, span_str(t->result), span_str(t->id));
    } else if (sent->call->op == OP_TASK_CANCEL && !modern) {
        end_error(sent, SPAN(ENDED));
        return;
    } else if (sent->call->op == OP_TASK_GET) {
        put_result(&more, span_str(t->result));
        buf_char(&body, '{');
        task_text_put_again(&body, span_str(t->state),
                            &(struct task_style){.modern = modern,
                                                 .id = span_str(t->id),
                                                 .more = modern ? buf_view(&more) : SPAN_EMPTY});
        buf_char(&body, '}');
    } else {
        buf_str(&body, "{}");
    }
    end_result(sent, buf_view(&body));
}

void upstream_tasks_open(struct mcp_provider *p, struct call *call, const struct request *request)
{
    typedef void open_fn(struct mcp_provider * p, struct sent * sent, const struct request *r);
    /* For an agent of the other era than the server's: of the stateless, of the initialize era. */
    static const struct {
        open_fn *for_modern, *for_legacy;
    } rows[] = {
        [OP_TASK_GET - OP_TASK_GET] = {get_for_modern, get_for_legacy},
        [OP_TASK_RESULT - OP_TASK_GET] = {pass, run_for_legacy},
        [OP_TASK_CANCEL - OP_TASK_GET] = {cancel_for_modern, cancel_for_legacy},
        [OP_TASK_UPDATE - OP_TASK_GET] = {update_here, pass},
    };
    const struct task *t = task_of(p, request->name);
    struct sent *sent = upstream_sent_new(p, errand_answered, errand_failed);

    idmap_take(&p->sent, sent->id); /* nothing is on its way yet */
    sent->id = 0;
    sent->call = call;
    call->provider_data = sent;
    errand_new(p, sent, request->name);
    if (!t)
        end_error(sent, SPAN(NOT_FOUND));
    else if (t->result)
        answer_kept(sent, t);
    else if (p->modern == is_modern(call))
        pass(p, sent, request);
    else if (is_modern(call))
        rows[request->op - OP_TASK_GET].for_modern(p, sent, request);
    else
        rows[request->op - OP_TASK_GET].for_legacy(p, sent, request);
    if (!sent->keep)
        upstream_sent_free(p, sent);
}

/* --- calls that become tasks --- */

static unsigned flags_of(const struct mcp_provider *p, struct span own)
{
    const struct catalog *c = p->core.catalog;

    for (size_t i = 0; c && i < c->n[ITEM_TOOL]; i++) {
        const struct item *tool = &c->items[ITEM_TOOL][i];
        if (span_eq(tool->own.n ? tool->own : tool->name, own))
            return tool->flags;
    }
    return 0;
}

struct span upstream_tasks_begin(struct mcp_provider *p, struct sent *sent, struct request *r)
{
    bool modern = (r->answers & ANSWERS_BY_RETRY) != 0;
    bool wanted = modern ? (r->answers & ANSWERS_TASKS) != 0 : r->as_task;
    unsigned flags = p->modern ? 0 : flags_of(p, r->name);
    bool add = (flags & ITEM_TASK_MUST) || (wanted && (flags & ITEM_TASK_MAY));

    if (!p->modern && !add && !r->as_task)
        return SPAN_EMPTY;
    struct task_errand *e = errand_new(p, sent, SPAN_EMPTY);
    e->as_task = wanted;
    e->declared = p->modern && wanted;
    if (e->declared)
        r->answers |= ANSWERS_TASKS;
    else if (p->modern)
        call_keep_request(&e->kept, r);
    return add && !r->as_task ? SPAN("\"task\":{}") : SPAN_EMPTY;
}

static struct task *add_task(struct mcp_provider *p, const struct call *c,
                             const struct task_text *text, struct span own)
{
    BUF_SCOPED state = {0};

    task_text_put(&state, text, &(struct task_style){.modern = true, .id = own, .brief = true});
    return tasks_add(table(p), &(struct task_facts){.server = span_str(p->alias),
                                                    .own = own,
                                                    .state = buf_view(&state),
                                                    .owner = principal_name(c->principal),
                                                    .party = c->party,
                                                    .instance = p->instance,
                                                    .life = text->ttl,
                                                    .plain = c->view && !view_pattern(c->view) &&
                                                             !view_member(c->view, 1)});
}

/* The caller gets the task, in its own words. */
static void give_task(struct mcp_provider *p, struct sent *sent, struct span result,
                      const struct task_text *text, const struct task *t)
{
    bool modern = is_modern(sent->call);
    BUF_SCOPED body = {0};

    if (p->modern == modern) {
        put_with_id(&body, result, text->id, t->id);
    } else {
        buf_str(&body, modern ? "{\"resultType\":\"task\"," : "{\"task\":{");
        task_text_put(&body, text,
                      &(struct task_style){.modern = modern, .id = span_str(t->id), .brief = true});
        buf_str(&body, modern ? "}" : "}}");
    }
    end_result(sent, buf_view(&body));
}

static void created(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m,
                    struct span raw)
{
    struct task_errand *e = sent->errand;
    struct task_text text = task_text_read(raw);
    BUF_SCOPED scratch = {0};

    if (!text.id.n) {
        end_failed(sent, FAIL_PROTOCOL, SPAN("the server answered with a task that is none"));
        return;
    }
    struct span own = json_text(text.id, &scratch);
    if (!e->as_task) {
        e->own = mem_span(own);
        sent->answered = errand_answered;
        sent->failed = errand_failed;
        if (!p->modern && sent->call->wants_progress)
            keep_token(p, e, m->rpc.id);
        run(p, sent);
        return;
    }
    const struct task *t = add_task(p, sent->call, &text, own);
    if (!t) {
        end_failed(sent, FAIL_PROTOCOL, SPAN("the server gave its task an id that is too long"));
        return;
    }
    if (p->modern)
        upstream_follow_task(p, own, true);
    else if (is_modern(sent->call))
        watch_start(p, own, sent->call->answers);
    give_task(p, sent, m->rpc.result, &text, t);
}

/* The caller wanted a task, and the server, which decides alone, had the result at once. */
static bool keep_result(struct mcp_provider *p, struct sent *sent, struct span result)
{
    BUF_SCOPED kept = {0}, state = {0}, body = {0};
    char now[32];

    legacy_put_result(&kept, OP_CALL_TOOL, result, false);
    task_text_time(now, tasks_now(table(p)));
    bool failed = json_get(result, "isError").type == JSON_TRUE;
    buf_printf(&state,
               "\"taskId\":\"\",\"status\":\"%s\",\"createdAt\":\"%s\",\"lastUpdatedAt\":\"%s\","
               "\"ttlMs\":%llu",
               failed ? "failed" : "completed", now, now, (unsigned long long)TASK_LIFE_MAX);
    const struct task *t =
        tasks_add(table(p), &(struct task_facts){.server = span_str(p->alias),
                                                 .state = buf_view(&state),
                                                 .result = buf_view(&kept),
                                                 .owner = principal_name(sent->call->principal),
                                                 .party = sent->call->party});
    if (!t)
        return false; /* too much to keep: the caller gets the result itself */
    buf_str(&body, "{\"task\":{");
    task_text_put_again(&body, span_str(t->state), &(struct task_style){.id = span_str(t->id)});
    buf_str(&body, "}}");
    end_result(sent, buf_view(&body));
    return true;
}

/* The server cannot do without a task: send the call again, and run the task ourselves. */
static bool declare(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_errand *e = sent->errand;
    struct rpc_error error = rpc_error_of(m->rpc.error);

    if (e->declared || error.code != MCP_ERROR_CAPABILITY ||
        !(mcp_answers_of(json_get(error.data, "requiredCapabilities").value) & ANSWERS_TASKS))
        return false;
    e->declared = true;
    e->kept.request.answers |= ANSWERS_TASKS;
    if (sent->rounds)
        upstream_modern_declare(sent->rounds, ANSWERS_TASKS);
    sent->keep = true;
    upstream_sent_renew(p, sent);
    upstream_send_call(p, sent, &e->kept.request, SPAN_EMPTY);
    return true;
}

bool upstream_tasks_made(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    const struct json_slot *type = &m->slots[SLOT_RESULT_TYPE];

    if (m->rpc.kind == RPC_ERROR)
        return p->modern && declare(p, sent, m);
    if (!p->modern) {
        struct json_slot task = json_get(m->rpc.result, "task");
        if (task.type == JSON_OBJECT)
            created(p, sent, m, task.value);
        return task.type == JSON_OBJECT;
    }
    if (json_string_is(type->value, SPAN("task"))) {
        created(p, sent, m, m->rpc.result);
        return true;
    }
    return sent->errand->as_task && !is_modern(sent->call) &&
           !json_string_is(type->value, SPAN("input_required")) &&
           keep_result(p, sent, m->rpc.result);
}

/* --- what the server tells --- */

void upstream_tasks_told(struct mcp_provider *p, const struct mcp_message *m)
{
    struct task_text text = task_text_read(m->rpc.params);
    BUF_SCOPED members = {0};

    if (!text.id.n)
        return;
    const struct task *t = note(p, &text);
    if (!t)
        return; /* nobody's, or one that we run for a caller that knows no tasks */
    task_text_put(&members, &text,
                  &(struct task_style){.modern = true,
                                       .id = span_str(t->id),
                                       .status = t->cancelled ? "cancelled" : NULL});
    tell(p, t, buf_view(&members), p->modern);
}

struct call *upstream_tasks_owner(const struct mcp_provider *p, struct span related)
{
    BUF_SCOPED scratch = {0};
    struct span own = related.n ? json_text(related, &scratch) : SPAN_EMPTY;

    LIST_EACH (&p->all_sent, it) {
        const struct sent *sent = LIST_ENTRY(it, struct sent, node);
        if (own.n && sent->call && sent->errand && sent->errand->own &&
            span_is(own, sent->errand->own))
            return sent->call;
    }
    return NULL;
}

struct span upstream_tasks_relate(const struct mcp_provider *p, struct span params,
                                  struct buf *scratch)
{
    BUF_SCOPED own = {0};
    struct span related = task_text_related(params);

    if (!related.n)
        return params;
    const struct task *t = task_of(p, json_text(related, &own));
    task_text_relate(scratch, params, t ? span_str(t->id) : SPAN_EMPTY);
    return buf_view(scratch);
}

struct span upstream_tasks_relate_back(const struct sent *sent, struct span body,
                                       struct buf *scratch)
{
    if (!sent->errand || !sent->errand->own || json_type_of(body) != JSON_OBJECT)
        return body;
    task_text_relate(scratch, body, span_str(sent->errand->own));
    return buf_view(scratch);
}
