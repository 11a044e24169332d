/* Opens the bus and the worker, proxy and news on it, passes changes of the bridge on to them, and
 * closes them one after the other. Called by hub.c and cmd/bus.c. */
#include "hub/bus_role.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/drain.h"
#include "core/router.h"
#include "hub/bus_host.h"
#include "mcp/consent.h"
#include "rockbot/news.h"
#include "rockbot/proxy.h"
#include "rockbot/worker.h"

#include <stdlib.h>

struct bus_role {
    struct loop *loop;
    struct bridge *bridge;
    struct bridge_watch watch;
    struct bus_settings settings;
    struct bus_hosting *hosting;
    struct bus_worker_options worker_options;
    struct bus_proxy_options proxy_options;
    struct bus_news_options news_options;
    struct buf source, attachments;
    struct bus *bus;
    struct bus_worker *worker; /* NULL when the role has no worker, or the worker is closed */
    struct bus_proxy *proxy;
    struct bus_news *news;
    struct observer calls; /* while the role closes: waits for the last call */
    void (*closed)(void *arg);
    void *closed_arg;
};

static void on_up(void *owner)
{
    struct bus_role *r = owner;

    if (r->worker)
        bus_worker_up(r->worker);
    if (r->proxy)
        bus_proxy_up(r->proxy);
}

static void on_down(void *owner, const char *why)
{
    struct bus_role *r = owner;

    if (r->proxy)
        bus_proxy_down(r->proxy, why);
}

static void on_closed(void *owner)
{
    struct bus_role *r = owner;
    void (*closed)(void *arg) = r->closed;
    void *arg = r->closed_arg;

    bus_hosting_free(r->hosting);
    bus_settings_fini(&r->settings);
    buf_fini(&r->source);
    buf_fini(&r->attachments);
    mem_free(r);
    closed(arg);
}

static const struct bus_events events = {on_up, on_down, on_closed};

static void on_change(struct bridge_watch *w)
{
    struct bus_role *r = CONTAINER_OF(w, struct bus_role, watch);

    if (r->worker)
        bus_worker_look(r->worker);
    if (r->proxy)
        bus_proxy_look(r->proxy);
}

/* The folder that is configured, or that of RockBot's shared volume. */
static const char *attachments_of(struct bus_role *r, const struct config *c)
{
    const char *shared = getenv("ROCKBOT_SHARED_PATH");

    if (c->bus.attachments || !shared || !shared[0])
        return c->bus.attachments;
    buf_printf(&r->attachments, "%s/attachments/", shared);
    file_make_folders(buf_cstr(&r->attachments));
    r->attachments.n--;
    return buf_cstr(&r->attachments);
}

static void open_worker(struct bus_role *r, const struct config *c)
{
    r->worker_options =
        (struct bus_worker_options){.agents = (const char *const *)c->bus.agents.items,
                                    .n_agents = c->bus.agents.n,
                                    .name = c->bus.name,
                                    .approvals = c->bus.approvals,
                                    .servers_indexed = c->bus.discovery & DISCOVERY_SERVERS_INDEXED,
                                    .tools_available = c->bus.discovery & DISCOVERY_TOOLS_AVAILABLE,
                                    .prefetch = (unsigned)c->bus.prefetch,
                                    .max_timeout_ms = c->bus.max_timeout,
                                    .attachments = attachments_of(r, c)};
    r->worker = bus_worker_new(r->loop, r->bus, bus_hosting_host(r->hosting), &r->worker_options);
}

static void open_proxy(struct bus_role *r, const struct config *c)
{
    r->proxy_options = (struct bus_proxy_options){.agent = c->bus.agents.items[0],
                                                  .timeout = c->bus.timeout,
                                                  .plain_names = c->bus.plain_names,
                                                  .beside_worker = r->worker != NULL};
    r->proxy = bus_proxy_new(r->loop, r->bus, bus_hosting_host(r->hosting), &r->proxy_options);
}

