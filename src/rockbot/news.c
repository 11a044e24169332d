/* Publishes events of the router on the bus, asks there for approvals, and passes the answers to
 * the router. Called by hub/bus_role.c, and by the core for each event. */
#include "rockbot/news.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/list.h"
#include "base/mem.h"
#include "core/approval.h"
#include "rockbot/content.h"
#include "rockbot/rockbot.h"
#include "wire/json_merge.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* How long the bus may keep an event or a request for approval: after that nobody needs it. */
enum { EVENT_WORTH_MS = 30 * 1000, ASK_WORTH_MS = 60 * 1000, MAX_ASKS = 1000 };

struct bus_news {
    struct loop *loop;
    struct bus *bus;
    struct router *router;
    const struct bus_news_options *options;
    struct watcher watcher;
    struct bus_sub *answers;
    char token[ID_TOKEN_SIZE]; /* tells our requests from those of others on the bus */
    struct deferred later;
    bool scheduled;
    uint64_t asks[MAX_ASKS]; /* handles of calls to ask about, after the watcher has returned */
    size_t n_asks;
};

static void publish(struct bus_news *n, const char *topic, struct span type, const char *trust,
                    struct span body, uint64_t worth)
{
    struct message m = {.type = type, .source = span_str(n->options->source), .body = body};

    (void)message_add_header(&m, ROCKBOT_TRUST, span_str(trust));
    bus_publish(n->bus, span_str(topic), &m, worth, NULL, NULL);
}

/* --- events --- */

/* mcp.event.KIND.ALIAS; characters that a segment of a topic cannot have become dashes. */
static void put_topic(struct buf *out, const struct happening *h)
{
    struct span alias = span_cut(h->server, 0, MESSAGE_MAX_WORD / 2);

    buf_printf(out, "%s%s.", ROCKBOT_TOPIC_EVENT, happening_name(h->kind) + strlen("mcp."));
    for (size_t i = 0; i < alias.n; i++)
        buf_char(out, ascii_is_word(alias.p[i], "_") ? alias.p[i] : '-');
    if (!alias.n)
        buf_char(out, '-');
}

static void put_text(struct buf *out, const char *key, struct span text)
{
    BUF_SCOPED line = {0};

    content_put_line(&line, text);
    json_out_text_or_null(out, key, buf_view(&line));
}

static void put_id(struct buf *out, const char *key, const struct bus_news *n, uint64_t number)
{
    json_out(out, key);
    buf_printf(out, "\"%s-%" PRIu64 "\"", n->token, number);
}

static void tell(struct bus_news *n, const struct happening *h)
{
    BUF_SCOPED topic = {0}, body = {0};

    put_topic(&topic, h);
    buf_char(&body, '{');
    json_out_str(&body, "event", happening_name(h->kind));
    put_text(&body, "server", h->server);
    put_text(&body, "tool", h->tool);
    json_out_number(&body, "duration_ms", h->duration_ms);
    json_out_bool(&body, "is_error", h->is_error);
    put_text(&body, "error", h->error);
    put_id(&body, "correlation_id", n, h->call);
    buf_char(&body, '}');
    publish(n, buf_cstr(&topic), span_str(happening_name(h->kind)), ROCKBOT_TRUST_SYSTEM,
            buf_view(&body), EVENT_WORTH_MS);
}

/* --- approvals --- */

static void ask(struct bus_news *n, const struct call *c)
{
    struct span name = span_of(c->name, c->name_n);
    BUF_SCOPED body = {0};

    buf_char(&body, '{');
    put_id(&body, "request_id", n, c->handle);
    json_out_text(&body, "tool_name", name);
    json_out(&body, "arguments"); /* as the server will get them */
    json_merge_put(&body, json_get(c->kept.request.params, "arguments").value,
                   provider_pinned(c->provider, c->op, name));
    json_out_str(&body, "server_alias", c->provider->alias);
    json_out_raw(&body, "channel_id", SPAN("null"));
    buf_char(&body, '}');
    publish(n, ROCKBOT_TOPIC_ASK, SPAN(ROCKBOT_TOPIC_ASK), ROCKBOT_TRUST_REQUEST, buf_view(&body),
            ASK_WORTH_MS);
}

