/*
 * channel: one MCP connection to a component's server, carried by ACP messages.
 *
 * The owner sees a pipe of whole MCP messages; the channel takes care of the dialect (M0 to M4), of
 * request ids on the hops, and of connecting and disconnecting. The owner is the host
 * (hub/conductor_*), which makes the channel the pipe of a provider.
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
    /* The server's dialect is known and messages may be sent. May be called inside
     * acp_channel_open. */
    void (*opened)(void *owner);
    /* A message from the server. `about` is the raw id of the client's request that the message
     * belongs to, where the dialect says so. The owner may close the channel inside this call. */
    void (*message)(void *owner, struct span text, struct span about);
    /* The other side ended the connection; the channel is freed when this returns. */
    void (*closed)(void *owner, const char *why);
};

struct acp_channel *acp_channel_new(struct acp_server *server, const struct channel_events *on,
                                    void *owner);
void acp_channel_rebind(struct acp_channel *ch, const struct channel_events *on, void *owner);
/* Connect. For components that take the id of the session, this first waits for the id of a session
 * that is still being set up. */
void acp_channel_open(struct acp_channel *ch);
/* Does the channel carry only the stateless versions of MCP? */
bool acp_channel_is_modern(const struct acp_channel *ch);
/* The params of the initialize that a client sent to the server, kept for a client that reconnects
 * without sending initialize again. Empty if there are none, or if the server knows no connections
 * and therefore still remembers the first initialize. */
void acp_channel_set_greeting(struct acp_channel *ch, struct span params);
struct span acp_channel_greeting(const struct acp_channel *ch);
/*
 * Send one MCP message (a JSON object or batch) to the server. False: the text is not a message.
 * `own_id`: the raw id that the client gave a request, which servers of M0 are shown; may be empty.
 */
bool acp_channel_send(struct acp_channel *ch, struct span text, struct span own_id);
/* Tell the server and free the channel; no event follows. */
void acp_channel_close(struct acp_channel *ch);

const char *channel_server_name(const struct acp_server *s);

/* --- for the conductor's files --- */
/* A message of a server to its client, which would otherwise go to the agent. True: the message
 * belonged to a channel and was delivered. */
bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m);
/* Is this a message for a component's MCP server that is about to reach the client instead? Proxies
 * pass on methods they do not know, so the component did not know this method. */
bool channel_is_astray(struct conductor *c, const struct acp_message *m);
/* A component cancels a request that it sent to the MCP client. `params` are those of the
 * cancellation, with the component's id. */
void channel_withdraw_ask(struct pending *p, struct span params);
/* The id of the server's session is known now. */
void channel_session_known(struct acp_server *s);
/* The client has closed its end: a component that has not answered connect gets only a little more
 * time. */
void channel_hurry_all(struct acp_server *s);
/* End all channels of the server, telling both sides. */
void channel_kill_all(struct acp_server *s, const char *why);

#endif
