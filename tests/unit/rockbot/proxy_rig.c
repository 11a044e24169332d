#include "proxy_rig.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

static void up_ours(void *owner)
{
    struct proxy_rig *r = owner;

    r->ours_up = true;
    if (r->proxy)
        bus_proxy_up(r->proxy);
}

static void up_theirs(void *owner)
{
    ((struct proxy_rig *)owner)->theirs_up = true;
}

static void down(void *owner, const char *why)
{
    (void)owner, (void)why;
}

static void closed(void *owner)
{
    ((struct proxy_rig *)owner)->closed++;
}

static const struct bus_events ours_on = {up_ours, down, closed};
static const struct bus_events theirs_on = {up_theirs, down, closed};

/* --- the bridge --- */

static void reply(struct proxy_rig *r, const struct message *to, enum rockbot_record type,
                  const struct span *values, const char *trust)
{
    struct message m = {.type = span_str(rockbot_name(type)), .correlation = to->correlation};
    struct buf body = {0};

    rockbot_put(&body, type, values);
    m.body = buf_view(&body);
    (void)message_add_header(&m, ROCKBOT_TRUST, span_str(trust));
    bus_publish(r->theirs, to->reply_to, &m, 0, NULL, NULL);
    buf_fini(&body);
}

void rig_answer_invoke(struct proxy_rig *r, const struct message *m)
{
    reply(r, m, ROCKBOT_RESULT,
          (const struct span[]){[RESULT_CALL] = SPAN("c"),
                                [RESULT_TOOL] = SPAN("t"),
                                [RESULT_CONTENT] = SPAN("done"),
                                [RESULT_IS_ERROR] = SPAN("false")},
          ROCKBOT_TRUST_OUTPUT);
}