static void ask_all(struct deferred *d)
{
    struct bus_news *n = CONTAINER_OF(d, struct bus_news, later);

    n->scheduled = false;
    for (size_t i = 0; i < n->n_asks; i++) {
        const struct call *c = router_find(n->router, n->asks[i]);
        if (c && c->state == CALL_HELD && !approval_is_with_consumer(c))
            ask(n, c);
    }
    n->n_asks = 0;
}

/* The handle after our own token; 0 for a request of another bridge. */
static uint64_t handle_of(const struct bus_news *n, struct span id)
{
    size_t own = strlen(n->token);
    uint64_t handle;

    if (id.n <= own + 1 || !span_starts(id, span_str(n->token)) || id.p[own] != '-')
        return 0;
    return ascii_number(span_from(id, own + 1), &handle) ? handle : 0;
}

static void decide(struct bus_news *n, struct span body, struct span source)
{
    struct json_slot id = json_get(body, "request_id"), approved = json_get(body, "approved");
    struct json_slot reason = json_get(body, "reason");
    BUF_SCOPED id_text = {0}, reason_text = {0}, who = {0}, told = {0};
    uint64_t handle = handle_of(n, rockbot_text(&id, &id_text));

    buf_str(&told, "'");
    content_put_line(&told, span_cut(source, 0, MESSAGE_MAX_WORD));
    buf_str(&told, "' on the bus");
    buf_printf(&who, "agent %s", buf_cstr(&told));
    struct span why = rockbot_text(&reason, &reason_text);
    if (why.n) {
        buf_str(&told, ": ");
        content_put_line(&told, why);
    }
    /* Anything but true is a no. With bus.approvals the answer counts as an operator's. */
    if (handle && approved.type != JSON_NONE)
        (void)approval_decide(n->router, handle,
                              &(struct verdict){.allowed = approved.type == JSON_TRUE,
                                                .by = buf_cstr(&who),
                                                .told = buf_cstr(&told)});
}

static void on_answer(void *owner, const struct bus_delivery *d)
{
    enum json_type type = JSON_NONE;
    struct message_copy copy;

    message_copy(&copy, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
    if (json_skim(copy.m.body, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
        decide(owner, copy.m.body, copy.m.source);
    message_copy_fini(&copy);
}

/* --- life --- */

static void on_happened(struct watcher *self, const struct happening *h)
{
    struct bus_news *n = CONTAINER_OF(self, struct bus_news, watcher);

    if (n->options->events)
        tell(n, h);
    if (!n->answers || h->kind != HAPPENED_APPROVAL_WANTED || n->n_asks == MAX_ASKS)
        return;
    n->asks[n->n_asks++] = h->call;
    if (!n->scheduled)
        loop_defer(n->loop, &n->later, ask_all);
    n->scheduled = true;
}

struct bus_news *bus_news_new(struct loop *loop, struct bus *bus, struct router *router,
                              const struct bus_news_options *options)
{
    struct bus_news *n = MEM_NEW(struct bus_news);
    char group[64];

    n->loop = loop;
    n->bus = bus;
    n->router = router;
    n->options = options;
    id_token(n->token);
    n->watcher.happened = on_happened;
    (void)events_watch(router_events(router), &n->watcher);
    /* Each bridge must get every answer, because each may have asked. */
    snprintf(group, sizeof group, "rialto-approvals.%s", n->token);
    if (options->approvals)
        n->answers =
            bus_subscribe(bus,
                          &(struct bus_subscription){
                              .topic = ROCKBOT_TOPIC_APPROVAL, .group = group, .ephemeral = true},
                          on_answer, n);
    return n;
}

void bus_news_free(struct bus_news *n)
{
    events_unwatch(router_events(n->router), &n->watcher);
    loop_undefer(&n->later);
    if (n->answers)
        bus_unsubscribe(n->answers);
    mem_free(n);
}
