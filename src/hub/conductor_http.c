/* The HTTP server of a conductor for MCP servers: a path and a token for each server, and requests
 * held until the server has started. Called by cmd/conductor.c. */
#include "hub/conductor_http.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/http_server.h"
#include "mcp/agent/http_agent.h"

#include <stdio.h>

enum {
    MAX_BODY = 32 * 1024 * 1024,
    HEAD_MS = 10 * 1000,
    BODY_MS = 60 * 1000,
    IDLE_MS = 300 * 1000,
    MAX_CONNECTIONS = 1024,
    MAX_SESSIONS = 64,
    SESSION_TTL_MS = 24 * 3600 * 1000,
    START_MS = 20 * 1000,
};

struct conductor_http {
    struct loop *loop;
    struct conductor_core *core;
    struct http_server *server; /* NULL until the first place is opened */
    struct list places;
    bool closing;
};

/* A request that waits for its MCP server to start. */
struct held_request {
    struct list node;
    struct http_exchange *x;
    const struct http_request *req;
};

struct place_http {
    struct list node;
    struct conductor_http *http;
    char id[ID_TOKEN_SIZE], token[ID_TOKEN_SIZE];
    struct lone *lone; /* the server's provider; NULL: the endpoint shows a view of the host */
    struct http_agent *endpoint;
    struct list held;
    struct observer starting; /* while requests are held: waits for the provider, up to `limit` */
    struct timer limit;
};

/* --- waiting for the server --- */

static void held_gone(void *owner)
{
    struct held_request *h = owner;

    list_remove(&h->node);
    mem_free(h);
}

static void let_go(struct place_http *p, const char *why)
{
    observer_remove(&p->starting);
    timer_clear(loop_timers(p->http->loop), &p->limit);
    while (!list_empty(&p->held)) {
        struct held_request *h = LIST_FIRST(&p->held, struct held_request, node);
        struct http_exchange *x = h->x;
        const struct http_request *req = h->req;
        http_exchange_on_gone(x, NULL, NULL);
        held_gone(h);
        if (why)
            http_refuse(x, 503, why, NULL);
        else
            http_agent_handle(p->endpoint, x, req);
    }
}

static void on_starting(struct observer *o)
{
    struct place_http *p = CONTAINER_OF(o, struct place_http, starting);
    const struct provider *provider = lone_provider(p->lone);

    if (provider->state == PROVIDER_READY) {
        let_go(p, NULL);
    } else if (provider->why && provider->state != PROVIDER_STARTING) {
        BUF_SCOPED why = {0}; /* the provider may be stopped by what is let go */
        buf_str(&why, provider->why);
        let_go(p, buf_cstr(&why));
    }
}

static void on_limit(struct timer *t)
{
    let_go(CONTAINER_OF(t, struct place_http, limit), "the server did not start in time");
}

static void hold(struct place_http *p, struct http_exchange *x, const struct http_request *req)
{
    struct held_request *h = MEM_NEW(struct held_request);

    h->x = x;
    h->req = req;
    list_append(&p->held, &h->node);
    http_exchange_on_gone(x, held_gone, h);
    if (timer_is_set(&p->limit))
        return;
    lone_declare(p->lone, req->body);
    provider_want(lone_provider(p->lone));
    observers_add(router_observers(lone_provider(p->lone)->router), &p->starting);
    timer_set(loop_timers(p->http->loop), &p->limit, START_MS);
}

/* --- requests --- */

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct conductor_http *h = owner;
    struct place_http *found = NULL;

    LIST_EACH (&h->places, it) {
        struct place_http *p = LIST_ENTRY(it, struct place_http, node);
        if (span_starts(req->path, SPAN("/mcp/")) && span_is(span_from(req->path, 5), p->id))
            found = p;
    }
    if (!http_server_is_meant(h->server, req))
        http_refuse(x, 403, "Host or Origin is not of this address",
                    "connect to the URL of the server's entry, and send no foreign Origin");
    else if (!found)
        http_refuse(x, 404, "no such server", "its session may have ended");
    else if (!span_eq_secret(http_bearer(req), span_str(found->token)))
        http_refuse(x, 401, "the bearer token of the server's entry is missing or wrong",
                    "send the headers that the entry has");
    else if (found->lone && lone_provider(found->lone)->state != PROVIDER_READY)
        hold(found, x, req);
    else
        http_agent_handle(found->endpoint, x, req);
}

/* --- places --- */

static bool listens(struct conductor_http *h)
{
    const struct http_server_options options = {.max_body = MAX_BODY,
                                                .head_timeout = HEAD_MS,
                                                .body_timeout = BODY_MS,
                                                .idle_timeout = IDLE_MS,
                                                .max_connections = MAX_CONNECTIONS};
    struct err err;

    if (h->server)
        return true;
    h->server = http_server_new(h->loop, &options, on_request, h);
    if (http_server_listen(h->server, "127.0.0.1:0", &err) == 0)
        return true;
    log_error("conductor", "%s", err.text);
    return false;
}

static struct place_http *place_new(struct conductor_http *h, const struct mcp_host *host,
                                    struct acp_http_place *place)
{
    const struct http_agent_options options = {.max_sessions = MAX_SESSIONS,
                                               .session_ttl = SESSION_TTL_MS};
    struct place_http *p = MEM_NEW(struct place_http);

    p->http = h;
    p->starting.changed = on_starting;
    p->limit.fire = on_limit;
    list_init(&p->held);
    id_token(p->id);
    id_token(p->token);
    p->endpoint = http_agent_new(h->loop, host, &options);
    list_append(&h->places, &p->node);
    snprintf(place->url, sizeof place->url, "http://%s/mcp/%s", http_server_address(h->server, 0),
             p->id);
    snprintf(place->token, sizeof place->token, "%s", p->token);
    return p;
}

void *conductor_http_open(struct conductor_http *h, struct acp_server *server,
                          struct acp_http_place *place)
{
    if (h->closing || !listens(h))
        return NULL;
    struct lone *lone = lone_new(h->core, channel_server_name(server), server, NULL,
                                 &(struct channel_link_owner){0});
    const struct mcp_host host = lone_host(lone);
    struct place_http *p = place_new(h, &host, place);
    p->lone = lone;
    return p;
}

void *conductor_http_open_host(struct conductor_http *h, const struct mcp_host *host,
                               struct acp_http_place *place)
{
    return h->closing || !listens(h) ? NULL : place_new(h, host, place);
}

void conductor_http_end(void *place)
{
    struct place_http *p = place;

    let_go(p, "the session has ended");
    http_agent_free(p->endpoint);
    if (p->lone)
        lone_end(p->lone);
    list_remove(&p->node);
    mem_free(p);
}

/* --- life --- */

struct conductor_http *conductor_http_new(struct loop *loop, struct conductor_core *core)
{
    struct conductor_http *h = MEM_NEW(struct conductor_http);

    h->loop = loop;
    h->core = core;
    list_init(&h->places);
    return h;
}

void conductor_http_close(struct conductor_http *h, void (*done)(void *arg), void *arg)
{
    h->closing = true;
    LIST_EACH_SAFE (&h->places, it)
        conductor_http_end(LIST_ENTRY(it, struct place_http, node));
    if (h->server)
        http_server_close(h->server, done, arg);
    else
        done(arg);
    h->server = NULL;
}

void conductor_http_free(struct conductor_http *h)
{
    mem_free(h);
}
