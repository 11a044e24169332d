/*
 * session: an MCP agent of the initialize era as a consumer, on any transport.
 *
 * The transport (own stdio, Streamable HTTP, SSE, WebSocket) skims each message once, hands the
 * message to mcp_session_receive together with the transport's handle of the request (`reply`), and
 * is told where each outgoing message belongs: to that request's stream or to none. The session
 * handles initialize, keeps ids as raw text, restores progress tokens, and sends asks as requests
 * of its own.
 *
 * A session ends with mcp_session_free: calls it opened are cancelled and their replies abandoned.
 *
 * Nouns: mcp_session_, mcp_host_.
 */
#ifndef RIALTO_MCP_AGENT_SESSION_H
#define RIALTO_MCP_AGENT_SESSION_H

#include "core/router.h"
#include "mcp/agent/roll.h"
#include "mcp/outcome.h"

struct inherited;
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
};

/* The part of the bridge that a session uses: view, limits, and functions to call. */
struct mcp_host {
    struct router *router;
    struct view *view;
    struct view *legacy_view; /* what agents of the initialize era see; NULL: the same */
    bool plain; /* the view's one provider is plain as well (passage.h); on pipes only */
    /* A raw serverInfo to show in place of our own, by a view that has tools alone; may be NULL. */
    const char *server_info;
    enum mcp_errors errors;
    bool redacts; /* a person reads what is sent: secrets are hidden. The stateless era only */
    /* The principal of all agents here, when known (auth.tokens); else NULL. */
    struct principal *principal;
    const char *view_name; /* of the token's view; may be NULL */
    struct roll *roll;     /* where agents are entered; NULL: nowhere */
    const char *endpoint;  /* the address of the agents here, for records; may be NULL */
    /* Calls of the daemon before us, and what those of the agents here are kept under; may be
     * NULL. */
    struct inherited *inherited;
    const char *home;
    size_t max_batch;   /* messages in a batch */
    size_t max_answers; /* bytes of answers to a batch, before its other requests are refused */
    void *arg;          /* of the functions below; each may be NULL */
    /* Called when an agent has introduced itself; may start lazy providers. */
    void (*wake)(void *arg);
    /*
     * A view of the session's own in place of `shared`, for servers that want an instance per
     * session; NULL if the session needs none. `answers` is what its agent can be asked,
     * `principal` the owner of its token or NULL.
     */
    struct view *(*enter)(void *arg, struct view *shared, struct principal *principal,
                          unsigned answers, void **lease);
    void (*leave)(void *arg, void *lease);
    /* A notification on a pipe, before anything else looks at it; true if it was for the host, from
     * the program that carries the agent's lines. */
    bool (*told)(void *arg, const struct mcp_message *m);
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

/* --- a daemon that another takes over from --- */
/* What another daemon must know of a session that has introduced itself: members of an object. */
void mcp_session_export(const struct mcp_session *s, struct buf *out);
/* Go on as the session with these members did. Calls that it had open are not part of it. */
void mcp_session_import(struct mcp_session *s, struct span state);
/* The same in both daemons. */
uint64_t mcp_session_number(const struct mcp_session *s);
/* Is the message about a call or a question that this session knows nothing of? */
bool mcp_session_is_stray(const struct mcp_session *s, const struct mcp_message *m);

/* Is this a method that MCP does not define, and has the view one server that may know it? */
bool mcp_host_passes(const struct mcp_host *host, const struct mcp_message *m);
/* Append an error response for text that is no message at all. */
void mcp_session_put_parse_error(struct buf *out, int code);

#endif
