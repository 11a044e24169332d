/*
 * server: a provider as one entry of the configuration describes it.
 *
 * The same entry may be made into several providers: one shared by everybody, or one per session.
 */
#ifndef RIALTO_HUB_SERVER_H
#define RIALTO_HUB_SERVER_H

#include "config/config.h"
#include "config/secret.h"
#include "core/view.h"
#include "io/loop.h"
#include "mcp/server/provider.h"
#include "mcp/server/stdio_upstream.h"

/* What an entry means, worked out once. It is kept as long as somebody has it: an entry may change
 * or go while instances that were made by it still run. */
struct server_plan;

/* With one holder. NULL when a secret it needs is not to be found, or when it would start us again;
 * the log says so. */
struct server_plan *server_plan_new(const struct config *c, const struct config_server *s,
                                    struct secrets *secrets);
/* The demo server that is in this program. NULL if we cannot find ourselves. */
struct server_plan *server_plan_demo(const struct config *c);
struct server_plan *server_plan_hold(struct server_plan *plan);
void server_plan_drop(struct server_plan *plan);
/* What can change under a running server is from now on as in `newer`: filters and limits. */
void server_plan_adjust(struct server_plan *plan, struct server_plan *newer);
/* Were the same values filled in for ${NAME} in both? */
bool server_plan_same_secrets(const struct server_plan *a, const struct server_plan *b);

/* A new provider, not in any router yet; it borrows from the plan. */
struct mcp_provider *server_start(struct loop *loop, const struct server_plan *plan);
const char *server_alias(const struct server_plan *plan);
/* The program that it runs; NULL when it is a remote one. */
const struct stdio_upstream_options *server_program(const struct server_plan *plan);
const struct filter *server_filter(const struct server_plan *plan);
const struct policy *server_policy(const struct server_plan *plan);
/* Where what it offers is remembered; NULL when it is not. */
const char *server_memory(const struct server_plan *plan);
bool server_is_lazy(const struct server_plan *plan);
bool server_is_per_session(const struct server_plan *plan);

#endif
