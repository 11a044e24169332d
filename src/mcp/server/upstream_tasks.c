/* Tasks on a server: calls that become tasks, and requests about tasks in the words of either era.
 * Called by upstream_calls.c for calls, by provider.c and notices.c for messages about tasks. */
#include "base/log.h"
#include "base/mem.h"
#include "core/principal.h"
#include "mcp/legacy.h"
#include "mcp/outcome.h"
#include "mcp/server/task_watch.h"

#include <stdio.h>

/* --- requests about a task, between two eras --- */

static void update_here(struct mcp_provider *p, struct sent *sent, const struct request *request)
{
    struct task_request *watch = map_get(&p->watches, request->name);
    struct json_slot responses = json_get(request->params, "inputResponses");
    struct json_iter it = json_iter(responses.value);

    while (watch && responses.type == JSON_OBJECT && json_next(&it))
        if (it.type == JSON_OBJECT)
            task_watch_answer(p, watch, it.key, it.value);
    task_request_end_result(sent, SPAN("{}"));
}

static void inlined(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    BUF_SCOPED more = {0};

    task_watch_put_end(&more, m);
    task_request_end_with_task(p, sent, buf_view(&sent->task_request->state),
                               ok ? "completed" : "failed", buf_view(&more));
}

/* The state from a server of the initialize era: add the result or the questions, which a state of
 * the stateless era includes. */
static void got_for_modern(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_request *tr = sent->task_request;
    struct task_text t = task_text_read(m->rpc.result);
    BUF_SCOPED more = {0};

    if (task_request_ended_by_error(sent, m))
        return;
    bool cancelled = json_string_is(t.status, SPAN("cancelled"));
    if (t.id.n && task_text_ended(&t) && !cancelled) {
        buf_span(&tr->state, m->rpc.result);
        task_request_go_on(p, sent, "tasks/result", SPAN_EMPTY, inlined);
        return;
    }
    const char *status = NULL;
    if (t.id.n && !cancelled) {
        const struct task_request *watch =
            task_watch_start(p, span_str(tr->own), sent->call->answers);
        bool asks = !list_empty(&watch->questions);
        if (asks)
            task_watch_put_questions(&more, watch);
        status = asks ? "input_required" : "working"; /* no question has come yet */
    }
    task_request_end_with_task(p, sent, m->rpc.result, status, buf_view(&more));
}

static void get_for_modern(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    task_request_go_on(p, sent, "tasks/get", SPAN_EMPTY, got_for_modern);
}

/* --- cancelling --- */

static void exists(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)p;
    if (!task_request_ended_by_error(sent, m))
        task_request_end_result(sent, SPAN("{}"));
}

/* In the stateless era cancelling a task that has ended succeeds, and does nothing. */
static void cancelled_for_modern(struct mcp_provider *p, struct sent *sent,
                                 const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_ERROR)
        task_request_go_on(p, sent, "tasks/get", SPAN_EMPTY, exists);
    else
        task_request_end_result(sent, SPAN("{}"));
}

static void cancel_for_modern(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    task_request_go_on(p, sent, "tasks/cancel", SPAN_EMPTY, cancelled_for_modern);
}

static void got_cancelled(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task *t = task_request_task(p, span_str(sent->task_request->own));

    if (task_request_ended_by_error(sent, m))
        return;
    if (t)
        task_cancelled(task_request_tasks(p), t);
    task_request_end_with_task(p, sent, m->rpc.result, "cancelled", SPAN_EMPTY);
}

static void acknowledged(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!task_request_ended_by_error(sent, m))
        task_request_go_on(p, sent, "tasks/get", SPAN_EMPTY, got_cancelled);
}

#define ENDED                                                                                      \
    "{\"code\":-32602,\"message\":\"Cannot cancel task: it has ended already (completed, failed "  \
    "or cancelled)\"}"

/* In the initialize era cancelling a task that has ended is an error; any other task is cancelled
 * when the answer comes. */