static void on_invoke(void *owner, const struct bus_delivery *d)
{
    struct proxy_rig *r = owner;

    r->n_invokes++;
    if (r->has_last)
        message_copy_fini(&r->last);
    message_copy(&r->last, d->message);
    r->has_last = true;
    if (!r->quiet && !r->mute)
        rig_answer_invoke(r, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

void rig_answer_details(struct proxy_rig *r, const struct message *m, const char *tool,
                        const char *error)
{
    struct buf tools = {0};

    buf_printf(&tools, "[{\"name\":\"%s\",\"description\":\"\",\"parametersSchema\":null}]", tool);
    reply(r, m, ROCKBOT_DETAILS,
          (const struct span[ROCKBOT_MAX_MEMBERS]){
              [DETAILS_SERVER] = SPAN("far"),
              [DETAILS_TOOLS] = buf_view(&tools),
              [DETAILS_ERROR] = span_str(error),
              [DETAILS_PROMPTS] = SPAN("[{\"name\":\"p\",\"description\":null,\"arguments\":[]}]")},
          ROCKBOT_TRUST_OUTPUT);
    buf_fini(&tools);
}

static void on_manage(void *owner, const struct bus_delivery *d)
{
    struct proxy_rig *r = owner;

    r->n_details++;
    if (r->holds) {
        message_copy(&r->held, d->message);
        r->has_held = true;
        r->holds = false;
    } else if (!r->mute) {
        rig_answer_details(r, d->message, r->tools, NULL);
    }
    bus_settle(d->sub, d->tag, BUS_ACK);
}

static void on_refresh(void *owner, const struct bus_delivery *d)
{
    ((struct proxy_rig *)owner)->n_refreshes++;
    bus_settle(d->sub, d->tag, BUS_ACK);
}

void rig_announce(struct proxy_rig *r, const char *servers, const char *removed)
{
    struct message m = {.type = span_str(rockbot_name(ROCKBOT_SERVERS_INDEXED))};
    struct buf body = {0};

    rockbot_put(&body, ROCKBOT_SERVERS_INDEXED,
                (const struct span[]){
                    [INDEXED_SERVERS] = span_str(servers), [INDEXED_REMOVED] = span_str(removed)});
    m.body = buf_view(&body);
    bus_publish(r->theirs, SPAN("tool.meta.mcp.Me"), &m, 0, NULL, NULL);
    buf_fini(&body);
}

/* --- the host and the consumer --- */

static struct provider *next_server(void *arg, const struct provider *p)
{
    struct proxy_rig *r = arg;

    return r->has_local && !p ? &r->local : NULL;
}

static void admit(void *arg, struct provider *p)
{
    struct proxy_rig *r = arg;

    r->admitted++;
    view_add(r->view, p, NULL);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct proxy_rig *r = CONTAINER_OF(self, struct proxy_rig, consumer);
    struct span said = outcome->text.n ? outcome->text : outcome->body;

    (void)call;
    r->n_done++;
    r->outcome = *outcome;
    snprintf(r->text, sizeof r->text, SPAN_FMT, SPAN_ARG(span_cut(said, 0, 200)));
}

static const struct peer_verbs consumer_verbs = {.done = on_done};

struct call *rig_call(struct proxy_rig *r, const char *name)
{
    struct buf params = {0};

    buf_printf(&params, "{\"name\":\"%s\",\"arguments\":{\"a\":1}}", name);
    struct call *c = call_open(r->router, &r->consumer, r->view,
                               &(struct request){.op = OP_CALL_TOOL,
                                                 .name = span_str(name),
                                                 .params = buf_view(&params),
                                                 .name_at = {8, strlen(name) + 2}},
                               NULL);
    buf_fini(&params);
    return c;
}

static struct bus_sub *listen(struct proxy_rig *r, const char *topic, const char *group,
                              bus_deliver_fn *deliver)
{
    return bus_subscribe(r->theirs, &(struct bus_subscription){.topic = topic, .group = group},
                         deliver, r);
}

void rig_set_up(struct proxy_rig *r, const struct bus_proxy_options *options)
{
    struct err err;
    static int serial;

    *r = (struct proxy_rig){.loop = loop_new(), .tools = "t"};
    snprintf(r->url, sizeof r->url, "unix:%s/rialto-proxy-%d-%d.sock",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), ++serial);
    r->router = router_new(loop_timers(r->loop), 7);
    r->view = view_new("all", "{server}__{tool}");
    peer_init(&r->consumer, &consumer_verbs);
    r->host = (struct bus_host){.router = r->router, .arg = r, .next = next_server, .admit = admit};
    r->options = (struct bus_options){.url = r->url, .name = "test"};
    r->theirs = bus_open(r->loop, &r->options, &theirs_on, r, &err);
    assert_non_null(r->theirs);
    WAIT(r->loop, r->theirs_up);
    r->invokes = listen(r, ROCKBOT_TOPIC_INVOKE, "mcp-bridge.Me", on_invoke);
    r->manages = listen(r, ROCKBOT_TOPIC_MANAGE, "mcp-bridge.Me.manage", on_manage);
    r->refreshes = listen(r, ROCKBOT_TOPIC_REFRESH, "mcp-bridge.Me.refresh", on_refresh);
    r->ours = bus_open(r->loop, &r->options, &ours_on, r, &err);
    assert_non_null(r->ours);
    WAIT(r->loop, r->ours_up);
    r->proxy = bus_proxy_new(r->loop, r->ours, &r->host, options);
    WAIT(r->loop, r->n_refreshes > 0);
}

static void stopped(void *arg)
{
    ((struct proxy_rig *)arg)->stopped++;
}

void rig_tear_down(struct proxy_rig *r)
{
    bus_proxy_stop(r->proxy, stopped, r);
    assert_null(view_member(r->view, 0));
    assert_null(router_next_provider(r->router, NULL));
    WAIT(r->loop, r->stopped == 1);
    bus_close(r->ours);
    WAIT(r->loop, r->closed == 1);
    bus_close(r->theirs);
    WAIT(r->loop, r->closed == 2);
    call_cancel_all(&r->consumer);
    view_free(r->view);
    router_free(r->router);
    if (r->has_last)
        message_copy_fini(&r->last);
    if (r->has_held)
        message_copy_fini(&r->held);
    loop_free(r->loop);
    /* The lock file that an embedded bus leaves for the next host. */
    strcat(r->url, ".lock");
    unlink(r->url + strlen("unix:"));
}

const struct bus_proxy_options rig_patient = {.agent = "Me", .patience = 60000};
const char rig_far[] = "[{\"serverName\":\"far\",\"toolNames\":[\"t\"]}]";

struct provider *rig_meet(struct proxy_rig *r)
{
    struct provider *p;

    rig_announce(r, rig_far, "[]");
    WAIT(r->loop, (p = router_provider(r->router, SPAN("far"))) && p->state == PROVIDER_READY);
    return p;
}
