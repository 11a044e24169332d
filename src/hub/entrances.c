/* The list of HTTP entrances to all servers and to single ones, opened when first asked for and
 * closed when the server is dropped. Called by hub.c for each MCP request. */
#include "hub/entrances.h"

#include "base/mem.h"
#include "core/caller.h"

struct door {
    struct list node;
    struct entrances *all;
    struct bridge_server *server; /* NULL: leads to all of them */
    const char *principal;        /* for whom; NULL: whoever needs no token */
    const struct narrowing *narrowing;
    struct exposure *narrowed; /* what is seen of it; NULL: everything */
    struct entrance *entrance; /* NULL once it is closing */
};

struct entrances {
    struct loop *loop;
    struct bridge *bridge;
    struct entrance_options options;
    struct list doors;
    struct bridge_watch watch;
    void (*closed)(void *arg); /* NULL until it is to close */
    void *closed_arg;
};

static struct door *entry(struct list *it)
{
    return LIST_ENTRY(it, struct door, node);
}

/* --- doors --- */

static void finish(struct entrances *e)
{
    if (!e->closed || !list_empty(&e->doors))
        return;
    e->closed(e->closed_arg);
    mem_free(e);
}

static void door_closed(void *arg)
{
    struct door *d = arg;
    struct entrances *e = d->all;

    list_remove(&d->node);
    if (d->narrowed)
        exposure_free(d->narrowed);
    if (d->server)
        bridge_server_release(d->server);
    mem_free(d);
    finish(e);
}

static void close_door(struct door *d)
{
    struct entrance *entrance = d->entrance;

    d->entrance = NULL;
    if (entrance)
        entrance_close(entrance, door_closed, d);
}

static bool is_for(const struct door *d, const char *principal, const struct narrowing *narrowing)
{
    return d->entrance && d->narrowing == narrowing && caller_same(d->principal, principal);
}

/* Keeps the hold on the server. */
static struct door *open_door(struct entrances *e, struct bridge_server *s, const char *principal,
                              const struct narrowing *narrowing)
{
    struct door *d = MEM_NEW(struct door);
    struct exposure *seen = s ? bridge_server_exposure(s) : bridge_all(e->bridge);

    d->all = e;
    d->server = s;
    d->principal = principal;
    d->narrowing = narrowing;
    if (narrowing)
        seen = d->narrowed = bridge_narrow(e->bridge, s, narrowing);
    struct mcp_host host = bridge_host(e->bridge, seen);
    host.principal = principal;
    d->entrance = entrance_new(e->loop, &host, &e->options);
    list_append(&e->doors, &d->node);
    return d;
}

/* --- who leads where --- */

struct entrance *entrances_all(struct entrances *e, const char *principal,
                               const struct narrowing *narrowing)
{
    LIST_EACH (&e->doors, it)
        if (!entry(it)->server && is_for(entry(it), principal, narrowing))
            return entry(it)->entrance;
    return open_door(e, NULL, principal, narrowing)->entrance;
}

static bool may_see(const struct narrowing *n, struct span alias)
{
    for (size_t i = 0; n && i < n->n_providers; i++)
        if (span_eq(n->providers[i], alias))
            return true;
    return !n || !n->n_providers;
}

/* One that is open already: no need to look through all servers. */
static struct door *find_named(const struct entrances *e, struct span alias, const char *principal,
                               const struct narrowing *narrowing)
{
    LIST_EACH (&e->doors, it) {
        struct door *d = entry(it);
        if (d->server && is_for(d, principal, narrowing) &&
            span_is(alias, exposure_style(bridge_server_exposure(d->server))->name))
            return d;
    }
    return NULL;
}

struct entrance *entrances_one(struct entrances *e, const char *principal,
                               const struct narrowing *narrowing, struct span alias)
{
    struct door *d = find_named(e, alias, principal, narrowing);
    struct bridge_server *s =
        !d && may_see(narrowing, alias) ? bridge_server_hold(e->bridge, alias) : NULL;

    if (s)
        d = open_door(e, s, principal, narrowing);
    return d ? d->entrance : NULL;
}

size_t entrances_sessions(const struct entrances *e)
{
    size_t n = 0;

    LIST_EACH (&e->doors, it)
        if (entry(it)->entrance)
            n += entrance_sessions(entry(it)->entrance);
    return n;
}

/* --- life --- */

static void on_change(struct bridge_watch *w)
{
    struct entrances *e = CONTAINER_OF(w, struct entrances, watch);

    LIST_EACH_SAFE (&e->doors, it)
        if (entry(it)->server && bridge_server_is_gone(entry(it)->server))
            close_door(entry(it));
}

struct entrances *entrances_new(struct loop *loop, struct bridge *bridge, const struct config *c)
{
    struct entrances *e = MEM_NEW(struct entrances);

    e->loop = loop;
    e->bridge = bridge;
    e->options = (struct entrance_options){.max_sessions = c->limits.sessions,
                                           .session_ttl = c->limits.session_ttl,
                                           .max_message = c->limits.message};
    list_init(&e->doors);
    entrances_all(e, NULL, NULL); /* there is always one, for the end to wait for */
    e->watch.changed = on_change;
    bridge_watch(bridge, &e->watch);
    return e;
}

void entrances_close(struct entrances *e, void (*closed)(void *arg), void *arg)
{
    bridge_unwatch(&e->watch);
    e->closed = closed;
    e->closed_arg = arg;
    LIST_EACH_SAFE (&e->doors, it)
        close_door(entry(it));
}
