/*
 * variant: a server as it is for callers whose variables differ from ours
 * (docs/decisions/022-callers-variables.md).
 *
 * Callers with the same values share a variant and its instance. The leases of these callers hold
 * the variant, and it ends with the last lease. The variants of a server are in a list of its
 * bridge_server.
 *
 * Nouns: variants_, variant_.
 */
#ifndef RIALTO_HUB_GRAPH_VARIANT_H
#define RIALTO_HUB_GRAPH_VARIANT_H

#include "hub/graph/instance.h"

struct variant;

/* The variant in `all` that has the values of this plan, made for the configuration `c`; a new one
 * if there is none. With one holder more; takes the plan over. */
struct variant *variants_hold(struct list *all, struct instances *is, struct server_plan *plan,
                              const struct config *c);
/* The entry has changed or is gone: nobody gets these variants any more, and the leases that hold
 * one drop it. */
void variants_retire(struct list *all);
/* The catalog of one of the variants; NULL: none of them has a catalog. */
const struct catalog *variants_catalog(struct list *all);
/* Everybody's identity at one of the variants; NULL: nobody signs in there. */
struct identity *variants_identity(struct list *all, const struct signin *signin);
/* Do all variants that are in use and can be started have a catalog? */
bool variants_are_known(struct list *all);

/* Calls in flight have `patience` ms to finish if this was the last holder. */
void variant_drop(struct variant *v, uint64_t patience);
struct server_plan *variant_plan(const struct variant *v);
/*
 * The instance that its callers share, made when it is first asked for; it shows `known` (or NULL)
 * until it has lists of its own. When nothing is known, it is started to learn them. `on_orphan` is
 * for mcp_provider_on_orphan, until the variant is retired.
 */
struct provider *variant_provider(struct variant *v, const struct catalog *known,
                                  void (*on_orphan)(void *arg), void *arg);

#endif
