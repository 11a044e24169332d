/* One view's HTTP endpoint, WebSocket agents and HTTP+SSE agents, and which of them gets a request.
 * Called by hub/endpoints.c, hub/hub.c and hub/web_pages.c. */
#include "mcp/agent/endpoint.h"

#include "base/mem.h"
#include "mcp/agent/http_agent.h"
#include "mcp/agent/sse_agent.h"
#include "mcp/agent/ws_agent.h"

struct endpoint {
    struct http_agent *http;
    struct sse_agents *sse;
    struct ws_agents *ws;
    void (*closed)(void *arg);
    void *arg;
};

struct endpoint *endpoint_new(struct loop *loop, const struct mcp_host *host,
                              const struct endpoint_options *options, const char *home)
{
    struct endpoint *e = MEM_NEW(struct endpoint);

    e->http =
        http_agent_new(loop, host,
                       &(struct http_agent_options){options->max_sessions, options->session_ttl,
                                                    home ? options->inherited : NULL, home});
    e->sse = sse_agents_new(loop, host, options->max_sessions);
    e->ws = ws_agents_new(loop, host,
                          &(struct ws_agents_options){.max_agents = options->max_sessions,
                                                      .max_message = options->max_message});
    return e;
}

void endpoint_handle(struct endpoint *e, struct http_exchange *x, const struct http_request *req,
                     bool sse)
{
    if (sse)
        sse_agents_handle(e->sse, x, req);
    else if (ws_is_wanted(req))
        ws_agents_accept(e->ws, x, req);
    else
        http_agent_handle(e->http, x, req);
}

size_t endpoint_sessions(const struct endpoint *e)
{
    return http_agent_sessions(e->http) + sse_agents_count(e->sse) + ws_agents_count(e->ws);
}

bool endpoint_in_use(const struct endpoint *e)
{
    return http_agent_in_use(e->http) || sse_agents_count(e->sse) || ws_agents_count(e->ws);
}

void endpoint_show(const struct endpoint *e, inherited_show_fn *show, void *arg)
{
    http_agent_show(e->http, show, arg);
}

void endpoint_show_parked(struct endpoint *e, modern_parked_fn *show, void *arg)
{
    http_agent_show_parked(e->http, show, arg);
}

void endpoint_end_streams(struct endpoint *e)
{
    http_agent_end_streams(e->http);
}

void endpoint_pass(struct endpoint *e, uint64_t session, struct span message)
{
    http_agent_pass(e->http, session, message);
}

static void on_closed(void *arg)
{
    struct endpoint *e = arg;

    e->closed(e->arg);
    mem_free(e);
}

void endpoint_close(struct endpoint *e, const char *why, void (*closed)(void *arg), void *arg)
{
    e->closed = closed;
    e->arg = arg;
    http_agent_free(e->http);
    sse_agents_free(e->sse);
    ws_agents_close(e->ws, why, on_closed, e);
}
