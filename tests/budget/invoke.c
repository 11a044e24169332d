/*
 * invoke TIMES: makes so many tool calls over the embedded bus, one after the other: an agent's
 * message, the worker, a server that answers at once, and the reply. All of it runs in this
 * process, so the count includes the agent's part and the broker's.
 */
#include "rockbot/rockbot.h"
#include "rockbot/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const agents[] = {"RockBot"};

struct run {
    struct loop *loop;
    struct bus *bus;
    struct router *router;
    struct provider server;
    struct view *view;
    struct bus_worker *worker;
    long left;
    bool worker_closed, bus_closed;
};

/* --- the server --- */

static void on_open(struct peer *self, struct call *c, const struct request *q)
{
    (void)self, (void)q;
    call_done(c, &(struct outcome){.kind = OUTCOME_RESULT,
                                   .body = SPAN("{\"content\":[{\"type\":\"text\",\"text\":"
                                                "\"done\"}]}")});
}

static void on_cancel(struct peer *self, struct call *c, enum failure why)
{
    (void)self, (void)c, (void)why;
}

static void start(struct provider *p)
{
    struct catalog *c = catalog_new();

    catalog_add(c, ITEM_TOOL,
                &(struct item){.name = SPAN("echo"),
                               .raw = SPAN("{\"name\":\"echo\",\"inputSchema\":{}}"),
                               .name_at = {8, 6}});
    provider_publish(p, c);
    provider_up(p);
}

static void stop(struct provider *p)
{
    provider_lost(p, "stopped");
}

static const struct peer_verbs verbs = {.open = on_open, .cancel = on_cancel};
static const struct provider_ops ops = {.start = start, .stop = stop};

/* --- the host --- */

static struct provider *next_server(void *arg, const struct provider *p)
{
    return p ? NULL : &((struct run *)arg)->server;
}

static struct view *view_of(void *arg, struct provider *p)
{
    (void)p;
    return ((struct run *)arg)->view;
}

static void facts_of(void *arg, const struct provider *p, struct bus_server_facts *facts)
{
    (void)arg, (void)p;
    *facts = (struct bus_server_facts){0};
}

static const struct config_attachments *files_of(void *arg, const struct provider *p)
{
    (void)arg, (void)p;
    return NULL;
}

static struct bus_asking asking_of(void *arg, const struct provider *p)
{
    (void)arg, (void)p;
    return (struct bus_asking){0};
}

/* --- the agent --- */

static void invoke(struct run *r)
{
    struct message m = {
        .type = span_str(rockbot_name(ROCKBOT_INVOKE)),
        .source = SPAN("RockBot"),
        .correlation = SPAN("0123456789abcdef0123456789abcdef"),
        .reply_to = SPAN("tool.result.RockBot"),
        .body = SPAN("{\"toolCallId\":\"c1\",\"toolName\":\"echo\",\"arguments\":\"{\\\"path\\\":"
                     "\\\"/a/b\\\"}\",\"sessionId\":null}")};

    if (!message_add_header(&m, ROCKBOT_SERVER, SPAN("files")) ||
        !message_add_header(&m, ROCKBOT_TIMEOUT, SPAN("60000")))
        abort();
    bus_publish(r->bus, SPAN(ROCKBOT_TOPIC_INVOKE), &m, 0, NULL, NULL);
}

static void on_reply(void *owner, const struct bus_delivery *d)
{
    struct run *r = owner;

    bus_settle(d->sub, d->tag, BUS_ACK);
    if (--r->left > 0)
        invoke(r);
}

static void on_up(void *owner)
{
    (void)owner;
}

static void on_down(void *owner, const char *why)
{
    (void)owner, (void)why;
}

static void on_bus_closed(void *owner)
{
    ((struct run *)owner)->bus_closed = true;
}

static void on_worker_closed(void *arg)
{
    ((struct run *)arg)->worker_closed = true;
}

static void go(struct run *r, const char *url)
{
    const struct bus_options bus_options = {.url = url, .name = "budget"};
    const struct bus_events events = {on_up, on_down, on_bus_closed};
    const struct bus_worker_options options = {.agents = agents, .n_agents = 1};
    const struct bus_host host = {.router = r->router,
                                  .arg = r,
                                  .next = next_server,
                                  .view = view_of,
                                  .facts = facts_of,
                                  .asking = asking_of,
                                  .files = files_of};
    struct err err = {0};

    r->bus = bus_open(r->loop, &bus_options, &events, r, &err);
    if (!r->bus)
        abort();
    (void)bus_subscribe(
        r->bus, &(struct bus_subscription){.topic = "tool.result.RockBot", .group = "agent"},
        on_reply, r);
    r->worker = bus_worker_new(r->loop, r->bus, &host, &options);
    invoke(r);
    while (r->left > 0)
        loop_step(r->loop, 100);
    bus_worker_close(r->worker, on_worker_closed, r);
    while (!r->worker_closed)
        loop_step(r->loop, 100);
    bus_close(r->bus);
    while (!r->bus_closed)
        loop_step(r->loop, 100);
}

int main(int argc, char **argv)
{
    struct run r = {.left = argc > 1 ? strtol(argv[1], NULL, 10) : 1};
    char folder[] = "/tmp/rialto-budget-XXXXXX", url[64], lock[64];

    if (!mkdtemp(folder))
        return 1;
    snprintf(url, sizeof url, "unix:%s/bus.sock", folder);
    r.loop = loop_new();
    r.router = router_new(loop_timers(r.loop), 1);
    provider_init(&r.server, &verbs, &ops, "files");
    router_add_provider(r.router, &r.server);
    r.view = view_new("files", NULL);
    view_add(r.view, &r.server, NULL);
    provider_want(&r.server);
    go(&r, url);
    provider_unwant(&r.server);
    router_remove_provider(r.router, &r.server);
    view_free(r.view);
    provider_fini(&r.server);
    router_free(r.router);
    loop_free(r.loop);
    snprintf(lock, sizeof lock, "%s/bus.sock.lock", folder);
    (void)unlink(lock);
    return rmdir(folder) ? 1 : 0;
}
