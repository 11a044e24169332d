/*
 * bridge_inside: what bridge.c (the graph: all servers, the views that show them) and
 * bridge_server.c (one server, with the instances that run for it) share, and nobody else sees.
 */
#ifndef RIALTO_HUB_GRAPH_BRIDGE_INSIDE_H
#define RIALTO_HUB_GRAPH_BRIDGE_INSIDE_H

#include "hub/graph/bridge.h"
#include "hub/graph/lease.h"

struct bridge_server {
    struct list node; /* in bridge.servers; in no list once the server is gone */
    struct bridge *bridge;
    struct server_plan *plan;
    struct instance *instance;
    struct instance *legacy; /* serves agents of the initialize era; NULL: `instance` does */
    bool legacy_proven;      /* `legacy` has been started once */
    uint64_t modern_until;   /* `legacy` has failed: not tried again before this time */
    struct instance *next;   /* replaces `instance` once ready; NULL when there is none */
    struct server_plan *next_plan;
    bool next_failed;     /* `next` did not come up, and that was logged */
    struct list variants; /* for callers whose variables differ */
    struct exposure *own; /* this server alone, names untouched */
    bool gone;
    bool stale; /* runs an entry that is not in the file any more: the new one lacks something */
    bool demo;  /* the demo server, which is in no configuration */
    unsigned holders; /* of this struct, the bridge among them */
};

struct bridge {
    struct loop *loop;
    const struct config *config; /* the configuration of the start, not owned */
    struct config *newer;        /* the configuration applied since; NULL when there is none */
    struct router *router;
    struct exposure *all;
    struct list servers; /* in config order */
    struct lock *lock;
    struct signin *signin;
    struct instances *instances;
    struct leases *leases;
    struct rulebook *rules;
    bool started, awake, stopping;
    bool for_one; /* see bridge_set_for_one */
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct timer report;
    struct observer replace; /* set while any server has a `next` */
    struct observer second;  /* set while any `legacy` has not shown yet that it can be started */
    struct list watches;
    struct session_list sessions; /* the agents */
    struct map lacks; /* alias -> names of the secrets that the server was left out for, or NULL */
    struct secrets *secrets; /* of the current configuration */
    struct buf variables;    /* the names that callers may bring values for: "A B" */
};

static inline struct bridge_server *bridge_server_at(struct list *it)
{
    return LIST_ENTRY(it, struct bridge_server, node);
}

/* --- bridge.c --- */
/* Fill all views again with the servers there are now, in the order of the configuration. */
void bridge_arrange(struct bridge *b);
/* Servers were added, removed or replaced, and those that leave still exist. */
void bridge_tell_watches(struct bridge *b);

/* --- bridge_server.c --- */
/* Adds the server as the last one; views show it after bridge_arrange. Takes the plan over. */
struct bridge_server *bridge_server_new(struct bridge *b, struct server_plan *plan);
/* The configuration does not have the server any more. The struct lives until its holders release
 * it. */
void bridge_server_drop(struct bridge_server *s);
/* Start the shared instance, if it is time for that. */
void bridge_server_want(struct bridge_server *s);
/* An instance made from this plan replaces the shared one as soon as it is ready; at once if the
 * shared one is not ready itself. Takes the plan over. */
void bridge_server_replace(struct bridge_server *s, struct server_plan *plan);
/* Does a caller with these variables need a variant of the server? Then *v is the variant, held, or
 * NULL if the caller cannot have the server (the log says why). */
bool bridge_server_differs(struct bridge_server *s, const struct variables *brought,
                           struct variant **v);
/* Add this variant of the server to the lease. */
void bridge_server_add_variant(struct bridge_server *s, struct lease *l, struct variant *v);

/* The shared instance; the one for agents of the initialize era, which may be the same. */
struct provider *bridge_server_core(const struct bridge_server *s);
struct provider *bridge_server_legacy_core(const struct bridge_server *s);
/* Is the server seen in this view, which may be of either era? */
bool bridge_server_is_in(const struct bridge_server *s, const struct view *v);
/* Does a caller on these terms get an instance of its own? */
bool bridge_server_is_own(const struct bridge_server *s, const struct lease_terms *terms);
/* Can anybody use the server: without variables, or with those of a present or future caller?
 * Otherwise bridge_next leaves the server out. */
bool bridge_server_is_of_use(const struct bridge_server *s);
/* Has the shared instance come up, or failed, or is it not to be started? */
bool bridge_server_is_settled(const struct bridge_server *s);

/* For bridge.replace and bridge.second. */
void bridge_server_on_replace(struct observer *o);
void bridge_server_on_second(struct observer *o);

#endif
