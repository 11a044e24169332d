/*
 * elicited: the elicitations by URL that were sent to one agent, so that the notification that such
 * an elicitation is complete reaches that agent and no other.
 */
#ifndef RIALTO_MCP_AGENT_ELICITED_H
#define RIALTO_MCP_AGENT_ELICITED_H

#include "base/map.h"

struct elicited {
    struct map ids;
};

void elicited_fini(struct elicited *e);
/* The agent is sent a request with these params (raw, may be empty), or this raw error object. */
void elicited_note_request(struct elicited *e, struct span params);
void elicited_note_error(struct elicited *e, struct span error);
/* Is the notification with these params for this agent? */
bool elicited_knows(const struct elicited *e, struct span params);

#endif