static void got_before_cancel(struct mcp_provider *p, struct sent *sent,
                              const struct mcp_message *m)
{
    struct task_text t = task_text_read(m->rpc.result);
    const struct task *known = task_request_task(p, span_str(sent->task_request->own));

    if (task_request_ended_by_error(sent, m))
        return;
    if (task_text_ended(&t) || (known && known->cancelled))
        task_request_end_error(sent, SPAN(ENDED));
    else
        task_request_go_on(p, sent, "tasks/cancel", SPAN_EMPTY, acknowledged);
}

static void cancel_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    task_request_go_on(p, sent, "tasks/get", SPAN_EMPTY, got_before_cancel);
}

static void got_for_legacy(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    if (!task_request_ended_by_error(sent, m))
        task_request_end_with_task(p, sent, m->rpc.result, NULL, SPAN_EMPTY);
}

static void get_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    task_request_go_on(p, sent, "tasks/get", SPAN_EMPTY, got_for_legacy);
}

static void run_for_legacy(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    (void)r;
    task_request_run(p, sent);
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

    if (task_request_ended_by_error(sent, m))
        return;
    if (sent->call->op == OP_TASK_RESULT) {
        task_request_end_with(p, sent, m->rpc.result);
        return;
    }
    const struct task *t = text.id.n ? task_request_note(p, &text) : NULL;
    if (t)
        put_with_id(&body, m->rpc.result, text.id, t->id);
    task_request_end_result(sent, t ? buf_view(&body) : m->rpc.result);
}

static void pass(struct mcp_provider *p, struct sent *sent, const struct request *r)
{
    sent->task_request->next = passed;
    sent->keep = true;
    upstream_sent_renew(p, sent);
    upstream_send_call(p, sent, r, SPAN_EMPTY);
}

/* A request about a task whose result we keep: the task has ended, and no server knows it. */
static void answer_kept(struct sent *sent, const struct task *t)
{
    BUF_SCOPED body = {0}, more = {0};
    bool modern = task_request_for_modern(sent->call);

    if (sent->call->op == OP_TASK_RESULT) {
        task_text_relate(&body, span_str(t->result), span_str(t->id));
    } else if (sent->call->op == OP_TASK_CANCEL && !modern) {
        task_request_end_error(sent, SPAN(ENDED));
        return;
    } else if (sent->call->op == OP_TASK_GET) {
        task_watch_put_result(&more, span_str(t->result));
        buf_char(&body, '{');
        task_text_put_again(&body, span_str(t->state),
                            &(struct task_style){.modern = modern,
                                                 .id = span_str(t->id),
                                                 .more = modern ? buf_view(&more) : SPAN_EMPTY});
        buf_char(&body, '}');
    } else {
        buf_str(&body, "{}");
    }
    task_request_end_result(sent, buf_view(&body));
}

void upstream_tasks_open(struct mcp_provider *p, struct call *call, const struct request *request)
{
    typedef void open_fn(struct mcp_provider * p, struct sent * sent, const struct request *r);
    /* For agents whose era is not the server's. */
    static const struct {
        open_fn *for_modern, *for_legacy;
    } rows[] = {
        [OP_TASK_GET - OP_TASK_GET] = {get_for_modern, get_for_legacy},
        [OP_TASK_RESULT - OP_TASK_GET] = {pass, run_for_legacy},
        [OP_TASK_CANCEL - OP_TASK_GET] = {cancel_for_modern, cancel_for_legacy},
        [OP_TASK_UPDATE - OP_TASK_GET] = {update_here, pass},
    };
    const struct task *t = task_request_task(p, request->name);
    struct sent *sent = upstream_sent_new(p, task_request_answered, task_request_failed);

    idmap_take(&p->sent, sent->id); /* no request is sent yet */
    sent->id = 0;
    sent->call = call;
    call->provider_data = sent;
    task_request_new(p, sent, request->name);
    if (!t)
        task_request_end_error(sent, SPAN(TASK_NOT_FOUND));
    else if (t->result)
        answer_kept(sent, t);
    else if (p->modern == task_request_for_modern(call))
        pass(p, sent, request);
    else if (task_request_for_modern(call))
        rows[request->op - OP_TASK_GET].for_modern(p, sent, request);
    else
        rows[request->op - OP_TASK_GET].for_legacy(p, sent, request);
    if (!sent->keep)
        upstream_sent_free(p, sent);
}

