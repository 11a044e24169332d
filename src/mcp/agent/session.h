/*
 * session: an MCP agent of the initialize era as a consumer, on any transport.
 *
 * The transport (stdio, Streamable HTTP, SSE, WebSocket) skims each message once, hands the message
 * to mcp_session_receive together with the transport's handle of the request (`reply`), and is told
 * where each outgoing message belongs: to that request's stream or to none. The session handles
 * initialize, keeps ids as raw text, restores progress tokens, and sends asks as requests of its
 * own.
 *
 * A session ends with mcp_session_free: calls it opened are cancelled and their replies abandoned.
 *
 * Nouns: mcp_session_.
 */
#ifndef RIALTO_MCP_AGENT_SESSION_H
#define RIALTO_MCP_AGENT_SESSION_H

#include "mcp/agent/host.h"

struct mcp_session;

enum mcp_out_kind {
    MCP_OUT_FINAL,     /* the response; the reply is over afterwards */
    MCP_OUT_RELATED,   /* an event or ask of the call behind `reply`: goes on its stream */
    MCP_OUT_UNRELATED, /* belongs to no request; `reply` is NULL */
};

/*
 * Outgoing messages are appended to the buffer that `begin` returns; `end` sends them. On pipes
 * that carry everything in one stream `reply` may always be NULL.
 */
struct mcp_out {
    struct buf *(*begin)(void *owner, void *reply, enum mcp_out_kind kind);
    void (*end)(void *owner, void *reply, enum mcp_out_kind kind);
    /* The request was cancelled: its reply ends without a message. */
    void (*abandon)(void *owner, void *reply);
    /* The HTTP status of the final answer, before its `begin`; 200 unless set. May be NULL. */
    void (*set_status)(void *owner, void *reply, int status);
    const char *way;              /* for operators: "http", "ws"; or NULL */
    void (*hang_up)(void *owner); /* the operator ends the session, which is freed; or NULL */
    /* Can no message about this request reach the agent? NULL: one always can. */
    bool (*is_cut_off)(void *owner, void *reply);
};

struct mcp_session *mcp_session_new(const struct mcp_host *host, const struct mcp_out *out,
                                    void *owner);
void mcp_session_free(struct mcp_session *s);

/* One skimmed message (no batch) from the agent. `reply` is only used for a request. */
void mcp_session_receive(struct mcp_session *s, const struct mcp_message *m, void *reply);
/* Has the agent sent initialize? */
bool mcp_session_ready(const struct mcp_session *s);
/* The revision agreed on; empty before initialize. */
struct span mcp_session_version(const struct mcp_session *s);
/* Calls open now. */
size_t mcp_session_pending(const struct mcp_session *s);

/* --- another daemon takes over from us --- */
/* What another daemon must know of a session that has introduced itself: members of an object. */
void mcp_session_export(const struct mcp_session *s, struct buf *out);
/* Continue the session that wrote these members. Its open calls are not among them. */
void mcp_session_import(struct mcp_session *s, struct span state);
/* The number of the session, which is the same in both daemons. */
uint64_t mcp_session_number(const struct mcp_session *s);
/* Is the message about a call or a question that this session knows nothing of? */
bool mcp_session_is_stray(const struct mcp_session *s, const struct mcp_message *m);

#endif
