/*
 * lease: what one session sees when some of its servers are not to be shared.
 *
 * A session that enters a view with such servers gets a view of its own: the shared providers as
 * they are and, in place of the others, fresh instances for this session alone, started by their
 * first call and stopped when the session ends. Until a fresh instance has published its own lists,
 * it shows those of the shared instance. So the session sees its tools at once, and a session that
 * calls none of them costs no process.
 *
 * A lease is filled when it is created and again whenever the bridge changes: lease_clear, then
 * lease_add_shared and lease_add_own in order, then lease_settle.
 *
 * Nouns: leases_, lease_.
 */
#ifndef RIALTO_HUB_LEASE_H
#define RIALTO_HUB_LEASE_H

#include "core/router.h"
#include "hub/exposure.h"
#include "hub/instance.h"

struct leases; /* all leases of a bridge */
struct lease;

struct leases *leases_new(struct loop *loop, struct router *router, struct instances *instances);
/* Only when all leases have ended. */
void leases_free(struct leases *ls);
/* `l` NULL: the first lease. */
struct lease *leases_next(const struct leases *ls, const struct lease *l);

/* `shared` is the view that the lease replaces, `principal` the owner of the session's token or
 * NULL, `answers` the kinds of questions that the session can be asked. */
struct lease *lease_new(struct leases *ls, const struct exposure_style *style, struct view *shared,
                        struct principal *principal, unsigned answers);
struct view *lease_shared(const struct lease *l);
struct view *lease_view(const struct lease *l);
/* The session has ended. Stops its instances. */
void lease_end(struct lease *l);

void lease_clear(struct lease *l);
void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter);
/* Add the session's own instance made from `plan`, a new one if there is none yet; `known` is the
 * catalog of the shared instance, or NULL. */
void lease_add_own(struct lease *l, struct server_plan *plan, const struct catalog *known);
/* Everything has been added: let go of the instances that were not added again. */
void lease_settle(struct lease *l);
/* The shared instance made from this plan has published its lists; call router_tell_changes
 * afterwards. */
void lease_learn(struct lease *l, const struct server_plan *plan, const struct catalog *known);

#endif
