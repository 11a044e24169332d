/* The watch of a task: questions of a server of the initialize era, collected for an agent of the
 * stateless era, and events for agents that listen. Called by upstream_tasks.c and task_request.c,
 * and by provider.c and notices.c for questions of the server. */
#include "mcp/server/task_watch.h"

#include "base/mem.h"

/* A task may have this many questions open; more are refused. */
enum { MAX_QUESTIONS = 64 };

/* A question that waits for tasks/update. */
struct task_question {
    struct list node;
    char *id; /* raw, of the server's request */
    char *method, *params;
};

static void question_free(struct task_request *watch, struct task_question *q)
{
    watch->n_questions--;
    list_remove(&q->node);
    mem_free(q->id);
    mem_free(q->method);
    mem_free(q->params);
    mem_free(q);
}

void task_watch_forget(struct task_request *watch)
{
    LIST_EACH_SAFE (&watch->questions, it)
        question_free(watch, LIST_ENTRY(it, struct task_question, node));
}

void task_watch_put_questions(struct buf *out, const struct task_request *watch)
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

void task_watch_tell(struct mcp_provider *p, const struct task *t, struct span members, bool whole)
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

/* Tell agents that listen to the task its last known state, with another status and `more`. */
static void tell_watched(struct mcp_provider *p, const struct task_request *watch,
                         const char *status, struct span more)
{
    struct task *t = task_request_task(p, span_str(watch->own));
    bool watch_asks = strcmp(status, "input_required") == 0;
    BUF_SCOPED members = {0}, brief = {0};

    if (!t)
        return;
    struct task_style style = {.modern = true, .id = span_str(t->id), .status = status};
    task_text_put_again(&brief, span_str(t->state), &style);
    task_note(task_request_tasks(p), t, buf_view(&brief), !watch_asks);
    style.more = more;
    task_text_put_again(&members, span_str(t->state), &style);
    task_watch_tell(p, t, buf_view(&members), true);
}

/* A result of the initialize era inside a task of the stateless era. */
void task_watch_put_result(struct buf *out, struct span result)
{
    BUF_SCOPED plain = {0};

    buf_str(out, "\"result\":");
    task_text_relate(&plain, result, SPAN_EMPTY);
    json_insert(out, buf_view(&plain), SPAN("\"resultType\":\"complete\""));
}

/* The answer to tasks/result as a member of the task. */
void task_watch_put_end(struct buf *out, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_RESULT) {
        task_watch_put_result(out, m->rpc.result);
    } else {
        buf_str(out, "\"error\":");
        buf_span(out, m->rpc.error);
    }
}

static void watch_ended(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    BUF_SCOPED more = {0};

    task_watch_put_end(&more, m);
    tell_watched(p, sent->task_request, ok ? "completed" : "failed", buf_view(&more));
}

/* Ends the watches of tasks that are forgotten: their callers cannot ask for them any more. */
static void end_forgotten(struct mcp_provider *p)
{
    const struct task *t = NULL;
    struct map known = {0};

    while ((t = task_request_next_task(p, t)))
        map_put(&known, span_str(t->own), p);
    LIST_EACH_SAFE (&p->all_sent, it) {
        struct sent *sent = LIST_ENTRY(it, struct sent, node);
        if (sent->call || !sent->task_request || map_get(&known, span_str(sent->task_request->own)))
            continue;
        upstream_withdraw(p, sent->id, "the task is forgotten");
        upstream_sent_free(p, sent);
    }
    map_fini(&known);
}

struct task_request *task_watch_start(struct mcp_provider *p, struct span own, unsigned answers)
{
    struct task_request *watch = map_get(&p->watches, own);

    if (!watch) {
        end_forgotten(p);
        struct sent *sent = upstream_sent_new(p, task_request_answered, task_request_failed);
        watch = task_request_new(p, sent, own);
        map_put(&p->watches, own, watch);
        task_request_go_on(p, sent, "tasks/result", SPAN_EMPTY, watch_ended);
    }
    watch->answers = answers;
    return watch;
}

/* The watch that a message of the server belongs to: by its related task, else by its stream. */
static struct task_request *watch_of(const struct mcp_provider *p, struct span related,
                                     uint64_t about)
{
    const struct sent *sent = idmap_get(&p->sent, about);
    BUF_SCOPED scratch = {0};

    if (related.n)
        return map_get(&p->watches, json_text(related, &scratch));
    return sent && !sent->call ? sent->task_request : NULL;
}

bool task_watch_ask(struct mcp_provider *p, const struct mcp_message *m, uint64_t about,
                    const struct ask *ask)
{
    struct task_request *watch = watch_of(p, task_text_related(m->rpc.params), about);
    BUF_SCOPED params = {0}, more = {0};

    if (!watch)
        return false;
    if ((ask->needs & ~watch->answers) || watch->n_questions == MAX_QUESTIONS) {
        rpc_put_error(p->ops->begin(p->link), m->rpc.id, RPC_METHOD_NOT_FOUND,
                      SPAN("The client of this task cannot be asked that"), SPAN_EMPTY);
        upstream_send(p, (struct mcp_parcel){.kind = RPC_ERROR});
        return true;
    }
    struct task_question *q = MEM_NEW(struct task_question);
    task_text_relate(&params, m->rpc.params.n ? m->rpc.params : SPAN("{}"), SPAN_EMPTY);
    q->id = mem_span(m->rpc.id);
    q->method = mem_span(ask->method);
    q->params = buf_take(&params);
    list_append(&watch->questions, &q->node);
    watch->n_questions++;
    task_watch_put_questions(&more, watch);
    tell_watched(p, watch, "input_required", buf_view(&more));
    return true;
}

bool task_watch_unask(struct mcp_provider *p, struct span id)
{
    void *watch;
    size_t at = 0;

    while (map_next(&p->watches, &at, NULL, &watch)) {
        LIST_EACH (&((struct task_request *)watch)->questions, it) {
            struct task_question *q = LIST_ENTRY(it, struct task_question, node);
            if (!span_is(id, q->id))
                continue;
            question_free(watch, q);
            return true;
        }
    }
    return false;
}

void task_watch_answer(struct mcp_provider *p, struct task_request *watch, struct span key,
                       struct span response)
{
    LIST_EACH_SAFE (&watch->questions, it) {
        struct task_question *q = LIST_ENTRY(it, struct task_question, node);
        if (!json_string_is(key, span_str(q->id)))
            continue;
        BUF_SCOPED body = {0};
        task_text_relate(&body, response, span_str(watch->own));
        rpc_put_result(p->ops->begin(p->link), span_str(q->id), buf_view(&body));
        upstream_send(p, (struct mcp_parcel){.kind = RPC_RESULT});
        question_free(watch, q);
    }
}
