/* subscriptions/listen of an agent of the stateless era: the lists and resources in the request,
 * the acknowledgement, notifications, the end. Called by modern.c. */
#include "base/map.h"
#include "base/mem.h"
#include "core/principal.h"
#include "core/subscriptions.h"
#include "mcp/agent/modern_request.h"
#include "mcp/agent/modern_result.h"
#include "mcp/agent/welcome.h"
#include "wire/json_out.h"

/* How long the acknowledgement waits for servers that have not confirmed a subscription; the
 * largest request, which is kept as long as the subscription lasts; how many may be open on one
 * pipe, and their bytes. Over HTTP each has a connection. */
enum { CONFIRM_MS = 3000, LISTEN_MAX = 256 * 1024, OPEN_MAX = 100, OPEN_BYTES_MAX = 1024 * 1024 };

/* clang-format off */
static const struct {
    const char *member;
    unsigned kinds;
    const char *notification;
} topics[] = {
    {"toolsListChanged", 1u << ITEM_TOOL, "notifications/tools/list_changed"},
    {"promptsListChanged", 1u << ITEM_PROMPT, "notifications/prompts/list_changed"},
    {"resourcesListChanged", 1u << ITEM_RESOURCE | 1u << ITEM_TEMPLATE,
     "notifications/resources/list_changed"},
};
/* clang-format on */

/* Every message of a subscription names the subscription. */
static void put_subscription(struct buf *out, const struct modern_request *r)
{
    buf_printf(out, "\"_meta\":{\"" MCP_META_PREFIX "subscriptionId\":%s}", r->id);
}

