/*
 * conductor_link: MCP servers of ACP components as providers on the core.
 *
 * The link of an mcp_provider that leads over an ACP channel, and the two kinds of agents before
 * it: one on a socket (conductor_join.c), and any number over HTTP (conductor_http.c). Both look at
 * a view with that one provider, so whatever the core can translate is translated; where there is
 * nothing to translate, one on a socket is not spoken for either.
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
    /* The channel is closed, by whichever side. */
    void (*closed)(void *arg);
};

/* --- everything the conductor's host needs of the core --- */
struct conductor_core;

struct conductor_core *conductor_core_new(struct loop *loop);
/*
 * Wait for the last provider and the last hold to be gone; `done` is called from the loop. They end
 * by themselves: all channels must have been closed, and the HTTP places ended.
 */
void conductor_core_stop(struct conductor_core *k, void (*done)(void *arg), void *arg);
void conductor_core_free(struct conductor_core *k);

/* Somebody who uses it is still closing. */
void conductor_core_hold(struct conductor_core *k);
void conductor_core_release(struct conductor_core *k);

/* An MCP client of the agent has connected to the server's port and has said `early` so far. Takes
 * the stream over. */
void conductor_join(struct conductor_core *core, struct acp_server *server, struct stream *stream,
                    struct span early);

/* One provider with a view of its own. */
struct lone;
struct lone *lone_new(struct conductor_core *k, const char *alias, struct acp_server *server,
                      struct acp_channel *channel, const struct channel_link_owner *owner);
struct provider *lone_provider(struct lone *l);
/*
 * Before it is started: the server is to hear of what its first client declares in its first
 * message, of whichever era that is. Others who come may be able to do less; they are not asked
 * then.
 */
void lone_declare(struct lone *l, struct span first);
/* The same, for one client that speaks as its server does: messages pass as they are. */
void lone_set_plain(struct lone *l);
/* For an agent that is to look at it. */
struct mcp_host lone_host(const struct lone *l);
struct loop *conductor_core_loop(struct conductor_core *k);
/* The provider is stopped and everything freed, later. */
void lone_end(struct lone *l);

#endif
