/*
 * modern: an agent of the stateless era (2026-07-28) as a consumer.
 *
 * Every request stands for itself: it carries the protocol version, the client's capabilities and
 * the log level. A provider's question during a call becomes an `input_required` result; the call
 * is parked meanwhile, and the agent's retry, which presents the sealed state, resumes the call. On
 * HTTP one modern_agent serves all requests of an endpoint; on stdio and WebSocket there is one for
 * each connection.
 */
#ifndef RIALTO_MCP_AGENT_MODERN_H
#define RIALTO_MCP_AGENT_MODERN_H

#include "mcp/agent/session.h"

struct modern_agent;

struct modern_agent *modern_agent_new(const struct mcp_host *host, const struct mcp_out *out,
                                      void *owner);
void modern_agent_free(struct modern_agent *a);

/* What is wrong with a request, found before its method is handled. */
struct modern_fault {
    int status; /* HTTP status */
    int code;
    const char *text;
    const char *data; /* raw JSON or NULL; owned by the caller's buffer */
};

/* Does the message claim to be of this era? (It has the version in its `_meta`.) */
bool modern_claims(const struct mcp_message *m);
/* Check the version and the capabilities in `_meta`. `scratch` holds texts that `fault` points to.
 * True when all is fine. */
bool modern_check(const struct mcp_message *m, struct modern_fault *fault, struct buf *scratch);
bool modern_knows_method(const struct mcp_host *host, const struct mcp_message *m);

/*
 * One checked request, or a notification. `principal` says who asks: a parked call can be resumed
 * only by the principal that opened it.
 */
void modern_agent_receive(struct modern_agent *a, const struct mcp_message *m, void *reply,
                          struct span principal);
/* The agent closed the stream of this reply, which cancels the request. */
void modern_agent_cancel(struct modern_agent *a, void *reply);
size_t modern_agent_pending(const struct modern_agent *a);

/* Another daemon takes over. Call `show` for each parked call, with the members that the other
 * daemon needs (inherited.h; the provider's side adds id and pid). If `show` returns true, the
 * other daemon has the call now. */
typedef bool modern_parked_fn(void *arg, struct call *call, struct span members);
void modern_agent_show_parked(struct modern_agent *a, modern_parked_fn *show, void *arg);
/* How many requests the other daemon has not taken over, listens not counted; and the messages of
 * the listens, one per line. */
size_t modern_agent_calls(const struct modern_agent *a);
void modern_agent_put_listens(const struct modern_agent *a, struct buf *out);

/* Append the error response for a fault. */
void modern_put_fault(struct buf *out, struct span id, const struct modern_fault *fault);

#endif
