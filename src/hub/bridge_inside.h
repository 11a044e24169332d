/*
 * bridge_inside: the parts of a bridge, for bridge.c (what stands and who sees it) and
 * bridge_change.c (servers that come, are replaced and go) only.
 */
#ifndef RIALTO_HUB_BRIDGE_INSIDE_H
#define RIALTO_HUB_BRIDGE_INSIDE_H

#include "hub/bridge.h"
#include "hub/instance.h"
#include "hub/lease.h"
#include "hub/server.h"

struct bridge_server {
    struct list node; /* in bridge.servers, or on its own once it is gone */
    struct bridge *bridge;
    struct server_plan *plan;
    struct instance *instance;
    struct instance *next; /* is to take its place once it is ready; NULL when there is none */
    struct server_plan *next_plan;
    bool next_failed; /* and that was said */
    struct view *own; /* this server alone, names untouched */
    bool per_session; /* sessions get an instance of their own */
    bool gone;
    unsigned holders; /* of the view, the bridge among them */
};

struct bridge {
    struct loop *loop;
    const struct config *config; /* of the start, which is not ours */
    struct config *newer;        /* what was applied since; NULL when nothing was */
    struct router *router;
    struct showcase_style style;
    struct showcase *all;
    struct list servers; /* in config order */
    struct instances *instances;
    struct leases *leases;
    bool started, awake, stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct timer report;
    struct observer replace; /* while a server has a next one */
    struct list watches;
};

static inline struct bridge_server *entry(struct list *it)
{
    return LIST_ENTRY(it, struct bridge_server, node);
}

static inline struct provider *core_of(const struct bridge_server *s)
{
    return instance_provider(s->instance);
}

/* --- bridge.c --- */
struct bridge_server *bridge_find(const struct bridge *b, struct span alias);
/* Everybody sees what there is now, in the order of the configuration. */
void bridge_arrange(struct bridge *b);
void bridge_tell_watches(struct bridge *b);

/* --- bridge_change.c --- */
/* Takes the plan over. */
struct bridge_server *bridge_add_server(struct bridge *b, struct server_plan *plan);
void bridge_drop_server(struct bridge_server *s);
/* Start it, if it is to run now. */
void bridge_want(struct bridge_server *s);
void bridge_carry_out(struct bridge *b, const struct config *c, const struct plan *plan,
                      struct bridge_changes *changes);
/* Looks after the servers that have a next one. */
void bridge_on_replace(struct observer *o);

#endif
