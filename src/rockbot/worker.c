/* Starting and closing a worker, the subscriptions, which agents are served, and when to look at
 * the servers for changes. Called by hub/bus_role.c, job.c, enclosures.c and other worker files. */
#include "rockbot/worker.h"

#include "base/log.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "rockbot/worker_inside.h"

#include <inttypes.h>

enum {
    GRACE_MS = 5000, /* for calls in flight when the worker is closed */
    LAST_MS = 2000,  /* then for their replies */
    PREFETCH = 10,
    MAX_LISTENERS = 1000,
    MAX_NAMED = 50, /* names of a server's items in an error */
    INLINE_LIMIT = 32000,
    ATTACH_LIMIT = 64 * 1024,
    DELAY_KNOWN_MS = 5 * 60 * 1000, /* then measured again: clocks are set, and paths change */
    AHEAD_MS = 30 * 1000,           /* a stamp further in the future is ignored */
};

struct provider *worker_server(const struct bus_worker *w, struct span name)
{
    struct provider *like = NULL;

    for (struct provider *p = NULL; (p = w->host->next(w->host->arg, p));) {
        if (span_is(name, p->alias))
            return p;
        if (!like && span_eq_nocase(name, span_str(p->alias)))
            like = p;
    }
    return like;
}

void worker_put_servers(struct buf *out, const struct bus_worker *w)
{
    for (struct provider *p = NULL; (p = w->host->next(w->host->arg, p));)
        buf_printf(out, "%s%s", out->n ? ", " : "", p->alias);
    if (!out->n)
        buf_str(out, "none");
}

void worker_put_names(struct buf *out, struct view *v, enum item_kind kind)
{
    const struct target *t;
    size_t n = 0;

    for (; n < MAX_NAMED && (t = view_item(v, kind, n)); n++)
        buf_printf(out, "%s" SPAN_FMT, n ? ", " : "", SPAN_ARG(t->public_name));
    buf_str(out, !n ? "none" : view_item(v, kind, n) ? " and more" : "");
}

/* --- the agents --- */

static struct bus_listener *find_listener(const struct bus_worker *w, struct span agent)
{
    LIST_EACH (&w->listeners, it) {
        struct bus_listener *l = LIST_ENTRY(it, struct bus_listener, node);
        if (span_is(agent, l->agent))
            return l;
    }
    return NULL;
}

const struct bus_listener *worker_listener(const struct bus_worker *w, struct span agent)
{
    return find_listener(w, agent);
}

static struct bus_listener *add_listener(struct bus_worker *w, struct span agent)
{
    struct bus_listener *l = mem_zalloc(sizeof *l + agent.n + 1);

    memcpy(l->agent, agent.p, agent.n);
    l->since = stamp_now();
    list_append(&w->listeners, &l->node);
    w->n_listeners++;
    return l;
}

/* An agent seen for the first time is told about all servers; beyond the limit it must ask. */
static void notice(struct bus_worker *w, struct span agent, bool greet)
{
    if (worker_listener(w, agent) || w->n_listeners == MAX_LISTENERS)
        return;
    struct bus_listener *l = add_listener(w, agent);
    if (greet)
        worker_greet(w, l->agent);
}

static int64_t delay_of(const struct message *m)
{
    return (int64_t)(stamp_now() - m->sent_ms);
}

/* Keeps the smallest delay of the last minutes: a message that waited somewhere took longer. */
static void note_delay(struct bus_worker *w, const struct message *m)
{
    struct bus_listener *l = find_listener(w, m->source);
    uint64_t now = loop_now(w->loop);
    int64_t delay = delay_of(m);

    if (!l || !m->sent_ms || delay < -AHEAD_MS)
        return;
    if (l->delay_at && now - l->delay_at < DELAY_KNOWN_MS && delay > l->delay)
        return;
    l->delay = delay;
    l->delay_at = now;
}

int64_t worker_travel_time(const struct bus_worker *w, const struct message *m)
{
    const struct bus_listener *l = worker_listener(w, m->source);

    return l && l->delay_at && m->sent_ms ? delay_of(m) - l->delay : 0;
}

/*
 * All bridges share the topics, and each bridge gets every message. Messages of other agents are
 * answered by other bridges. While the worker closes, messages are not acknowledged, and return to
 * the bus with the subscription.
 */
