/* One request of the proxy to a bridge: sending, the time limit, and matching the reply by
 * correlation id. Called by remote.c and remote_calls.c; proxy.c calls remote_request_lose_all. */
#include "base/log.h"
#include "base/mem.h"
#include "rockbot/proxy_parts.h"

#include <inttypes.h>
#include <stdio.h>

static struct timers *timers_of(const struct bus_proxy *x)
{
    return loop_timers(x->loop);
}

static bool is_over(const struct remote_request *q)
{
    return list_empty(&q->node);
}

/* Takes the request out of every list. Its memory stays until the bus has called on_sent. */
static void take_out(struct remote_request *q)
{
    struct bus_proxy *x = q->remote->proxy;

    timer_clear(timers_of(x), &q->timer);
    map_del(&x->requests, span_str(q->id));
    list_remove(&q->node);
}

static void let_go(struct remote_request *q)
{
    if (!q->sending)
        mem_free(q);
}

void remote_request_drop(struct remote_request *q)
{
    take_out(q);
    let_go(q);
}

static void fail(struct remote_request *q, enum failure why, bool retryable, const char *text)
{
    take_out(q);
    q->kind->failed(q, why, retryable, text);
    let_go(q);
}

/* Fails calls that were sent to a host of the bus that has ended. Requests that are not sent yet
 * are in our outbox, and go to the next host. */
void remote_request_lose_all(struct remote *r)
{
    LIST_EACH_SAFE (&r->requests, it) {
        struct remote_request *q = LIST_ENTRY(it, struct remote_request, node);
        if (q->call && !q->sending)
            fail(q, FAIL_CRASHED, false,
                 "the host of the bus ended, and the call or its answer with it. It may have done "
                 "its work all the same: look before calling again");
    }
}

static void on_late(struct timer *t)
{
    fail(CONTAINER_OF(t, struct remote_request, timer), FAIL_TIMEOUT, true,
         "no bridge on the bus answers");
}

/* Whether the request was sent. The answer may have come before this is called. */
static void on_sent(void *owner, enum bus_sent how)
{
    struct remote_request *q = owner;
    char text[160];

    q->sending = false;
    if (is_over(q)) {
        mem_free(q);
        return;
    }
    struct bus_proxy *x = q->remote->proxy;
    const char *stall = bus_stall(x->bus), *why = stall ? stall : x->away;
    switch (how) {
    case BUS_SENT:
        return;
    case BUS_TOO_LARGE:
        snprintf(text, sizeof text,
                 "the request is larger than the bus takes (%zu bytes): send less at once",
                 bus_max_body(x->bus));
        fail(q, FAIL_REFUSED, false, text);
        return;
    case BUS_FULL:
        fail(q, FAIL_BUSY, true, "the bus takes no more messages at the moment");
        return;
    case BUS_EXPIRED:
        snprintf(text, sizeof text, "timed out: the bus did not confirm the request%s%.100s",
                 why[0] ? ": " : "", why);
        fail(q, FAIL_TIMEOUT, false, text);
        return;
    case BUS_CLOSED:
        fail(q, FAIL_SHUTDOWN, false, "the bus was closed");
        return;
    }
}

static void take_reply(struct bus_proxy *x, const struct message *m)
{
    struct remote_request *q = map_get(&x->requests, m->correlation);
    enum rockbot_record type = rockbot_record(m->type);
    char text[320];

    if (!q) {
        log_info("bus", "dropped a reply that nobody waits for (any more): " SPAN_FMT " " SPAN_FMT,
                 SPAN_ARG(span_cut(m->type, 0, 80)), SPAN_ARG(span_cut(m->correlation, 0, 40)));
        return;
    }
    /* A reply without this header must not be taken for the output of a tool. */
    if (!span_is(message_header(m, ROCKBOT_TRUST), ROCKBOT_TRUST_OUTPUT)) {
        log_warn(q->remote->alias,
                 "refused a reply without " ROCKBOT_TRUST ": " ROCKBOT_TRUST_OUTPUT);
        fail(q, FAIL_PROTOCOL, false,
             "the bridge's reply does not say that it is a tool's output: refused");
        return;
    }
    if (type != q->kind->response && !(q->kind->is_invoke && type == ROCKBOT_ERROR)) {
        snprintf(text, sizeof text,
                 "the bridge answered with '" SPAN_FMT "', which is not an answer",
                 SPAN_ARG(span_cut(m->type, 0, 80)));
        fail(q, FAIL_PROTOCOL, false, text);
        return;
    }
    take_out(q);
    q->kind->answered(q, type, m->body);
    let_go(q);
}

static void on_reply(void *owner, const struct bus_delivery *d)
{
    struct bus_proxy *x = owner;

    take_reply(x, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

/* Called with the first request, as RockBot's agents do. */
static struct bus_sub *listen_for_replies(struct bus_proxy *x, const char *topic, const char *group)
{
    bool plain = x->options.plain_names;
    char name[160];

    snprintf(name, sizeof name, "%s.%s%s%s", group, x->options.agent, plain ? "" : ".",
             plain ? "" : x->instance);
    return bus_subscribe(
        x->bus,
        &(struct bus_subscription){
            .topic = topic, .group = name, .prefetch = REPLIES_PREFETCH, .ephemeral = !plain},
        on_reply, x);
}

static struct span reply_topic(struct bus_proxy *x, bool is_invoke)
{
    if (is_invoke && !x->result)
        x->result = listen_for_replies(x, x->result_topic, "mcp-proxy");
    if (!is_invoke && !x->managed)
        x->managed = listen_for_replies(x, x->managed_topic, "mcp-management");
    return span_str(is_invoke ? x->result_topic : x->managed_topic);
}

struct remote_request *remote_request_send(struct remote *r, const struct remote_request_kind *kind,
                                           struct call *call, struct span body, struct message *m,
                                           uint64_t wait_ms)
{
    struct bus_proxy *x = r->proxy;
    struct remote_request *q = MEM_NEW(struct remote_request);

    q->kind = kind;
    q->remote = r;
    q->call = call;
    q->timer.fire = on_late;
    q->sending = true;
    id_token(q->id);
    map_put(&x->requests, span_str(q->id), q);
    list_append(&r->requests, &q->node);
    m->type = span_str(rockbot_name(kind->request));
    m->correlation = span_str(q->id);
    m->source = span_str(x->options.agent);
    m->reply_to = reply_topic(x, kind->is_invoke);
    m->body = body;
    /* An invocation has the deadline of its call. */
    if (!kind->is_invoke)
        timer_set(timers_of(x), &q->timer, wait_ms);
    bus_publish(x->bus, span_str(kind->is_invoke ? ROCKBOT_TOPIC_INVOKE : ROCKBOT_TOPIC_MANAGE), m,
                wait_ms, on_sent, q);
    return q;
}
