/*
 * passage: an MCP client as a consumer whose messages pass to its one server unchanged.
 *
 * Where a client and its server speak the same era, one to one, there is nothing to translate:
 * every request becomes a call of the one provider (mcp_provider_set_plain), every notification is
 * told to that provider, and the answers go out as they are. So methods that we do not know pass,
 * and client and server see each other's own names; the core still makes sure that each call ends
 * once and that ids stay on their hop.
 */
#ifndef RIALTO_MCP_AGENT_PASSAGE_H
#define RIALTO_MCP_AGENT_PASSAGE_H

#include "mcp/agent/session.h"

struct passage;

/* All that goes out has `reply` NULL: a passage is for pipes that carry everything in one stream.
 */
struct passage *passage_new(const struct mcp_host *host, const struct mcp_out *out, void *owner);
void passage_free(struct passage *p);
/* One skimmed message (no batch) from the client. */
void passage_receive(struct passage *p, const struct mcp_message *m);
/* Requests that are not answered yet. */
size_t passage_pending(const struct passage *p);

#endif
