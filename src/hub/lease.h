/*
 * lease: what one session sees when some of its servers are not to be shared.
 *
 * A session that enters a view with such servers gets a view of its own: the shared providers as
 * they are, and in the same places fresh instances of the others, for it alone: started with their
 * first call and stopped when it leaves. What a fresh instance offers is taken to be what the
 * shared one offers until it says so itself, so the session sees its tools at once, and a session
 * that calls none of them costs no process.
 *
 * It is furnished when it is made and again whenever the bridge changes:
 * lease_clear, the lease_add_s in order, lease_settle.
 *
 * Nouns: leases_, lease_.
 */
#ifndef RIALTO_HUB_LEASE_H
#define RIALTO_HUB_LEASE_H

#include "core/router.h"
#include "hub/exposure.h"
#include "hub/instance.h"

struct leases; /* all of a bridge */
struct lease;

struct leases *leases_new(struct loop *loop, struct router *router, struct instances *instances);
/* When none is left. */
void leases_free(struct leases *ls);
/* Pass NULL for the first. */
struct lease *leases_next(const struct leases *ls, const struct lease *l);

/* `shared` is the view it stands for, `answers` what its session can be asked. */
struct lease *lease_new(struct leases *ls, const struct exposure_style *style, struct view *shared,
                        unsigned answers);
struct view *lease_shared(const struct lease *l);
struct view *lease_view(const struct lease *l);
/* The session is gone; so are the instances, when they are down. */
void lease_end(struct lease *l);

void lease_clear(struct lease *l);
void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter);
/* Its instance by `plan`, a fresh one if it has none; `known` is what the shared instance offers,
 * or NULL. */
void lease_add_own(struct lease *l, struct server_plan *plan, const struct catalog *known);
/* All is in it: let go of what was not added again. */
void lease_settle(struct lease *l);
/* The shared instance by this plan has said what it offers; router_tell_changes is to follow. */
void lease_learn(struct lease *l, const struct server_plan *plan, const struct catalog *known);

#endif