static void send(struct modern_request *r, const char *method, struct span members)
{
    struct modern_agent *a = r->agent;
    struct buf *out = a->out->begin(a->owner, r->reply, MCP_OUT_RELATED);

    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{", method);
    put_subscription(out, r);
    if (members.n) {
        buf_char(out, ',');
        buf_span(out, members);
    }
    buf_str(out, "}}");
    a->out->end(a->owner, r->reply, MCP_OUT_RELATED);
}

/* Resources that no server offers are ignored, and are not in the acknowledgement. */
static void subscribe(struct modern_request *r, const struct json_slot *wanted)
{
    struct json_iter it = json_iter(wanted->value);

    while (wanted->type == JSON_ARRAY && json_next(&it)) {
        BUF_SCOPED uri = {0};
        if (it.type == JSON_STRING) {
            json_unescape(&uri, it.value);
            (void)subscriptions_add(r->call, buf_view(&uri));
        }
    }
}

/* Follow the agent's own tasks; all others are ignored, and are not in the acknowledgement. */
static void follow(struct modern_request *r, const struct json_slot *wanted)
{
    struct modern_agent *a = r->agent;
    struct json_iter it = json_iter(wanted->value);

    while (wanted->type == JSON_ARRAY && json_next(&it)) {
        BUF_SCOPED id = {0};
        if (it.type != JSON_STRING)
            continue;
        json_unescape(&id, it.value);
        if (tasks_find(router_tasks(a->host.router), buf_view(&id),
                       principal_name(a->peer.principal), 0))
            map_put(&r->tasks, buf_view(&id), r);
    }
}

static void tell_changed(struct modern_request *r, unsigned kinds)
{
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        if (kinds & topics[i].kinds & r->listens)
            send(r, topics[i].notification, SPAN_EMPTY);
}

/* The acknowledgement comes first and names the lists, resources and tasks that are subscribed
 * to. */
static void acknowledge(struct modern_request *r)
{
    BUF_SCOPED members = {0};

    timer_clear(router_timers(r->agent->host.router), &r->flush);
    json_out_open(&members, "notifications", '{');
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        if (r->listens & topics[i].kinds)
            json_out_bool(&members, topics[i].member, true);
    mcp_put_names(&members, "resourceSubscriptions", &r->call->uris);
    mcp_put_names(&members, "taskIds", &r->tasks);
    buf_char(&members, '}');
    send(r, "notifications/subscriptions/acknowledged", buf_view(&members));
    tell_changed(r, r->changed);
}

static void on_unconfirmed(struct timer *t)
{
    acknowledge(CONTAINER_OF(t, struct modern_request, flush));
}

/* After the acknowledgement the agent may send a call that changes a resource: by then the servers
 * must know of the subscription. */
static void acknowledge_when_confirmed(struct modern_request *r)
{
    if (subscriptions_pending(r->call)) {
        r->flush.fire = on_unconfirmed;
        timer_set(router_timers(r->agent->host.router), &r->flush, CONFIRM_MS);
    } else {
        acknowledge(r);
    }
}

static void refuse(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   const char *why)
{
    rpc_put_error(a->out->begin(a->owner, reply, MCP_OUT_FINAL), m->rpc.id, RPC_INVALID_PARAMS,
                  span_str(why), SPAN_EMPTY);
    a->out->end(a->owner, reply, MCP_OUT_FINAL);
}

/* What is wrong with the request, or NULL. */
static const char *fault_of(const struct modern_agent *a, const struct mcp_message *m,
                            const void *reply)
{
    size_t n = 0, bytes = m->rpc.text.n;

    if (m->slots[SLOT_NOTIFICATIONS].type != JSON_OBJECT)
        return "subscriptions/listen needs params.notifications, an object";
    if (m->rpc.text.n > LISTEN_MAX)
        return "this subscriptions/listen is too long: 256 KiB is the limit";
    LIST_EACH (&a->requests, it) {
        const struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        n += r->text != NULL;
        bytes += r->text ? strlen(r->text) : 0;
    }
    return !reply && (n >= OPEN_MAX || bytes > OPEN_BYTES_MAX)
               ? "too many subscriptions/listen are open on this connection: 100 are the limit, "
                 "and "
                 "1 MiB for all of them, so end some of them first"
               : NULL;
}

void modern_listen(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, int arg)
{
    const struct json_slot *wanted = &m->slots[SLOT_NOTIFICATIONS];

    (void)principal, (void)arg;
    const char *why = fault_of(a, m, reply);
    if (why) {
        refuse(a, m, reply, why);
        return;
    }
    struct json_slot tasks = json_get(wanted->value, "taskIds");
    if (tasks.type != JSON_NONE && welcome_has_tasks(a->host.view) &&
        !(mcp_answers_of(m->slots[SLOT_META_CAPABILITIES].value) & ANSWERS_TASKS)) {
        if (a->out->set_status)
            a->out->set_status(a->owner, reply, modern_needs_tasks.status);
        modern_put_fault(a->out->begin(a->owner, reply, MCP_OUT_FINAL), m->rpc.id,
                         &modern_needs_tasks);
        a->out->end(a->owner, reply, MCP_OUT_FINAL);
        return;
    }
    struct modern_request *r = modern_request_new(a, m, reply);
    if (!modern_request_hold(r, m->rpc.text.n)) {
        modern_request_free(r);
        refuse(a, m, reply, "there is no room for another subscription (limits.memory)");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        if (json_get(wanted->value, topics[i].member).type == JSON_TRUE)
            r->listens |= topics[i].kinds;
    struct json_slot resources = json_get(wanted->value, "resourceSubscriptions");
    r->text = reply ? NULL : mem_span(m->rpc.text);
    r->call = router_attach(a->host.router, &a->peer, a->host.view, 0, r);
    subscribe(r, &resources);
    follow(r, &tasks);
    acknowledge_when_confirmed(r);
}

void modern_listen_event(struct modern_request *r, const struct event *event)
{
    if (timer_is_set(&r->flush)) { /* not acknowledged yet: the acknowledgement comes first */
        if (event->kind == EVENT_CHANGED) {
            r->changed |= event->changed;
            return;
        }
        acknowledge(r);
    }
    if (event->kind == EVENT_CHANGED) {
        tell_changed(r, event->changed);
    } else if (event->kind == EVENT_UPDATED) {
        BUF_SCOPED members = {0};
        json_out_text(&members, "uri", event->name);
        send(r, "notifications/resources/updated", buf_view(&members));
    } else if (event->kind == EVENT_TASK && event->whole && map_get(&r->tasks, event->name)) {
        /* The members of the object, without its braces. */
        send(r, "notifications/tasks", span_cut(event->params, 1, event->params.n - 2));
    }
}

/* The subscription has ended: the agent is told, unless the agent ended it. */
void modern_listen_ended(struct modern_request *r)
{
    struct modern_agent *a = r->agent;

    if (r->waits) {
        struct buf *out = a->out->begin(a->owner, r->reply, MCP_OUT_FINAL);
        buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",",
                   r->id);
        put_subscription(out, r);
        buf_str(out, "}}");
        a->out->end(a->owner, r->reply, MCP_OUT_FINAL);
    }
    map_fini(&r->tasks);
    modern_request_free(r);
}
