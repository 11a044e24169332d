/* Notifications of a server, given to the calls that they belong to, or to all consumers that they
 * concern. Called by provider.c. */
#include "mcp/server/task_watch.h"
#include "mcp/server/upstream.h"

static void receive_progress(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct json_slot *token = &m->slots[SLOT_TOKEN];
    struct sent *sent = token->type == JSON_NUMBER ? upstream_sent_of(p, token->value) : NULL;

    (void)about;
    if (!sent || !sent->call)
        return;
    call_event(sent->call, &(struct event){.kind = EVENT_PROGRESS,
                                           .params = m->rpc.params,
                                           .token_at = {(size_t)(token->value.p - m->rpc.params.p),
                                                        token->value.n},
                                           .from = &p->core});
}

/* The params of a notification for consumers: without the id of our subscription, or with the id
 * of its task as callers know it. */
static struct span told_params(const struct mcp_provider *p, const struct mcp_message *m,
                               struct buf *scratch)
{
    if (m->slots[SLOT_META_SUBSCRIPTION].type == JSON_NONE && (p->offers & OFFERS_TASKS))
        return upstream_tasks_relate(p, m->rpc.params, scratch);
    if (m->slots[SLOT_META_SUBSCRIPTION].type == JSON_NONE)
        return m->rpc.params;
    params_put_foreign(scratch, m);
    return buf_view(scratch);
}

/* Give the event to the call on whose stream it came, else to router_tell. */
static void tell(struct mcp_provider *p, uint64_t about, const struct event *event)
{
    const struct sent *sent = idmap_get(&p->sent, about);

    if (sent && sent->call)
        call_event(sent->call, event);
    else
        router_tell(&p->core, event);
}

static void receive_log(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    BUF_SCOPED scratch = {0}, params = {0};
    struct event event = {
        .kind = EVENT_LOG, .params = told_params(p, m, &params), .from = &p->core};

    if (m->slots[SLOT_LEVEL].type == JSON_STRING) {
        event.level = json_text(m->slots[SLOT_LEVEL].value, &scratch);
        tell(p, about, &event);
    }
}

static void receive_updated(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    BUF_SCOPED scratch = {0}, params = {0};

    (void)about;
    if (m->slots[SLOT_URI].type != JSON_STRING)
        return;
    struct span told = told_params(p, m, &params);
    struct json_slot uri = json_get(told, "uri");
    router_broadcast(&p->core,
                     &(struct event){.kind = EVENT_UPDATED,
                                     .params = told,
                                     .token_at = mcp_cut(told, &uri),
                                     .name = json_text(m->slots[SLOT_URI].value, &scratch),
                                     .from = &p->core});
}

static void tools_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    lists_changed(p, 1u << ITEM_TOOL);
}

static void resources_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    lists_changed(p, 1u << ITEM_RESOURCE | 1u << ITEM_TEMPLATE);
}

static void prompts_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    lists_changed(p, 1u << ITEM_PROMPT);
}

/* The call that asked may have ended before this notification comes: then it is broadcast. Only the
 * session that was asked knows the elicitation's id, and passes the notification on. */
static void receive_completed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct sent *sent = idmap_get(&p->sent, about);
    const struct event event = {.kind = EVENT_OTHER,
                                .method = SPAN(MCP_ELICITATION_COMPLETE),
                                .params = m->rpc.params,
                                .from = &p->core};

    if (sent && sent->call)
        call_event(sent->call, &event);
    else
        router_broadcast(&p->core, &event);
}

/* If the server is a bridge, ask for its lists again: they may have changed before the subscription
 * began, and the change may show that the bridge leads back to us (circle.h). */
static void subscribed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct sent *ours = upstream_sent_of(p, m->slots[SLOT_META_SUBSCRIPTION].value);

    (void)about;
    if (ours)
        upstream_listen_acknowledged(p, ours->id);
    if (p->core.bridges.n)
        mcp_provider_relist(p);
}

/* The server takes back a question. On a pipe, this notification also ends our subscription. */
static void receive_cancelled(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct json_slot *id = &m->slots[SLOT_REQUEST_ID];

    (void)about;
    if (id->type == JSON_NONE)
        return;
    const struct sent *ours = p->modern ? upstream_sent_of(p, id->value) : NULL;
    if (!ours && p->watches.n && task_watch_unask(p, id->value))
        return;
    if (!ours)
        ask_take_back_any(&p->core, id->value, NULL);
    else if (ours->id == p->listen_id || ours->id == p->listen_old)
        mcp_provider_failed(p, ours->id, 0, true, "the server ended it");
}

static void task_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)about;
    upstream_tasks_told(p, m);
}

void notices_pass(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct sent *sent = idmap_get(&p->sent, about);
    bool cancels = rpc_method_is(&m->rpc, "notifications/cancelled");
    const struct json_slot *id = &m->slots[cancels ? SLOT_REQUEST_ID : SLOT_META_SUBSCRIPTION];
    BUF_SCOPED method = {0};
    struct event event = {.kind = EVENT_OTHER,
                          .method = rpc_method_text(&m->rpc, &method),
                          .params = m->rpc.params,
                          .from = &p->core};

    if (id->type != JSON_NONE)
        event.token_at = mcp_cut(m->rpc.params, id);
    if (sent && sent->call && sent == upstream_sent_of(p, id->value)) {
        call_event(sent->call, &event);
    } else if (cancels && id->type != JSON_NONE) {
        ask_take_back_any(&p->core, id->value, &event);
    } else {
        event.token_at = (struct cut){0};
        router_broadcast(&p->core, &event);
    }
}

void notices_receive(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    static const struct {
        const char *method;
        void (*handle)(struct mcp_provider *p, const struct mcp_message *m, uint64_t about);
    } rows[] = {
        {"notifications/progress", receive_progress},
        {"notifications/message", receive_log},
        {"notifications/resources/updated", receive_updated},
        {"notifications/tools/list_changed", tools_changed},
        {"notifications/resources/list_changed", resources_changed},
        {"notifications/prompts/list_changed", prompts_changed},
        {"notifications/cancelled", receive_cancelled},
        {MCP_ELICITATION_COMPLETE, receive_completed},
        {"notifications/subscriptions/acknowledged", subscribed},
        {"notifications/tasks", task_changed},
        {"notifications/tasks/status", task_changed},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rpc_method_is(&m->rpc, rows[i].method)) {
            rows[i].handle(p, m, about);
            return;
        }
    }
    BUF_SCOPED method = {0}, params = {0};
    tell(p, about,
         &(struct event){.kind = EVENT_OTHER,
                         .method = rpc_method_text(&m->rpc, &method),
                         .params = told_params(p, m, &params),
                         .from = &p->core});
}
