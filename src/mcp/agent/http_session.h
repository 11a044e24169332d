/*
 * http_session: one agent's session over Streamable HTTP: its waiting POSTs and its GET stream.
 *
 * A POST is answered with plain JSON, or with an SSE stream if the call takes long or sends
 * messages before its result. Messages that belong to no request go to the GET stream, or wait
 * until there is one. Events are kept for a while (event_store), so that a client that was cut can
 * resume any of its streams; the answer of a call is found there too, if its POST had become a
 * stream before the client was cut.
 */
#ifndef RIALTO_MCP_AGENT_HTTP_SESSION_H
#define RIALTO_MCP_AGENT_HTTP_SESSION_H

#include "io/http_server.h"
#include "mcp/agent/session.h"

struct http_session;
struct post;

/* While the session has no open call and no stream it is in the list `idle`, the last used at the
 * end. */
struct http_session *http_session_new(struct loop *loop, const struct mcp_host *host,
                                      const char *id, struct list *idle);
/* The session that has been idle for the longest time; NULL when all are in use. */
struct http_session *http_session_oldest(const struct list *idle);
/* `fn` is called when the operator ends the session; `fn` must free the session. */
void http_session_on_hang_up(struct http_session *hs,
                             void (*fn)(void *arg, struct http_session *hs), void *arg);
/* Open calls are cancelled, streams ended. */
void http_session_free(struct http_session *hs);
const char *http_session_id(const struct http_session *hs);
struct mcp_session *http_session_mcp(struct http_session *hs);

/*
 * The reply handle for a POST with `requests` requests; lives until each of them is answered.
 * `hello`: the answer carries the session id.
 */
struct post *http_session_post(struct http_session *hs, struct http_exchange *x, bool hello,
                               bool batch, size_t requests);
/* Are the answers to this batch as large as they may be? Then the other requests of the batch are
 * refused. */
bool http_session_post_is_full(const struct post *p);
void http_session_post_refuse(struct post *p, struct span id);
/* A GET: becomes the session's stream; an older one is ended. */
void http_session_listen(struct http_session *hs, struct http_exchange *x);
/*
 * A GET with Last-Event-ID: sends the later events of that stream. Then the stream goes on, or ends
 * if it is the stream of a POST that has been answered. 204: nothing is left of a POST's stream.
 * False: the id is not one of this session, and the exchange is not answered.
 */
MUST_CHECK bool http_session_resume(struct http_session *hs, struct http_exchange *x,
                                    struct span last_id);

/* --- another daemon takes over from us --- */
/* End the GET stream: its client reconnects, and reaches the other daemon. */
void http_session_end_stream(struct http_session *hs);
/* Append what the other daemon must know: a JSON object. False: the session is not initialized, so
 * there is nothing to hand over. */
MUST_CHECK bool http_session_export(const struct http_session *hs, struct buf *out);
/* Continue, in this new session, the one that http_session_export wrote. */
void http_session_import(struct http_session *hs, struct span state);

/* The client has shown a sign of life. */
void http_session_touch(struct http_session *hs);
/* ms since the last sign of life; 0 while a call or a stream is open. */
uint64_t http_session_idle(const struct http_session *hs);
void http_session_keep_alive(struct http_session *hs);

#endif
