/*
 * server: a provider as one entry of the configuration describes it.
 *
 * The same entry may be made into several providers: one shared by everybody, or one per session.
 */
#ifndef RIALTO_HUB_GRAPH_SERVER_H
#define RIALTO_HUB_GRAPH_SERVER_H

#include "config/config.h"
#include "config/secret.h"
#include "core/view.h"
#include "hub/signin/signin_settings.h"
#include "io/loop.h"
#include "mcp/server/http_signer.h"
#include "mcp/server/provider.h"
#include "mcp/server/stdio_upstream.h"

struct http_upstream_options;

/* The meaning of an entry, worked out once. Holders are counted: an entry may change or go while
 * instances made from the plan still run. */
struct server_plan;

/* With one holder. NULL, with the reason in the log, when a needed secret is missing, or when the
 * server would start this same configuration again. */
struct server_plan *server_plan_new(const struct config *c, const struct config_server *s,
                                    struct secrets *secrets);
/*
 * The same in a daemon, whose callers may bring what is missing: a plan is made even if values are
 * missing, and server_lacks says why no instance of it can be started. `missing` gets the names:
 * "A, B".
 */
struct server_plan *server_plan_for_callers(const struct config *c, const struct config_server *s,
                                            struct secrets *secrets, struct buf *missing);
/* The same for the caller whom the secrets are for (secrets_for_caller). */
struct server_plan *server_plan_for_caller(const struct config *c, const struct config_server *s,
                                           struct secrets *secrets);
/* The demo server that is in this program. NULL if the path of this program cannot be found. */
struct server_plan *server_plan_demo(const struct config *c);
struct server_plan *server_plan_hold(struct server_plan *plan);
void server_plan_drop(struct server_plan *plan);
/* Use the settings of `newer` that can change while a server runs: filters and limits. */
void server_plan_adjust(struct server_plan *plan, struct server_plan *newer);
/* Were the same values filled in for ${NAME} in both? */
bool server_plan_same_secrets(const struct server_plan *a, const struct server_plan *b);

/* A new provider, in no router yet; borrows from the plan. `signer` is for a remote server
 * (server_signin); or NULL. */
struct mcp_provider *server_start(struct loop *loop, const struct server_plan *plan,
                                  struct http_signer *signer);
/* How we sign in to the server; NULL: nobody signs in there. */
const struct signin_settings *server_signin(const struct server_plan *plan);
/* The token of the server's auth profile, for as long as the plan is held; NULL: it has none. */
struct http_signer *server_profile(const struct server_plan *plan, struct loop *loop);
const char *server_alias(const struct server_plan *plan);
/* The program that the server runs; NULL for a remote server. */
const struct stdio_upstream_options *server_program(const struct server_plan *plan);
/* How the server is reached by HTTP; NULL for a program, and for a WebSocket. */
const struct http_upstream_options *server_remote(const struct server_plan *plan);
/* Were values filled in for ${NAME}? Then other callers may have other values. */
bool server_fills(const struct server_plan *plan);
/* Why no instance may be started; NULL: one may. */
const char *server_lacks(const struct server_plan *plan);
const struct filter *server_filter(const struct server_plan *plan);
const struct policy *server_policy(const struct server_plan *plan);
/* The path where the catalog is remembered; NULL when it is not. */
const char *server_memory(const struct server_plan *plan);
bool server_is_lazy(const struct server_plan *plan);
bool server_is_per_session(const struct server_plan *plan);
/* Does each caller have a token of its own there? */
bool server_is_per_user(const struct server_plan *plan);
enum mcp_era server_era(const struct server_plan *plan);

/* What was learned of the server while it ran; remembered with its lists. */
enum {
    SERVER_ASKS = 1u << 0,      /* asks questions without saying on which call */
    SERVER_BOTH_ERAS = 1u << 1, /* also accepts agents of the initialize era */
};
unsigned server_traits(const struct server_plan *plan);
void server_set_traits(struct server_plan *plan, unsigned traits);

#endif
