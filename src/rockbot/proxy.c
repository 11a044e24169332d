/* The proxy's list of remote servers, the announcements that change the list, and what happens when
 * the bus goes up or down. Called by hub/bus_role.c; admin/buses.c lists the servers. */
#include "rockbot/proxy.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "rockbot/proxy_parts.h"

#include <inttypes.h>
#include <stdio.h>

enum { TIMEOUT_MS = 60 * 1000, MARGIN_MS = 5000, PATIENCE_MS = 30 * 1000, NAME_BYTES_MAX = 200 };

/* A refresh request on its way. */
struct first_request {
    struct bus_proxy *proxy; /* NULL: the proxy is closed, or has asked again */
    uint64_t stamp;
};

/* --- known servers --- */

static struct remote *find_remote(struct bus_proxy *x, struct span name, struct buf *key)
{
    key->n = 0;
    for (size_t i = 0; i < name.n; i++)
        buf_char(key, ascii_to_lower(name.p[i]));
    return map_get(&x->remotes, buf_view(key));
}

/* Is this a server of our own worker, whose announcements we get as well? */
static bool is_ours(const struct bus_proxy *x, struct span name)
{
    if (!x->options.beside_worker)
        return false;
    for (struct provider *p = NULL; (p = x->host->next(x->host->arg, p));)
        if (span_eq_nocase(name, span_str(p->alias)))
            return true;
    return false;
}

/* Names are kept as C strings, so a NUL is not allowed. */
static bool is_name(struct span name)
{
    return name.n && name.n <= NAME_BYTES_MAX && !memchr(name.p, '\0', name.n);
}

static struct remote *meet(struct bus_proxy *x, struct span name)
{
    BUF_SCOPED key = {0};
    struct remote *r = find_remote(x, name, &key);

    if (!r && is_name(name) && !is_ours(x, name)) {
        if (x->remotes.n < REMOTES_MAX) {
            r = remote_new(x, name);
            map_put(&x->remotes, buf_view(&key), r);
        } else {
            log_warn("bus", "more than %d servers are announced: '" SPAN_FMT "' is left out",
                     REMOTES_MAX, SPAN_ARG(name));
        }
    }
    return r;
}

static void part(struct remote *r)
{
    struct bus_proxy *x = r->proxy;
    BUF_SCOPED key = {0};

    (void)find_remote(x, span_str(r->name), &key);
    map_del(&x->remotes, buf_view(&key));
    remote_free(r);
}

static void forget(struct bus_proxy *x, struct span name)
{
    BUF_SCOPED key = {0};
    struct remote *r = find_remote(x, name, &key);

    if (!r)
        return;
    log_info(r->alias, "is not on the bus any more");
    part(r);
}

size_t bus_proxy_servers(const struct bus_proxy *x)
{
    return x->remotes.n;
}

bool bus_proxy_next(const struct bus_proxy *x, size_t *at, struct bus_proxy_server *out)
{
    struct span key;
    void *value;

    if (!map_next(&x->remotes, at, &key, &value))
        return false;
    const struct remote *r = value;
    *out = (struct bus_proxy_server){.alias = r->alias,
                                     .worker = r->worker ? r->worker : "",
                                     .tools = r->core.catalog ? r->core.catalog->n[ITEM_TOOL] : 0,
                                     .heard_at = r->heard_at};
    return true;
}

/* --- announcements --- */

static void heard(struct remote *r, struct span worker)
{
    r->heard_at = loop_now(r->proxy->loop);
    if (r->worker && span_is(worker, r->worker))
        return;
    mem_free(r->worker);
    r->worker = mem_span(span_cut(worker, 0, WORKER_NAME_MAX));
}

static void take_server(struct bus_proxy *x, struct span entry, struct span worker)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    BUF_SCOPED name = {0}, print = {0};
    int64_t resources = 0;
    struct err err;

    if (rockbot_read(ROCKBOT_A_SERVER, entry, in, &err) < 0) {
        log_warn("bus", "an announced server is left out: %s", err.text);
        return;
    }
    struct remote *r = meet(x, rockbot_text(&in[SERVER_NAME], &name));
    if (in[SERVER_N_RESOURCES].type == JSON_NUMBER)
        (void)json_int(in[SERVER_N_RESOURCES].value, &resources);
    if (r)
        heard(r, worker);
    if (r)
        remote_indexed(r, rockbot_text(&in[SERVER_FINGERPRINT], &print), resources > 0);
}

