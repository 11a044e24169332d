/*
 * channel: one MCP connection to a component's server, carried by ACP messages.
 *
 * To its owner it is a pipe of whole MCP messages: what rides on what (M0 to M4), ids of the hops,
 * connecting and disconnecting are its own business. Its owner is the host, which makes it the pipe
 * of a provider.
 *
 * Nouns: channel_, acp_channel_.
 */
#ifndef RIALTO_ACP_CHANNEL_H
#define RIALTO_ACP_CHANNEL_H

#include "base/span.h"

struct acp_channel;
struct acp_message;
struct acp_server;
struct conductor;
struct hop;
struct pending;

struct channel_events {
    /* The server's dialect is known, messages may be sent. May come inside acp_channel_open. */
    void (*opened)(void *owner);
    /* A message from the server. `about` is the raw id of the request it belongs to, where the
     * dialect tells. The channel may be closed inside. */
    void (*message)(void *owner, struct span text, struct span about);
    /* The end, by the other side; the channel is gone when this returns. */
    void (*closed)(void *owner, const char *why);
};

struct acp_channel *acp_channel_new(struct acp_server *server, const struct channel_events *on,
                                    void *owner);
void acp_channel_rebind(struct acp_channel *ch, const struct channel_events *on, void *owner);
/* Connect. The id of a session that is being set up is waited for, by components that take it. */
void acp_channel_open(struct acp_channel *ch);
/* Does it carry only the stateless era of MCP? */
bool acp_channel_is_modern(const struct acp_channel *ch);
/* The params by which a client has greeted the server, for one that comes back without a greeting.
 * Empty if there are none, or if the server knows no connections and has not forgotten. */
void acp_channel_set_greeting(struct acp_channel *ch, struct span params);
struct span acp_channel_greeting(const struct acp_channel *ch);
/* One MCP message (a JSON object or batch) to the server. False: it is none. */
bool acp_channel_send(struct acp_channel *ch, struct span text);
/* Tell the server and free; no event comes any more. */
void acp_channel_close(struct acp_channel *ch);

const char *channel_server_name(const struct acp_server *s);

/* --- for the conductor's files --- */
/* A message of a server to its client that would go to the agent: true if it belonged here. */
bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m);
/* Is this a message to an MCP server of a component that is about to reach the client? Proxies pass
 * on what they do not know, so the component does not know this message. */
bool channel_is_astray(struct conductor *c, const struct acp_message *m);
/* A component takes back what it asked the MCP client. */
void channel_ask_cancelled(struct pending *p);
/* The id of the server's session is known now. */
void channel_session_known(struct acp_server *s);
/* The client has closed its end: a component that has not answered connect gets little more time.
 */
void channel_hurry_all(struct acp_server *s);
/* End all its channels, telling both sides. */
void channel_kill_all(struct acp_server *s, const char *why);

#endif