static bool is_ours(struct station *s, const struct bus_delivery *d, bool greet)
{
    struct bus_worker *w = s->worker;
    struct span source = d->message->source;
    bool everybody = strcmp(s->agent, "*") == 0;

    if (w->closing)
        return false;
    if (everybody ? !rockbot_is_agent_name(source) : !span_is(source, s->agent)) {
        w->counts.foreign++;
        bus_settle(d->sub, d->tag, BUS_ACK);
        return false;
    }
    if (everybody)
        notice(w, source, greet);
    note_delay(w, d->message);
    return true;
}

static void on_invoke(void *owner, const struct bus_delivery *d)
{
    struct station *s = owner;

    if (is_ours(s, d, true))
        worker_invoke(s->worker, d);
}

static void on_manage(void *owner, const struct bus_delivery *d)
{
    struct station *s = owner;

    if (is_ours(s, d, true))
        worker_manage(s->worker, d);
}

static void on_refresh(void *owner, const struct bus_delivery *d)
{
    struct station *s = owner;

    if (is_ours(s, d, false))
        worker_refresh(s->worker, d);
}

/* The group is mcp-bridge.AGENT[.refresh|.manage][.NAME]. "_all" cannot be an agent's name. */
static struct bus_sub *subscribe(struct station *s, const char *topic, const char *suffix,
                                 bus_deliver_fn *deliver)
{
    const struct bus_worker_options *options = s->worker->options;
    BUF_SCOPED group = {0};

    buf_printf(&group, "%s%s%s", ROCKBOT_BRIDGE, strcmp(s->agent, "*") == 0 ? "_all" : s->agent,
               suffix);
    if (options->name)
        buf_printf(&group, ".%s", options->name);
    return bus_subscribe(
        s->worker->bus,
        &(struct bus_subscription){.topic = topic,
                                   .group = buf_cstr(&group),
                                   .prefetch = options->prefetch ? options->prefetch : PREFETCH},
        deliver, s);
}

static void station_open(struct bus_worker *w, struct station *s, const char *agent)
{
    s->worker = w;
    s->agent = agent;
    s->invoke = subscribe(s, ROCKBOT_TOPIC_INVOKE, "", on_invoke);
    s->refresh = subscribe(s, ROCKBOT_TOPIC_REFRESH, ".refresh", on_refresh);
    s->manage = subscribe(s, ROCKBOT_TOPIC_MANAGE, ".manage", on_manage);
    if (strcmp(agent, "*") != 0)
        add_listener(w, span_str(agent));
}

/* A station for "*" gets the messages of all agents, so it is the only one. */
static void open_stations(struct bus_worker *w)
{
    const struct bus_worker_options *options = w->options;

    w->stations = MEM_ARRAY(struct station, options->n_agents + 1);
    for (size_t i = 0; i < options->n_agents; i++)
        if (strcmp(options->agents[i], "*") == 0) {
            station_open(w, &w->stations[w->n_stations++], "*");
            return;
        }
    for (size_t i = 0; i < options->n_agents; i++)
        station_open(w, &w->stations[w->n_stations++], options->agents[i]);
}

/* --- looking at the servers --- */

/* Called for every change of a server. A look without changes is cheap: it compares digests of the
 * lists, which are computed only after a change. */
static void look(struct bus_worker *w)
{
    timer_set(loop_timers(w->loop), &w->next_look, w->closing ? UINT64_MAX : worker_look(w));
    LIST_EACH_SAFE (&w->jobs, it) {
        struct job *j = LIST_ENTRY(it, struct job, node);
        if (j->resume)
            j->resume(j);
    }
}

static void on_servers(struct observer *o)
{
    look(CONTAINER_OF(o, struct bus_worker, servers));
}

static void on_next_look(struct timer *t)
{
    look(CONTAINER_OF(t, struct bus_worker, next_look));
}

void worker_look_within(struct bus_worker *w, uint64_t ms)
{
    if (!timer_is_set(&w->next_look) || w->next_look.at > loop_now(w->loop) + ms)
        timer_set(loop_timers(w->loop), &w->next_look, ms);
}

void bus_worker_look(struct bus_worker *w)
{
    worker_look_within(w, 0);
}

