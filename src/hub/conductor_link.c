/* The link that carries MCP over an ACP channel, the conductor's router, and single providers with
 * a view each. Called by conductor_join.c and conductor_http.c, and by cmd/conductor.c for start
 * and end. */
#include "hub/conductor_link.h"

#include "base/id.h"
#include "base/mem.h"
#include "mcp/protocol.h"
#include "wire/rpc.h"

/* Bytes of the answers to a batch: as many as one message may have here. */
enum { MAX_ANSWERS = 32 * 1024 * 1024 };

/* --- the link --- */

struct channel_link {
    struct loop *loop;
    struct acp_server *server;
    struct acp_channel *channel; /* NULL when closed */
    struct mcp_provider *provider;
    struct channel_link_owner owner;
    struct buf out;
    struct timer report; /* reports that must not be made inside the provider's own calls */
    bool lent;           /* the channel was given to us and is never opened again */
    bool closing;
};

static void on_opened(void *owner)
{
    struct channel_link *l = owner;

    mcp_provider_set_era(l->provider,
                         acp_channel_is_modern(l->channel) ? MCP_ERA_MODERN : MCP_ERA_LEGACY);
    /* From the loop: the channel may have opened while the provider is still starting. */
    timer_set(loop_timers(l->loop), &l->report, 0);
}

static void on_message(void *owner, struct span text, struct span about)
{
    struct channel_link *l = owner;
    int64_t id = 0;

    if (!json_int(about, &id) || id < 0)
        id = 0;
    mcp_provider_receive(l->provider, text, (uint64_t)id);
}

static void on_closed(void *owner, const char *why)
{
    struct channel_link *l = owner;
    bool working = mcp_provider_core(l->provider)->n_open > 0;

    l->channel = NULL;
    timer_clear(loop_timers(l->loop), &l->report);
    /* A server that leaves while calls are open has failed: end the calls with the reason first. */
    if (working && !l->closing)
        mcp_provider_closed(l->provider, why);
    if (l->owner.closed)
        l->owner.closed(l->owner.arg);
    if (!working && !l->closing)
        mcp_provider_closed(l->provider, why);
}

static const struct channel_events channel_events = {on_opened, on_message, on_closed};

static void on_report(struct timer *t)
{
    struct channel_link *l = CONTAINER_OF(t, struct channel_link, report);

    if (l->channel && !l->closing)
        mcp_provider_connected(l->provider);
    else
        mcp_provider_closed(l->provider, "closed");
}

static void link_open(void *link)
{
    struct channel_link *l = link;

    l->closing = false;
    if (l->lent) {
        if (l->channel)
            on_opened(l);
        else
            timer_set(loop_timers(l->loop), &l->report, 0);
        return;
    }
    l->channel = acp_channel_new(l->server, &channel_events, l);
    acp_channel_open(l->channel);
}

static struct buf *link_begin(void *link)
{
    struct channel_link *l = link;

    l->out.n = 0;
    return &l->out;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct channel_link *l = link;

    /* Take the message out first: the answer may come inside acp_channel_send, and with it the next
     * message to send. */
    BUF_SCOPED message = l->out;
    l->out = (struct buf){0};
    json_join_lines(&message, 0);
    if (l->channel)
        acp_channel_send(l->channel, buf_view(&message), parcel->own_id);
}

static void link_close(void *link)
{
    struct channel_link *l = link;

    if (l->channel)
        acp_channel_close(l->channel);
    l->channel = NULL;
    l->closing = true;
    timer_set(loop_timers(l->loop), &l->report, 0);
}

static void link_free(void *link)
{
    struct channel_link *l = link;

    timer_clear(loop_timers(l->loop), &l->report);
    if (l->channel)
        acp_channel_close(l->channel);
    buf_fini(&l->out);
    mem_free(l);
}

static const struct mcp_link_ops link_ops = {
    .open = link_open,
    .begin = link_begin,
    .end = link_end,
    .close = link_close,
    .free = link_free,
};

/*
 * A provider behind a channel. With `channel` (open already), the provider lives as long as that
 * channel; without, the provider opens a new channel to `server` each time it is started.
 */
static struct mcp_provider *link_new(struct loop *loop, const char *alias,
                                     struct acp_server *server, struct acp_channel *channel,
                                     const struct channel_link_owner *owner)
{
    struct channel_link *l = MEM_NEW(struct channel_link);

    l->loop = loop;
    l->server = server;
    l->channel = channel;
    l->lent = channel != NULL;
    l->owner = *owner;
    l->report.fire = on_report;
    l->provider = mcp_provider_new(alias, &link_ops, l);
    if (channel)
        acp_channel_rebind(channel, &channel_events, l);
    return l->provider;
}

