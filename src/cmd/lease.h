/*
 * lease: a session's own instances of the servers that are not to be shared.
 *
 * A session that enters a view with such servers gets a view of its own: the shared providers as
 * they are, and in the same places fresh instances of the others, started for it alone and stopped
 * when it leaves. What a fresh instance offers is taken to be what the shared one offers until it
 * says so itself, so the session sees its tools at once.
 */
#ifndef RIALTO_CMD_LEASE_H
#define RIALTO_CMD_LEASE_H

#include "cmd/server.h"
#include "cmd/showcase.h"
#include "core/router.h"

struct leases; /* all of a bridge */
struct lease;

struct leases *leases_new(struct loop *loop, struct router *router);
/* When none is left. */
void leases_free(struct leases *ls);

struct lease *lease_new(struct leases *ls, const struct showcase_style *style);
void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter);
/* A fresh instance by `plan`; `known` is what the shared instance offers, or NULL. */
void lease_add_own(struct lease *l, const struct server_plan *plan, const struct catalog *known,
                   unsigned answers);
/* The view is complete: start what is its own. */
struct view *lease_begin(struct lease *l);
/* The session is gone; the instances are stopped and forgotten when they are down. */
void lease_end(struct lease *l);

/* A provider is down: true if it was a lease's. */
bool leases_stopped(struct leases *ls, struct provider *p);
/* Instances that are not down yet. */
size_t leases_count(const struct leases *ls);

#endif