/* --- calls that become tasks --- */

struct span upstream_tasks_begin(struct mcp_provider *p, struct sent *sent, struct request *r)
{
    bool modern = (r->answers & ANSWERS_ANY_RETRY) != 0;
    bool wanted = modern ? (r->answers & ANSWERS_TASKS) != 0 : r->as_task;
    const struct item *tool = p->modern ? NULL : upstream_tool(p, r->name);
    unsigned flags = tool ? tool->flags : 0;
    bool add = (flags & ITEM_TASK_MUST) || (wanted && (flags & ITEM_TASK_MAY));

    if (!p->modern && !add && !r->as_task)
        return SPAN_EMPTY;
    struct task_request *tr = task_request_new(p, sent, SPAN_EMPTY);
    tr->as_task = wanted;
    tr->declared = p->modern && wanted;
    if (tr->declared)
        r->answers |= ANSWERS_TASKS;
    else if (p->modern)
        kept_request_set(&tr->kept, r);
    return add && !r->as_task ? SPAN("\"task\":{}") : SPAN_EMPTY;
}

static struct task *add_task(struct mcp_provider *p, const struct call *c,
                             const struct task_text *text, struct span own)
{
    BUF_SCOPED state = {0};

    task_text_put(&state, text, &(struct task_style){.modern = true, .id = own, .brief = true});
    return tasks_add(task_request_tasks(p),
                     &(struct task_facts){.server = span_str(p->alias),
                                          .tool = span_str(c->name),
                                          .own = own,
                                          .state = buf_view(&state),
                                          .owner = principal_name(c->principal),
                                          .party = c->party,
                                          .instance = p->instance,
                                          .life = text->ttl,
                                          .plain = c->view && !view_pattern(c->view) &&
                                                   !view_member(c->view, 1)});
}

/* The caller gets the task, as the caller's era writes it. */
static void give_task(struct mcp_provider *p, struct sent *sent, struct span result,
                      const struct task_text *text, const struct task *t)
{
    bool modern = task_request_for_modern(sent->call);
    BUF_SCOPED body = {0};

    if (p->modern == modern) {
        put_with_id(&body, result, text->id, t->id);
    } else {
        buf_str(&body, modern ? "{\"resultType\":\"task\"," : "{\"task\":{");
        task_text_put(&body, text,
                      &(struct task_style){.modern = modern, .id = span_str(t->id), .brief = true});
        buf_str(&body, modern ? "}" : "}}");
    }
    task_request_end_result(sent, buf_view(&body));
}

static void created(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m,
                    struct span raw)
{
    struct task_request *tr = sent->task_request;
    struct task_text text = task_text_read(raw);
    BUF_SCOPED scratch = {0};

    if (!text.id.n) {
        task_request_end_failed(sent, FAIL_PROTOCOL,
                                SPAN("the server answered with a task that is none"));
        return;
    }
    struct span own = json_text(text.id, &scratch);
    if (!tr->as_task) {
        tr->own = mem_span(own);
        sent->answered = task_request_answered;
        sent->failed = task_request_failed;
        if (!p->modern && sent->call->wants_progress)
            task_request_keep_token(p, tr, m->rpc.id);
        task_request_run(p, sent);
        return;
    }
    const struct task *t = add_task(p, sent->call, &text, own);
    if (!t) {
        task_request_end_failed(sent, FAIL_PROTOCOL,
                                SPAN("the server gave its task an id that is too long"));
        return;
    }
    if (p->modern)
        upstream_follow_task(p, own);
    else if (task_request_for_modern(sent->call))
        task_watch_start(p, own, sent->call->answers);
    give_task(p, sent, m->rpc.result, &text, t);
}