static void open_news(struct bus_role *r, const struct config *c)
{
    if (!c->bus.events && !c->bus.approvals)
        return;
    buf_printf(&r->source, "mcp-bridge.%s",
               strcmp(c->bus.agents.items[0], "*") == 0 ? r->settings.options.name
                                                        : c->bus.agents.items[0]);
    r->news_options = (struct bus_news_options){
        .source = buf_cstr(&r->source), .events = c->bus.events, .approvals = c->bus.approvals};
    r->news = bus_news_new(r->loop, r->bus, bridge_router(r->bridge), &r->news_options);
    if (c->bus.approvals)
        approval_set_approver(bridge_router(r->bridge), &consent_approver_with_operator);
}

static int check_role(const struct config *c, enum config_bus_role role, struct err *err)
{
    if (role == BUS_WORKER || strcmp(c->bus.agents.items[0], "*") != 0)
        return 0;
    err_set(err, ERR_CONFIG, "a proxy joins the bus as one agent, and bus.agents begins with '*'");
    err_hint(err, "put the agent's name first");
    return ERR_CONFIG;
}

struct bus_role *bus_role_open(struct loop *loop, const struct config *c, struct bridge *bridge,
                               struct follow *follow, const char *url,
                               const enum config_bus_role *role, struct err *err)
{
    enum config_bus_role what = role ? *role : c->bus.role;
    struct bus_role *r = MEM_NEW(struct bus_role);

    r->loop = loop;
    r->bridge = bridge;
    if (check_role(c, what, err) < 0 || bus_settings_init(&r->settings, c, url, err) < 0) {
        mem_free(r);
        return NULL;
    }
    r->bus = bus_open(loop, &r->settings.options, &events, r, err);
    if (!r->bus) {
        bus_settings_fini(&r->settings);
        mem_free(r);
        return NULL;
    }
    r->hosting = bus_hosting_new(bridge, follow);
    if (what != BUS_PROXY)
        open_worker(r, c);
    if (what != BUS_WORKER)
        open_proxy(r, c);
    open_news(r, c);
    r->watch.changed = on_change;
    bridge_watch(bridge, &r->watch);
    return r;
}

void bus_role_report(const struct bus_role *r, struct bus_report *out)
{
    *out = (struct bus_report){.where = bus_describe(r->bus),
                               .up = bus_is_up(r->bus),
                               .worker = r->worker ? bus_worker_counts(r->worker) : NULL,
                               .proxy = r->proxy,
                               .servers = r->proxy ? bus_proxy_servers(r->proxy) : 0,
                               .broker = bus_broker(r->bus)};
}

/* --- closing one after the other --- */

static void proxy_stopped(void *arg)
{
    struct bus_role *r = arg;

    r->proxy = NULL;
    if (r->news)
        bus_news_free(r->news);
    bus_close(r->bus);
}

/* Agents may still have calls at servers on the bus. */
static void on_calls(struct observer *o)
{
    struct bus_role *r = CONTAINER_OF(o, struct bus_role, calls);

    if (drain_count(bridge_router(r->bridge)))
        return;
    observer_remove(o);
    bus_proxy_stop(r->proxy, proxy_stopped, r);
}

static void worker_closed(void *arg)
{
    struct bus_role *r = arg;

    r->worker = NULL;
    r->calls.changed = on_calls;
    if (r->proxy)
        observers_add(router_observers(bridge_router(r->bridge)), &r->calls);
    else
        proxy_stopped(r);
}

void bus_role_retire(struct bus_role *r)
{
    bus_hosting_forget_follow(r->hosting);
}

void bus_role_close(struct bus_role *r, void (*closed)(void *arg), void *arg)
{
    r->closed = closed;
    r->closed_arg = arg;
    bridge_unwatch(&r->watch);
    if (r->worker)
        bus_worker_close(r->worker, worker_closed, r);
    else
        worker_closed(r);
}
