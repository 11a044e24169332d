/*
 * conductor_link: MCP servers of ACP components as providers on the core.
 *
 * The link of an mcp_provider that leads over an ACP channel, and the two kinds of agents before
 * it: one on a socket whose era of MCP is not the server's, and any number over HTTP. Both look at
 * a view with that one provider, so whatever the core can translate is translated.
 */
#ifndef RIALTO_CMD_CONDUCTOR_LINK_H
#define RIALTO_CMD_CONDUCTOR_LINK_H

#include "acp/conductor.h"
#include "core/router.h"
#include "mcp/provider.h"

struct channel_link;

struct channel_link_owner {
    void *arg;
    /* The channel is closed, by whichever side; the provider hears of it next. */
    void (*closed)(void *arg);
};

/*
 * A provider behind a channel. With `channel` (open already) it lives as long as that; without, it
 * opens a channel of its own to `server` each time it is started.
 */
struct mcp_provider *channel_link_new(struct loop *loop, const char *alias,
                                      struct acp_server *server, struct acp_channel *channel,
                                      const struct channel_link_owner *owner);

/* --- everything the conductor's host needs of the core --- */
struct conductor_core;

struct conductor_core *conductor_core_new(struct loop *loop);
/*
 * Wait for the last provider to be gone; `done` is called from the loop. They end by themselves:
 * all channels must have been closed, and the HTTP places ended.
 */
void conductor_core_stop(struct conductor_core *k, void (*done)(void *arg), void *arg);
void conductor_core_free(struct conductor_core *k);

/* The host's hook of the same name (acp/conductor.h). */
void conductor_translate(void *core, struct acp_channel *channel, struct stream *stream,
                         struct span early, bool at_eof);

/* One provider with a view of its own. `gone` is called when it is stopped and freed. */
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
struct view *lone_view(struct lone *l);
struct router *conductor_core_router(struct conductor_core *k);
struct loop *conductor_core_loop(struct conductor_core *k);
/* The provider is stopped and everything freed, later. */
void lone_end(struct lone *l);

#endif