static void take_index(struct bus_proxy *x, const struct json_slot *in, struct span worker)
{
    BUF_SCOPED name = {0};

    for (struct json_iter it = json_iter(in[INDEXED_REMOVED].value); json_next(&it);) {
        name.n = 0;
        if (it.type == JSON_STRING)
            forget(x, json_text(it.value, &name));
    }
    for (struct json_iter it = json_iter(in[INDEXED_SERVERS].value); json_next(&it);)
        take_server(x, it.value, worker);
}

static void take_tools(struct bus_proxy *x, const struct json_slot *in, struct span worker)
{
    BUF_SCOPED name = {0};
    struct span server = rockbot_text(&in[AVAILABLE_SERVER], &name);
    struct json_iter any = json_iter(in[AVAILABLE_TOOLS].value);
    BUF_SCOPED key = {0};
    struct remote *r = json_next(&any) ? meet(x, server) : find_remote(x, server, &key);

    if (r)
        heard(r, worker);
    if (r && !remote_tools(r, in[AVAILABLE_TOOLS].value, in[AVAILABLE_REMOVED].value))
        forget(x, server);
}

static void on_meta(void *owner, const struct bus_delivery *d)
{
    struct bus_proxy *x = owner;
    enum rockbot_record type = rockbot_record(d->message->type);
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct err err;

    if (type != ROCKBOT_SERVERS_INDEXED && type != ROCKBOT_TOOLS_AVAILABLE) {
        log_debug("bus", "an announcement of a kind we do not know: " SPAN_FMT,
                  SPAN_ARG(span_cut(d->message->type, 0, 80)));
        bus_settle(d->sub, d->tag, BUS_ACK);
        return;
    }
    if (rockbot_read(type, d->message->body, in, &err) < 0) {
        log_warn("bus", "an announcement that cannot be read: %s", err.text);
        bus_settle(d->sub, d->tag, BUS_DEAD);
        return;
    }
    if (type == ROCKBOT_SERVERS_INDEXED)
        take_index(x, in, d->message->source);
    else
        take_tools(x, in, d->message->source);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

/* --- bus up and down --- */

static void ask_for_all(struct bus_proxy *x, bus_sent_fn *done, void *owner)
{
    struct message m = {.type = span_str(rockbot_name(ROCKBOT_REFRESH)),
                        .source = span_str(x->options.agent)};
    BUF_SCOPED body = {0};

    rockbot_put(&body, ROCKBOT_REFRESH, &SPAN_EMPTY);
    m.body = buf_view(&body);
    bus_publish(x->bus, SPAN(ROCKBOT_TOPIC_REFRESH), &m, MANAGE_WAIT_MS, done, owner);
}

/*
 * Bridges assume that the sender of a request was subscribed at the time of its stamp, and do not
 * repeat announcements made after that. But a request waits until our subscriptions are made, which
 * with a slow broker is long after the stamp: then the proxy asks once more.
 */
static void on_asked(void *owner, enum bus_sent how)
{
    struct first_request *first = owner;
    struct bus_proxy *x = first->proxy;

    if (x)
        x->first = NULL;
    if (x && x->is_up && how == BUS_SENT && stamp_now() / 1000 != first->stamp / 1000)
        ask_for_all(x, NULL, NULL);
    mem_free(first);
}

static void ask_first(struct bus_proxy *x)
{
    struct first_request *first = MEM_NEW(struct first_request);

    if (x->first)
        x->first->proxy = NULL;
    x->first = first;
    *first = (struct first_request){x, stamp_now()};
    ask_for_all(x, on_asked, first);
}

/* Calls `fn` for every known server. `fn` may change the map, so servers are looked up by name. */
static void each_remote(struct bus_proxy *x, void (*fn)(struct remote *r))
{
    size_t n = 0, at = 0;
    struct span *names = MEM_ARRAY(struct span, x->remotes.n + 1);
    BUF_SCOPED key = {0};
    void *value;

    while (map_next(&x->remotes, &at, &names[n], &value)) {
        names[n] = span_str(mem_span(names[n]));
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        struct remote *r = find_remote(x, names[i], &key);
        if (r)
            fn(r);
        mem_free((char *)names[i].p);
    }
    mem_free(names);
}

static bool has_name_of_ours(const struct remote *r)
{
    const struct bus_host *host = r->proxy->host;

    for (struct provider *p = NULL; (p = host->next(host->arg, p));)
        if (strcmp(p->alias, r->alias) == 0)
            return true;
    return false;
}

static void look_at(struct remote *r)
{
    if (is_ours(r->proxy, span_str(r->name))) {
        log_info(r->alias, "is what our own worker announces from now on");
        part(r);
    } else if (has_name_of_ours(r)) {
        remote_rename(r);
    }
}

void bus_proxy_look(struct bus_proxy *x)
{
    each_remote(x, look_at);
}

static void want(struct remote *r)
{
    provider_want(&r->core);
}

static void lose(struct remote *r)
{
    remote_lost(r, r->proxy->away);
}

static void on_patience(struct timer *t)
{
    each_remote(CONTAINER_OF(t, struct bus_proxy, patience), lose);
}

void bus_proxy_up(struct bus_proxy *x)
{
    if (x->is_up || x->done)
        return;
    x->is_up = true;
    x->away[0] = '\0';
    timer_clear(loop_timers(x->loop), &x->patience);
    ask_first(x);
    each_remote(x, want);
}

void bus_proxy_down(struct bus_proxy *x, const char *why)
{
    snprintf(x->away, sizeof x->away, "the bus is away: %s", why);
    if (!x->is_up || x->done)
        return;
    x->is_up = false;
    timer_set(loop_timers(x->loop), &x->patience, x->options.patience);
    if (bus_is_in_memory(x->bus))
        each_remote(x, remote_request_lose_all);
}

/* --- life --- */

static char *own_topic(const struct bus_proxy *x, const char *stem)
{
    struct buf topic = {0};

    buf_printf(&topic, "%s%s", stem, x->options.agent);
    if (!x->options.plain_names)
        buf_printf(&topic, ".%s", x->instance);
    return buf_take(&topic);
}

static void listen_for_servers(struct bus_proxy *x)
{
    const char *agent = x->options.agent;
    bool plain = x->options.plain_names;
    char topic[120], group[240];

    snprintf(topic, sizeof topic, ROCKBOT_TOPIC_META "%s", agent);
    snprintf(group, sizeof group, "%s.tool-meta-mcp-%s%s%s", agent, agent, plain ? "" : ".",
             plain ? "" : x->instance);
    x->meta = bus_subscribe(
        x->bus, &(struct bus_subscription){.topic = topic, .group = group, .ephemeral = !plain},
        on_meta, x);
}

struct bus_proxy *bus_proxy_new(struct loop *loop, struct bus *bus, const struct bus_host *host,
                                const struct bus_proxy_options *options)
{
    struct bus_proxy *x = MEM_NEW(struct bus_proxy);

    x->loop = loop;
    x->bus = bus;
    x->host = host;
    x->options = *options;
    x->options.timeout = options->timeout ? options->timeout : TIMEOUT_MS;
    x->options.margin = options->margin ? options->margin : MARGIN_MS;
    x->options.patience = options->patience ? options->patience : PATIENCE_MS;
    x->patience.fire = on_patience;
    snprintf(x->instance, sizeof x->instance, "%08x", (unsigned)id_random_u64());
    x->result_topic = own_topic(x, ROCKBOT_TOPIC_RESULT);
    x->managed_topic = own_topic(x, ROCKBOT_TOPIC_MANAGED);
    listen_for_servers(x);
    if (bus_is_up(bus))
        bus_proxy_up(x);
    return x;
}

static void end(struct deferred *d)
{
    struct bus_proxy *x = CONTAINER_OF(d, struct bus_proxy, ended);
    void (*done)(void *arg) = x->done;
    void *arg = x->done_arg;

    map_fini(&x->remotes);
    map_fini(&x->requests);
    mem_free(x->result_topic);
    mem_free(x->managed_topic);
    mem_free(x);
    done(arg);
}

void bus_proxy_stop(struct bus_proxy *x, void (*done)(void *arg), void *arg)
{
    struct bus_sub *const subs[] = {x->meta, x->result, x->managed};

    x->done = done;
    x->done_arg = arg;
    timer_clear(loop_timers(x->loop), &x->patience);
    if (x->first)
        x->first->proxy = NULL;
    each_remote(x, part);
    for (size_t i = 0; i < COUNT_OF(subs); i++)
        if (subs[i])
            bus_unsubscribe(subs[i]);
    loop_defer(x->loop, &x->ended, end);
}
