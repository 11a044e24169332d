/*
 * server: a provider as one entry of the configuration describes it.
 *
 * The same entry may be made into several providers: one shared by everybody, or one per session.
 */
#ifndef RIALTO_CMD_SERVER_H
#define RIALTO_CMD_SERVER_H

#include "base/arena.h"
#include "config/config.h"
#include "config/secret.h"
#include "core/view.h"
#include "io/loop.h"
#include "mcp/provider.h"

/* What an entry means, worked out once; lives in the arena it was made with. */
struct server_plan;

/* NULL when a secret it needs is not to be found; the log says which. */
const struct server_plan *server_plan_new(struct arena *arena, const struct config *c,
                                          const struct config_server *s, struct secrets *secrets);
/* The demo server that is in this program. NULL if we cannot find ourselves. */
const struct server_plan *server_plan_demo(struct arena *arena, const struct config *c);

/* A new provider, not in any router yet. */
struct mcp_provider *server_start(struct loop *loop, const struct server_plan *plan);
const char *server_alias(const struct server_plan *plan);
const struct filter *server_filter(const struct server_plan *plan);
bool server_is_lazy(const struct server_plan *plan);
bool server_is_per_session(const struct server_plan *plan);

#endif