/* The caller wanted a task, but the server, which decides that, had the result at once: keep it. */
static bool keep_result(struct mcp_provider *p, struct sent *sent, struct span result)
{
    BUF_SCOPED kept = {0}, state = {0}, body = {0};
    char now[32];

    const struct call *c = sent->call;
    legacy_put_result(&kept, OP_CALL_TOOL, result,
                      upstream_gives_any(p, span_of(c->name, c->name_n)));
    task_text_time(now, tasks_now(task_request_tasks(p)));
    bool failed = json_get(result, "isError").type == JSON_TRUE;
    buf_printf(&state,
               "\"taskId\":\"\",\"status\":\"%s\",\"createdAt\":\"%s\",\"lastUpdatedAt\":\"%s\","
               "\"ttlMs\":%llu",
               failed ? "failed" : "completed", now, now, (unsigned long long)TASK_LIFE_MAX);
    const struct task *t = tasks_add(
        task_request_tasks(p), &(struct task_facts){.server = span_str(p->alias),
                                                    .tool = span_str(sent->call->name),
                                                    .state = buf_view(&state),
                                                    .result = buf_view(&kept),
                                                    .owner = principal_name(sent->call->principal),
                                                    .party = sent->call->party});
    if (!t)
        return false; /* too much to keep: the caller gets the result itself */
    buf_str(&body, "{\"task\":{");
    task_text_put_again(&body, span_str(t->state), &(struct task_style){.id = span_str(t->id)});
    buf_str(&body, "}}");
    task_request_end_result(sent, buf_view(&body));
    return true;
}

/* The server runs this tool only as a task: send the call again, and run the task ourselves. */
static bool declare(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct task_request *tr = sent->task_request;
    struct rpc_error error = rpc_error_of(m->rpc.error);

    if (tr->declared || error.code != MCP_ERROR_CAPABILITY ||
        !(mcp_answers_of(json_get(error.data, "requiredCapabilities").value) & ANSWERS_TASKS))
        return false;
    tr->declared = true;
    tr->kept.request.answers |= ANSWERS_TASKS;
    if (sent->rounds)
        upstream_modern_declare(sent->rounds, ANSWERS_TASKS);
    sent->keep = true;
    upstream_sent_renew(p, sent);
    upstream_send_call(p, sent, &tr->kept.request, SPAN_EMPTY);
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
    return sent->task_request->as_task && !task_request_for_modern(sent->call) &&
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
    const struct task *t = task_request_note(p, &text);
    if (!t)
        return; /* forgotten, or run by us for a caller that does not know tasks */
    task_text_put(&members, &text,
                  &(struct task_style){.modern = true,
                                       .id = span_str(t->id),
                                       .status = t->cancelled ? "cancelled" : NULL});
    task_watch_tell(p, t, buf_view(&members), p->modern);
}

struct call *upstream_tasks_owner(const struct mcp_provider *p, struct span related)
{
    BUF_SCOPED scratch = {0};
    struct span own = related.n ? json_text(related, &scratch) : SPAN_EMPTY;

    LIST_EACH (&p->all_sent, it) {
        const struct sent *sent = LIST_ENTRY(it, struct sent, node);
        if (own.n && sent->call && sent->task_request && sent->task_request->own &&
            span_is(own, sent->task_request->own))
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
    const struct task *t = task_request_task(p, json_text(related, &own));
    task_text_relate(scratch, params, t ? span_str(t->id) : SPAN_EMPTY);
    return buf_view(scratch);
}

struct span upstream_tasks_relate_back(const struct sent *sent, struct span body,
                                       struct buf *scratch)
{
    if (!sent->task_request || !sent->task_request->own || json_type_of(body) != JSON_OBJECT)
        return body;
    task_text_relate(scratch, body, span_str(sent->task_request->own));
    return buf_view(scratch);
}
