/*
 * session_inside: a session as its two files see it: session.c (what its agent sends, and its life)
 * and session_calls.c (its calls, from their opening to their answers).
 */
#ifndef RIALTO_MCP_AGENT_SESSION_INSIDE_H
#define RIALTO_MCP_AGENT_SESSION_INSIDE_H

#include "mcp/agent/agent_asks.h"
#include "mcp/agent/elicited.h"
#include "mcp/agent/session.h"

struct mcp_session {
    struct peer peer;
    struct mcp_host host;
    void *lease; /* what host.enter gave us */
    const struct mcp_out *out;
    void *owner;
    struct call *standing;
    bool greeted; /* initialize was answered */
    bool bridge;  /* the agent is another bridge (circle.h) */
    char version[16];
    unsigned answers;
    int level; /* least log level wanted, index of mcp_levels; -1 = never said */
    struct agent_asks asks;
    struct elicited elicited;
    struct list pending;
    size_t n_pending;
};

static inline struct buf *session_begin(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    return s->out->begin(s->owner, reply, kind);
}

static inline void session_end(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    s->out->end(s->owner, reply, kind);
}

/* --- session_calls.c --- */
extern const struct peer_verbs session_verbs;
/* Open the standing call, if it is not. */
void session_attach(struct mcp_session *s);
/* Open a call for this request of the agent: `request` has op, name and the name's place, the rest
 * is filled in here. */
void session_open(struct mcp_session *s, const struct mcp_message *m, void *reply,
                  struct request request);
/* Tell the view's only provider what the agent tells. */
void session_tell(struct mcp_session *s, const struct mcp_message *m);
/* The agent takes back the request with this raw id. */
void session_cancel(struct mcp_session *s, struct span id);
/* The agent answers one of our asks. */
void session_answered(struct mcp_session *s, const struct mcp_message *m);

#endif
