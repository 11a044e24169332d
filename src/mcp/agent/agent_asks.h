/*
 * agent_asks: our open requests to an agent, one for each ask of a provider.
 *
 * An entry has the call that asked (by handle: the call may end before the agent answers) and the
 * provider's key of the ask.
 */
#ifndef RIALTO_MCP_AGENT_AGENT_ASKS_H
#define RIALTO_MCP_AGENT_AGENT_ASKS_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "core/peer.h"

struct agent_ask {
    struct list node;
    uint64_t id; /* of our request */
    uint64_t call;
    size_t key_n;
    char key[];
};

struct agent_asks {
    uint64_t last_id;
    struct idmap by_id;
    struct list all;
};

void agent_asks_init(struct agent_asks *as);
void agent_asks_fini(struct agent_asks *as);
/* Returns the id for our request to the agent. */
uint64_t agent_asks_add(struct agent_asks *as, uint64_t call, struct span key);
/* The ask that a response with this raw id answers, now the caller's to free; NULL if there is
 * none. */
struct agent_ask *agent_asks_take(struct agent_asks *as, struct span raw_id);
bool agent_asks_knows(const struct agent_asks *as, struct span raw_id);
/* Forget one ask of a call that is over; returns the id of our request for it, or 0 if none is
 * left. */
uint64_t agent_asks_drop(struct agent_asks *as, uint64_t call);
/* Forget the ask with this key; returns the id of our request for it, or 0 if there is none. */
uint64_t agent_asks_forget(struct agent_asks *as, uint64_t call, struct span key);
/* Append the notification that our request with this id need not be answered any more. */
void agent_asks_put_cancelled(struct buf *out, uint64_t id);
/* The same with the provider's own params, in which our id replaces the provider's at `id_at`. */
void agent_asks_pass_cancelled(struct buf *out, uint64_t id, struct span params, struct cut id_at);

#endif
