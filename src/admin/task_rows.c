/* /api/tasks: the tasks that servers run, and cancelling one on behalf of its owner. Called by
 * api.c; admin.c ends what is left. */
#include "admin/inside.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* A task that is being cancelled for an operator. */
struct task_cancel {
    struct peer peer;
    struct list node;
    struct http_exchange *x; /* NULL: the operator has left */
};

/* --- the list --- */

static void put_task(struct buf *out, const struct task *t)
{
    BUF_SCOPED object = {0}, scratch = {0}, more = {0};

    buf_printf(&object, "{%s}", t->state ? t->state : "");
    bool fine = json_skim(buf_view(&object), NULL, NULL, NULL, NULL) == 0;
    struct json_slot status = {0}, created = {0};
    if (fine) {
        status = json_get(buf_view(&object), "status");
        created = json_get(buf_view(&object), "createdAt");
    }
    json_out_open(out, NULL, '{');
    json_out_redacted(out, "id", span_str(t->id));
    json_out_str(out, "server", t->server);
    json_out_redacted(out, "tool", span_str(t->tool));
    json_out_redacted(out, "state",
                      t->cancelled                 ? SPAN("cancelled")
                      : status.type == JSON_STRING ? json_text(status.value, &scratch)
                      : t->ended                   ? SPAN("ended")
                                                   : SPAN("working"));
    json_out_redacted(out, "since",
                      created.type == JSON_STRING ? json_text(created.value, &more) : SPAN_EMPTY);
    json_out_text_or_null(out, "token", span_str(t->owner));
    buf_char(out, '}');
}

/* --- cancelling --- */

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct task_cancel *c = CONTAINER_OF(self, struct task_cancel, peer);
    BUF_SCOPED scratch = {0}, shown = {0};

    (void)call;
    if (c->x && outcome->kind == OUTCOME_RESULT) {
        http_respond(c->x, 200, "application/json", SPAN_EMPTY, SPAN("{}\n"));
    } else if (c->x) {
        struct json_slot said = outcome->kind == OUTCOME_ERROR ? json_get(outcome->body, "message")
                                                               : (struct json_slot){0};
        log_redact(&shown,
                   said.type == JSON_STRING ? json_text(said.value, &scratch) : outcome->text);
        http_refuse(c->x, 409, buf_cstr(&shown), "/api/tasks has the state of the task");
    }
    list_remove(&c->node);
    mem_free(c);
}

static const struct peer_verbs verbs = {
    .event = ask_ignore_event, .ask = ask_nobody, .done = on_done};

/* The operator has left. The task is cancelled all the same. */
static void on_gone(void *owner)
{
    struct task_cancel *c = owner;

    c->x = NULL;
}

/* Sends what the owner would send in the initialize era, where the answer distinguishes a task that
 * had ended already from one that is cancelled now. */
static void cancel(struct admin *a, struct http_exchange *x, const struct api_path *path,
                   const struct task *t)
{
    const struct exposure *e = bridge_one(a->bridge, span_str(t->server));
    BUF_SCOPED params = {0};

    if (!e) {
        http_refuse(x, 409, "the task's server is not in use", "start or enable the server");
        return;
    }
    struct task_cancel *c = MEM_NEW(struct task_cancel);
    c->x = x;
    peer_init(&c->peer, &verbs);
    c->peer.principal = path->caller->principal;
    c->peer.client = "{\"name\":\"operator\"}";
    list_append(&a->task_cancels, &c->node);
    http_exchange_on_gone(x, on_gone, c);
    log_info(t->server, "task of %s cancelled, by %s", t->tool,
             path->caller->principal ? path->caller->principal->name : http_exchange_peer(x));
    buf_str(&params, "{\"taskId\":");
    size_t at = params.n;
    json_quote(&params, span_str(t->id));
    struct cut name_at = {at, params.n - at};
    buf_char(&params, '}');
    (void)call_open(a->router, &c->peer, exposure_full(e),
                    &(struct request){.op = OP_TASK_CANCEL,
                                      .name = span_str(t->id),
                                      .params = buf_view(&params),
                                      .name_at = name_at,
                                      .task_owner = t->owner},
                    NULL);
}

void task_rows_end(struct admin *a)
{
    struct task_cancel *c;

    while ((c = LIST_FIRST(&a->task_cancels, struct task_cancel, node))) {
        c->x = NULL; /* the front has closed before this */
        call_cancel_all(&c->peer);
    }
}

/* --- requests --- */

static const struct task *find(const struct admin *a, struct span id)
{
    const struct task *t = NULL;

    do
        t = tasks_next(router_tasks(a->router), t);
    while (t && !span_is(id, t->id));
    return t;
}

void task_rows_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                      const struct api_path *path)
{
    const struct task *t = find(a, path->name);

    if (path->name.n && !span_is(path->verb, "cancel")) {
        api_no_such_path(x);
    } else if (path->name.n && !api_wants_post(x, req)) {
        ;
    } else if (path->name.n && !t) {
        http_refuse(x, 404, "no such task, or not any more", "/api/tasks lists them");
    } else if (path->name.n) {
        cancel(a, x, path, t);
    } else if (admin_wants_get(x, req)) {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '[');
        for (t = NULL; (t = tasks_next(router_tasks(a->router), t));)
            put_task(out, t);
        buf_str(out, "]\n");
        http_respond_end(x);
    }
}
