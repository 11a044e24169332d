/*
 * lease: what one session sees when some of its servers are not to be shared.
 *
 * A session that enters a view with such servers gets a view of its own: the shared providers as
 * they are and, instead of the others, fresh instances for this session alone, started by their
 * first call and stopped when the session ends. Until a fresh instance has published its own lists,
 * it shows those of the shared instance. So the session sees its tools at once, and a session that
 * calls none of them costs no process. Where each user signs in for itself, lists may differ: there
 * a fresh instance is started at once, and shows nothing but its own.
 *
 * A caller that brings variables (config/variables.h) has a lease as well: servers whose values
 * differ from ours are variants in its view, which callers with the same values share.
 *
 * A lease is filled when it is created and again whenever the bridge changes: lease_clear, then
 * lease_add_shared and lease_add_own in order, then lease_settle.
 *
 * Nouns: leases_, lease_.
 */
#ifndef RIALTO_HUB_GRAPH_LEASE_H
#define RIALTO_HUB_GRAPH_LEASE_H

#include "core/router.h"
#include "hub/graph/exposure.h"
#include "hub/graph/variant.h"

struct leases; /* all leases of a bridge */
struct lease;

struct leases *leases_new(struct loop *loop, struct router *router, struct instances *instances);
/* Only when all leases have ended. */
void leases_free(struct leases *ls);
/* `l` NULL: the first lease. */
struct lease *leases_next(const struct leases *ls, const struct lease *l);

/* Whom a lease is for. */
struct lease_terms {
    struct principal *principal; /* the owner of the session's token; or NULL */
    unsigned answers;            /* the kinds of questions that the session can be asked */
    struct variables *variables; /* of the caller; NULL: only the configured values */
    /* An agent of that era, so no session: it has instances of its own only of servers to which the
     * principal signs in for itself. */
    bool stateless;
};

/* `shared` is the view that the lease replaces. */
struct lease *lease_new(struct leases *ls, const struct exposure_style *style, struct view *shared,
                        const struct lease_terms *terms);
struct view *lease_shared(const struct lease *l);
const struct lease_terms *lease_terms(const struct lease *l);
/* The caller has other variables from now on: fill the lease again. */
void lease_bring(struct lease *l, struct variables *variables);
struct view *lease_view(const struct lease *l);
/* The session has ended. Stops its instances. */
void lease_end(struct lease *l);

void lease_clear(struct lease *l);
void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter);
/* Add the session's own instance made from `plan`, a new one if there is none yet; `known` is the
 * catalog of the shared instance, or NULL. */
struct provider *lease_add_own(struct lease *l, struct server_plan *plan,
                               const struct catalog *known);
/* Has the session an instance of its own made from `plan`? */
bool lease_has_own(struct lease *l, const struct server_plan *plan);
/* The lease uses this variant; its provider or plan is added separately. Takes the hold over. */
void lease_claim(struct lease *l, struct variant *v);
/* Everything has been added: let go of the instances and variants that were not added again. */
void lease_settle(struct lease *l);
/* The server's entry has changed, so that another provider of its name is in the session's view:
 * what the session had subscribed to at `from` goes on there. */
void lease_move_subscriptions(struct lease *l, struct provider *from);
/* The shared instance made from this plan has published its lists; call router_tell_changes
 * afterwards. */
void lease_learn(struct lease *l, const struct server_plan *plan, const struct catalog *known);

#endif
