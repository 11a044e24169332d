/*
 * conductor_link: MCP servers of ACP components as providers on the core.
 *
 * The link of an mcp_provider that leads over an ACP channel, and the two kinds of agents that use
 * it: one agent on a socket (conductor_join.c), and any number of agents over HTTP
 * (conductor_http.c). Both see a view with that one provider, so the core translates between eras;
 * where there is nothing to translate, the messages of an agent on a socket pass as they are.
 *
 * Nouns: lone_, conductor_core_.
 */
#ifndef RIALTO_HUB_CONDUCTOR_LINK_H
#define RIALTO_HUB_CONDUCTOR_LINK_H

#include "acp/conductor.h"
#include "core/router.h"
#include "mcp/agent/session.h"
#include "mcp/server/provider.h"

struct channel_link;

struct channel_link_owner {
    void *arg;
    /* The channel is closed, by either side. */
    void (*closed)(void *arg);
};

/* --- the router that the conductor's MCP servers share --- */
struct conductor_core;

struct conductor_core *conductor_core_new(struct loop *loop);
/*
 * Wait until the last provider and the last hold are gone; `done` is called from the loop.
 * Providers end by themselves, once all channels are closed and the HTTP places ended.
 */
void conductor_core_stop(struct conductor_core *k, void (*done)(void *arg), void *arg);
void conductor_core_free(struct conductor_core *k);

/* Hold the core while a user of it is still closing. */
void conductor_core_hold(struct conductor_core *k);
void conductor_core_release(struct conductor_core *k);

/* An MCP client of the agent has connected to the server's port and has sent `early` so far. Takes
 * the stream over. */
void conductor_join(struct conductor_core *core, struct acp_server *server, struct stream *stream,
                    struct span early);

/* One provider with a view of its own. */
struct lone;
struct lone *lone_new(struct conductor_core *k, const char *alias, struct acp_server *server,
                      struct acp_channel *channel, const struct channel_link_owner *owner);
struct provider *lone_provider(struct lone *l);
/*
 * Before the provider is started: tell the server the capabilities that the first client declares
 * in its first message, of either era. Later clients may be able to answer less; those are not
 * asked then.
 */
void lone_declare(struct lone *l, struct span first);
/* Before the provider is started, for a single client of the same era as the server: messages pass
 * as they are. */
void lone_set_plain(struct lone *l);
/* The host for an agent that is to see this provider. */
struct mcp_host lone_host(const struct lone *l);
struct loop *conductor_core_loop(struct conductor_core *k);
/* Stop the provider; everything is freed later, from the loop. */
void lone_end(struct lone *l);

#endif
