/* One view's HTTP endpoint, WebSocket agents and HTTP+SSE agents, and which of them gets a request.
 * Called by hub/entrances.c, hub/browser_desk.c and cmd/serve.c. */
#include "mcp/agent/entrance.h"

#include "base/mem.h"
#include "mcp/agent/http_endpoint.h"
#include "mcp/agent/sse_agent.h"
#include "mcp/agent/ws_agent.h"

struct entrance {
    struct http_endpoint *http;
    struct sse_agents *sse;
    struct ws_agents *ws;
    void (*closed)(void *arg);
    void *arg;
};

struct entrance *entrance_new(struct loop *loop, const struct mcp_host *host,
                              const struct entrance_options *options)
{
    struct entrance *e = MEM_NEW(struct entrance);

    e->http = http_endpoint_new(
        loop, host, &(struct http_endpoint_options){options->max_sessions, options->session_ttl});
    e->sse = sse_agents_new(loop, host, options->max_sessions);
    e->ws = ws_agents_new(loop, host,
                          &(struct ws_agents_options){.max_agents = options->max_sessions,
                                                      .max_message = options->max_message});
    return e;
}

void entrance_handle(struct entrance *e, struct http_exchange *x, const struct http_request *req,
                     bool sse)
{
    if (sse)
        sse_agents_handle(e->sse, x, req);
    else if (ws_is_wanted(req))
        ws_agents_accept(e->ws, x, req);
    else
        http_endpoint_handle(e->http, x, req);
}

size_t entrance_sessions(const struct entrance *e)
{
    return http_endpoint_sessions(e->http) + sse_agents_count(e->sse) + ws_agents_count(e->ws);
}

static void on_closed(void *arg)
{
    struct entrance *e = arg;

    e->closed(e->arg);
    mem_free(e);
}

void entrance_close(struct entrance *e, void (*closed)(void *arg), void *arg)
{
    e->closed = closed;
    e->arg = arg;
    http_endpoint_free(e->http);
    sse_agents_free(e->sse);
    ws_agents_close(e->ws, on_closed, e);
}