/* --- the core --- */

struct conductor_core {
    struct loop *loop;
    struct router *router;
    struct list lones;
    size_t holds;
    struct timer reap;
    void (*done)(void *arg);
    void *arg;
};

struct lone {
    struct list node;
    struct conductor_core *core;
    struct mcp_provider *provider;
    struct view *view;
    struct filter filter;
    bool plain;
    bool ending;
};

static void lone_free(struct lone *l)
{
    struct provider *p = mcp_provider_core(l->provider);

    router_remove_provider(l->core->router, p);
    view_free(l->view);
    mcp_provider_free(l->provider);
    list_remove(&l->node);
    mem_free(l);
}

static void on_reap(struct timer *t)
{
    struct conductor_core *k = CONTAINER_OF(t, struct conductor_core, reap);

    LIST_EACH_SAFE (&k->lones, it) {
        struct lone *l = LIST_ENTRY(it, struct lone, node);
        if (l->ending && mcp_provider_core(l->provider)->state == PROVIDER_DOWN)
            lone_free(l);
    }
    if (k->done && list_empty(&k->lones) && !k->holds) {
        void (*done)(void *arg) = k->done;
        k->done = NULL;
        done(k->arg);
    }
}

static void on_stopped(void *arg, struct provider *p)
{
    struct conductor_core *k = arg;

    (void)p;
    timer_set(loop_timers(k->loop), &k->reap, 0);
}

struct conductor_core *conductor_core_new(struct loop *loop)
{
    struct conductor_core *k = MEM_NEW(struct conductor_core);

    k->loop = loop;
    k->router = router_new(loop_timers(loop), id_random_u64());
    k->reap.fire = on_reap;
    list_init(&k->lones);
    router_on_stopped(k->router, on_stopped, k);
    return k;
}

void conductor_core_stop(struct conductor_core *k, void (*done)(void *arg), void *arg)
{
    k->done = done;
    k->arg = arg;
    timer_set(loop_timers(k->loop), &k->reap, 0);
}

void conductor_core_free(struct conductor_core *k)
{
    timer_clear(loop_timers(k->loop), &k->reap);
    router_free(k->router);
    mem_free(k);
}

void conductor_core_hold(struct conductor_core *k)
{
    k->holds++;
}

void conductor_core_release(struct conductor_core *k)
{
    k->holds--;
    timer_set(loop_timers(k->loop), &k->reap, 0);
}

struct loop *conductor_core_loop(struct conductor_core *k)
{
    return k->loop;
}

struct lone *lone_new(struct conductor_core *k, const char *alias, struct acp_server *server,
                      struct acp_channel *channel, const struct channel_link_owner *owner)
{
    struct lone *l = MEM_NEW(struct lone);

    l->core = k;
    l->provider = link_new(k->loop, alias, server, channel, owner);
    l->view = view_new(alias, NULL);
    struct provider *p = mcp_provider_core(l->provider);
    p->policy.restart_limit = 3;
    p->policy.timeout = 0; /* the agent decides how long to wait */
    router_add_provider(k->router, p);
    view_add(l->view, p, &l->filter);
    list_append(&k->lones, &l->node);
    return l;
}

struct provider *lone_provider(struct lone *l)
{
    return mcp_provider_core(l->provider);
}

void lone_declare(struct lone *l, struct span first)
{
    struct rpc_message m;

    if (rpc_skim(first, NULL, NULL, NULL, 0, &m) || json_type_of(m.params) != JSON_OBJECT)
        return;
    struct json_slot meta = json_get(m.params, "_meta");
    struct json_slot declared = json_get(m.params, "capabilities");
    if (meta.type == JSON_OBJECT && declared.type == JSON_NONE)
        declared = json_get(meta.value, MCP_META_PREFIX "clientCapabilities");
    if (declared.type == JSON_OBJECT)
        mcp_provider_set_answers(l->provider, mcp_answers_of(declared.value));
}

void lone_set_plain(struct lone *l)
{
    l->plain = true;
    mcp_provider_set_plain(l->provider);
}

struct mcp_host lone_host(const struct lone *l)
{
    return (struct mcp_host){.router = l->core->router,
                             .view = l->view,
                             .plain = l->plain,
                             .max_batch = RPC_MAX_BATCH,
                             .max_answers = MAX_ANSWERS};
}

void lone_end(struct lone *l)
{
    if (l->ending)
        return;
    l->ending = true;
    provider_unwant(mcp_provider_core(l->provider));
    timer_set(loop_timers(l->core->loop), &l->core->reap, 0);
}
