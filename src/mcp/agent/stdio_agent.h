/*
 * stdio_agent: an agent on a line-framed duplex stream (our own stdin and stdout, a socket).
 *
 * The stream is one session. At EOF open requests may still be answered: the agent is closed when
 * the last answer is out, or after a short wait.
 */
#ifndef RIALTO_MCP_AGENT_STDIO_AGENT_H
#define RIALTO_MCP_AGENT_STDIO_AGENT_H

#include "io/stream.h"
#include "mcp/agent/modern.h"

struct stdio_agent;

/* `closed` is called once, from the loop; the agent is freed when `closed` returns. */
struct stdio_agent *stdio_agent_new(struct loop *loop, struct stream *stream,
                                    const struct mcp_host *host, size_t max_message,
                                    void (*closed)(void *arg), void *arg);
/* See duplex_hold_greeting. */
void stdio_agent_hold_greeting(struct stdio_agent *a);
void stdio_agent_release(struct stdio_agent *a);
/* See duplex_show. */
void stdio_agent_show(struct stdio_agent *a, struct view *view);
/* Take bytes that were read from the stream before this agent was made; `at_eof`: the stream has
 * ended, and will not report that again. */
void stdio_agent_feed(struct stdio_agent *a, struct span early, bool at_eof);
/* Another daemon takes over: new requests are kept for it from now on. */
void stdio_agent_detain(struct stdio_agent *a);
/* Returns the descriptor of the stream when all answers are sent; `state` gets what the other
 * daemon must know (members of an object), `early` what it must read first. -1: not yet. Call
 * stdio_agent_left as soon as the descriptor was passed on. */
int stdio_agent_hand_over(struct stdio_agent *a, struct buf *state, struct buf *early);
void stdio_agent_show_parked(const struct stdio_agent *a, modern_parked_fn *show, void *arg);
void stdio_agent_left(struct stdio_agent *a);
void stdio_agent_import(struct stdio_agent *a, struct span state);
/* Requests that are not answered yet. */
size_t stdio_agent_pending(const struct stdio_agent *a);
/* Close the agent once it has no request open. `reason` must live until then. */
void stdio_agent_leave(struct stdio_agent *a, const char *reason);
/* Answers that are queued are still written. */
void stdio_agent_close(struct stdio_agent *a, const char *reason);

#endif