void bus_worker_up(struct bus_worker *w)
{
    w->was_up = false;
    worker_look_within(w, 0);
}

/* --- start and close --- */

static void on_grace(struct timer *t);

struct bus_worker *bus_worker_new(struct loop *loop, struct bus *bus, const struct bus_host *host,
                                  const struct bus_worker_options *options)
{
    struct bus_worker *w = MEM_NEW(struct bus_worker);

    w->loop = loop;
    w->bus = bus;
    w->host = host;
    w->options = options;
    w->content = (struct content_options){
        .attachments = options->attachments,
        .attach_limit = options->attach_limit ? options->attach_limit : ATTACH_LIMIT,
        .inline_limit = options->inline_limit ? options->inline_limit : INLINE_LIMIT};
    peer_init(&w->peer, &job_verbs);
    w->peer.endpoint = "bus";
    list_init(&w->listeners);
    list_init(&w->jobs);
    list_init(&w->known);
    recent_init(&w->recent);
    handback_init(w);
    w->servers.changed = on_servers;
    w->next_look.fire = on_next_look;
    w->grace.fire = on_grace;
    open_stations(w);
    for (size_t i = 0; i < w->n_stations; i++)
        log_info("bus", "works for %s%s%s",
                 strcmp(w->stations[i].agent, "*") == 0 ? "every agent" : w->stations[i].agent,
                 options->name ? " as " : "", options->name ? options->name : "");
    observers_add(router_observers(host->router), &w->servers);
    return w;
}

static void worker_free(struct bus_worker *w)
{
    struct bus_listener *l;

    observer_remove(&w->servers);
    timer_clear(loop_timers(w->loop), &w->next_look);
    timer_clear(loop_timers(w->loop), &w->grace);
    while ((l = LIST_FIRST(&w->listeners, struct bus_listener, node))) {
        list_remove(&l->node);
        mem_free(l);
    }
    worker_forget_all(w);
    handback_fini(w);
    recent_fini(&w->recent);
    mem_free(w->stations);
    mem_free(w);
}

static void on_leave(struct deferred *d)
{
    struct bus_worker *w = CONTAINER_OF(d, struct bus_worker, leave);
    const struct bus_worker_counts *n = &w->counts;
    void (*closed)(void *arg) = w->closed;
    void *arg = w->closed_arg;

    log_info("bus",
             "the worker leaves: %" PRIu64 " calls, %" PRIu64 " replies (%" PRIu64
             " errors, %" PRIu64 " not sent), %" PRIu64 " messages came again, %" PRIu64
             " were too late, %" PRIu64 " of no use",
             n->invokes, n->replies, n->errors, n->unsent, n->duplicates, n->stale, n->dead);
    for (size_t i = 0; i < w->n_stations; i++) {
        bus_unsubscribe(w->stations[i].invoke);
        bus_unsubscribe(w->stations[i].refresh);
        bus_unsubscribe(w->stations[i].manage);
    }
    worker_free(w);
    closed(arg);
}

void worker_job_ended(struct bus_worker *w)
{
    if (!w->closing || w->leaving || !list_empty(&w->jobs))
        return;
    w->leaving = true;
    loop_defer(w->loop, &w->leave, on_leave);
}

/* The first time, open calls are ended and their replies sent; the second time, replies that are
 * not confirmed are dropped. */
static void on_grace(struct timer *t)
{
    struct bus_worker *w = CONTAINER_OF(t, struct bus_worker, grace);

    if (!w->failing)
        timer_set(loop_timers(w->loop), &w->grace, LAST_MS);
    LIST_EACH_SAFE (&w->jobs, it) {
        struct job *j = LIST_ENTRY(it, struct job, node);
        if (!j->reply.n || w->failing)
            job_abandon(j);
    }
    w->failing = true;
    worker_job_ended(w);
}

void bus_worker_close(struct bus_worker *w, void (*closed)(void *arg), void *arg)
{
    w->closing = true;
    w->closed = closed;
    w->closed_arg = arg;
    timer_set(loop_timers(w->loop), &w->grace, GRACE_MS);
    handback_end_all(w);
    worker_job_ended(w);
}

const struct bus_worker_counts *bus_worker_counts(const struct bus_worker *w)
{
    return &w->counts;
}
