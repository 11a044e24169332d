/*
 * http_agent: MCP over Streamable HTTP at one path, for one view.
 *
 * POST carries messages in and their answers out (JSON, or an SSE stream as soon as a call sends
 * more than its answer), GET is the standing stream of a session, DELETE ends the session. An
 * http_agent owns its sessions. Requests of the stateless era come to the same path by POST, and
 * each is recognised by its content; they have no session.
 */
#ifndef RIALTO_MCP_AGENT_HTTP_AGENT_H
#define RIALTO_MCP_AGENT_HTTP_AGENT_H

#include "io/http_server.h"
#include "mcp/agent/inherited.h"
#include "mcp/agent/modern.h"

struct http_agent;

struct http_agent_options {
    size_t max_sessions;
    uint64_t session_ttl; /* ms without a request or an open stream */
    /* Sessions of the daemon before us, and the home (inherited.h) of those at this path; both may
     * be NULL. */
    struct inherited *inherited;
    const char *home;
};

struct http_agent *http_agent_new(struct loop *loop, const struct mcp_host *host,
                                  const struct http_agent_options *options);
/* Ends all sessions; their exchanges are answered or closed. */
void http_agent_free(struct http_agent *e);
void http_agent_handle(struct http_agent *e, struct http_exchange *x,
                       const struct http_request *request);
size_t http_agent_sessions(const struct http_agent *e);
/* Is there a session, or an open request of the stateless era? */
bool http_agent_in_use(const struct http_agent *e);

/* --- another daemon takes over from us --- */
/* Call `show` for each session, with the state that the other daemon needs (inherited.h). */
void http_agent_show(const struct http_agent *e, inherited_show_fn *show, void *arg);
void http_agent_show_parked(struct http_agent *e, modern_parked_fn *show, void *arg);
/* End the standing streams: their clients reconnect, and reach the other daemon. */
void http_agent_end_streams(struct http_agent *e);
/* Take a message that reached the other daemon but is for a call that is open here. */
void http_agent_pass(struct http_agent *e, uint64_t session, struct span message);

#endif
