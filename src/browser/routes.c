/* HTTP routes for pages and agents: event streams, POSTs, WebSockets, health, the list of sessions,
 * and the check of the pairing token. Called by hub/web_pages.c for each request. */
#include "browser/routes.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/files.h"
#include "browser/pipe.h"
#include "browser/relay.h"
#include "browser/remotes.h"
#include "browser/sender.h"
#include "wire/json.h"
#include "wire/json_out.h"

#define SSE_KEY    "sse"    /* the key of a page that comes by SSE without a client id */
#define REMOTE_KEY "remote" /* the key of a page that came by /register */

/* A request, and the facts about it that handlers need. */
struct web_request {
    struct browser *browser;
    struct http_exchange *x;
    const struct http_request *req;
    struct span session, client, type;
    bool in_query; /* the session is named in the query, not in a header */
    const struct caller *caller;
    bool offers_only; /* from a site or extension that may offer tools but not call any */
    bool anonymous;   /* it shows no token; see is_let_in */
    struct buf scratch[4];
};

/* Like http_refuse, but without the line end, which clients of BTCP do not expect. */
static void refuse(struct http_exchange *x, int status, const char *error, const char *hint)
{
    http_refuse_put_body(http_respond_begin(x, status, "application/json", SPAN_EMPTY), error,
                         hint);
    http_respond_end(x);
}

static struct span origin_of(const struct http_request *req)
{
    return http_header(req, "origin");
}

/* --- health and sessions --- */

static void on_health(struct web_request *w)
{
    struct browser *b = w->browser;
    struct buf *out = http_respond_begin(w->x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_str(out, "status", "ok");
    json_out_str(out, "service", "rialto");
    json_out_number(out, "sessions", b->sessions.n);
    json_out_number(out, "clients", b->n_pipes);
    json_out_number(out, "uptime", (loop_now(b->loop) - b->started_at) / 1000);
    buf_char(out, '}');
    http_respond_end(w->x);
}

static void on_sessions(struct web_request *w)
{
    struct buf *out = http_respond_begin(w->x, 200, "application/json", SPAN_EMPTY);

    buf_str(out, "{\"sessions\":");
    browser_put_sessions(out, w->browser, SESSION_PAGES);
    buf_char(out, '}');
    http_respond_end(w->x);
}

/* --- event streams --- */

/* Stores in the connection who opened it. */
static void note_caller(struct pipe *p, const struct web_request *w)
{
    p->offers_only = w->offers_only;
    p->anonymous = w->anonymous;
    p->principal = principal_hold(w->caller->principal);
}

static struct pipe *open_stream(struct web_request *w, const struct dialect *d)
{
    struct pipe *p = pipe_new(w->browser, d, origin_of(w->req));

    note_caller(p, w);
    pipe_take_stream(p, w->x);
    return p;
}

static void refuse_agent(struct web_request *w)
{
    refuse(w->x, 403, "pages of this site may offer tools, and use nobody's",
           "browser.origins lets sites in for that alone");
}

static void refuse_page(struct web_request *w)
{
    refuse(w->x, 400, "this session cannot be opened",
           "its name must be 1 to 128 of letters, digits and . _ : -; there may also be too many "
           "sessions, or too many pages in this one");
}

/* The page with this key in the session, both made if missing; NULL: the request was refused. */
static struct page *enter(struct web_request *w, struct span session, struct span key,
                          const struct dialect *d)
{
    struct browser_session *s = browser_make_session(w->browser, session);
    struct page *p = s ? page_enter(s, key, origin_of(w->req), d) : NULL;

    if (!p)
        refuse_page(w);
    return p;
}

static void say_connected(struct pipe *pipe, struct span client, struct span session,
                          const char *type)
{
    BUF_SCOPED text = {0};

    buf_str(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"connected\",\"params\":{");
    json_out_text(&text, "clientId", client);
    json_out_text(&text, "sessionId", session);
    json_out_str(&text, "clientType", type);
    buf_str(&text, "}}");
    pipe_send(pipe, buf_view(&text), false);
}

static void stream_for_page(struct web_request *w)
{
    struct page *p = enter(w, w->session, w->client.n ? w->client : SPAN(SSE_KEY), &dialect_d4a);

    if (!p)
        return;
    struct pipe *pipe = open_stream(w, &dialect_d4a);
    say_connected(pipe, w->client.n ? w->client : span_str(p->id), w->session, "browser");
    page_attach(p, pipe);
}

static void welcome_agent(struct web_request *w, struct pipe *pipe)
{
    struct agent *a = agent_new(w->browser, pipe);
    struct browser_session *s = browser_session(w->browser, w->session, false);
    char id[ID_TOKEN_SIZE];
    BUF_SCOPED text = {0};

    id_token(id);
    a->client = w->client.n ? mem_span(w->client) : mem_str(id);
    a->own = w->session.n ? mem_span(w->session) : NULL;
    buf_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"sessions\",\"result\":{\"sessions\":");
    browser_put_sessions(&text, w->browser, SESSION_FACTS);
    buf_str(&text, "}}");
    pipe_send(pipe, buf_view(&text), false);
    say_connected(pipe, span_str(a->client), w->session, "agent");
    if (s)
        agent_join(a, s);
}

/* The page that this client id was last used for; NULL: none, or one of another origin. */
static struct page *client_page(const struct web_request *w)
{
    struct page *p = map_get(&w->browser->clients, w->client);

    return p && page_may_be(p, origin_of(w->req)) ? p : NULL;
}

static void stream_for_extension(struct web_request *w)
{
    struct page *known = client_page(w);
    struct span session = w->session;
    BUF_SCOPED text = {0};

    if (!session.n && known)
        session = span_str(known->session->id);
    struct page *p = enter(w, session, w->client, &dialect_d5);
    if (!p)
        return;
    map_put(&w->browser->clients, w->client, p);
    struct pipe *pipe = open_stream(w, &dialect_d5);
    buf_printf(&text, "event: session\ndata: {\"sessionId\":\"%s\"}\n\n", p->session->id);
    pipe_comment(pipe, buf_view(&text));
    page_attach(p, pipe);
}

static void stream_for_remote(struct web_request *w, struct page *p)
{
    struct pipe *pipe = open_stream(w, &dialect_d6);
    BUF_SCOPED text = {0};

    buf_printf(&text, "event: connected\ndata: {\"sessionId\":\"%s\"}\n\n", p->session->id);
    pipe_comment(pipe, buf_view(&text));
    page_attach(p, pipe);
}

/* Restores a page that registered with an earlier run of this program and has only reopened its
 * stream; NULL: no such page. */
static struct page *recall_remote(struct web_request *w)
{
    const struct remote_page *known = remotes_find(w->browser->remotes, w->session);
    struct err err;

    if (!known || !span_eq(span_str(known->origin), origin_of(w->req)))
        return NULL;
    struct browser_session *s = browser_make_session(w->browser, w->session);
    struct page *p = s ? page_enter(s, SPAN(REMOTE_KEY), origin_of(w->req), &dialect_d6) : NULL;
    if (p && page_register(p, span_str(known->tools), &err))
        log_warn("browser", "%s", err.text);
    return p;
}

static void on_events(struct web_request *w)
{
    struct browser_session *s = browser_session(w->browser, w->session, false);
    struct page *remote = s ? page_find(s, SPAN(REMOTE_KEY), origin_of(w->req)) : NULL;

    if (!w->type.n && w->client.n)
        stream_for_extension(w);
    else if (!w->session.n)
        refuse(w->x, 400, "sessionId is required", NULL);
    else if (span_is(w->type, "browser"))
        stream_for_page(w);
    else if (!w->type.n && (remote || (remote = recall_remote(w))))
        stream_for_remote(w, remote);
    else if (w->offers_only)
        refuse_agent(w);
    else
        welcome_agent(w, open_stream(w, &dialect_d4a));
}

/* --- POSTs --- */

static struct sender sender_of(struct web_request *w, const struct dialect *d)
{
    return (struct sender){.browser = w->browser,
                           .dialect = d,
                           .origin = origin_of(w->req),
                           .session_id = w->session,
                           .session = browser_session(w->browser, w->session, false),
                           .x = w->x,
                           .offers_only = w->offers_only,
                           .principal = w->caller->principal};
}

/* Handles the message of a POST. The reply is the body of the response and, in some dialects
 * (reply_on_stream), is sent on the sender's stream too. */
static void deliver(struct web_request *w, struct sender *s)
{
    struct pipe *pipe = s->agent ? s->agent->pipe : s->page ? page_pipe(s->page) : NULL;

    if (pipe && !pipe_counts(pipe)) {
        refuse(w->x, 429, "too many messages", "send fewer in a second");
        return;
    }
    if (s->session)
        session_touch(s->session);
    if (s->page)
        page_heard(s->page);
    bool fine = sender_receive(s, w->req->body);
    pipe = s->agent ? s->agent->pipe : s->page ? page_pipe(s->page) : NULL;
    if (s->held) {
        buf_fini(&s->reply);
        return;
    }
    if (fine && s->reply.n && pipe && s->dialect->reply_on_stream)
        pipe_send(pipe, buf_view(&s->reply), false);
    if (!fine)
        refuse(w->x, 400, "Invalid JSON-RPC message", "send one JSON-RPC 2.0 message as JSON");
    else
        http_respond(w->x, s->refused && s->dialect->reply_has_status ? 400 : 200,
                     "application/json", SPAN_EMPTY, buf_view(&s->reply));
    buf_fini(&s->reply);
}

/* Is this a message that only agents send? */
static bool is_agents(struct span text)
{
    static const char *const words[] = {"session/join", "tools/list", "tools/call"};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return false;
    struct json_slot method = json_get(text, "method");
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (json_string_is(method.value, span_str(words[i])))
            return true;
    return false;
}

static void on_message(struct web_request *w)
{
    struct sender s = sender_of(w, w->in_query ? &dialect_d4a : &dialect_d4b);

    if (!w->session.n) {
        refuse(w->x, 400, "sessionId is required", "give it as ?sessionId= or as X-Session-ID");
        return;
    }
    s.key = w->client.n ? w->client : SPAN(SSE_KEY);
    s.agent = w->offers_only ? NULL : agent_find(w->browser, w->client, w->session);
    if (!s.session && s.agent)
        s.session = s.agent->session;
    if (s.session && !(s.agent && w->client.n))
        s.page = page_find(s.session, s.key, s.origin);
    /* Agents that never join use the page's session id: then only the message shows who sent it. */
    if (s.page && is_agents(w->req->body))
        s.page = NULL;
    else if (s.page)
        s.agent = NULL;
    deliver(w, &s);
}

/* An extension's page: in the session that the request names, or else the client id's last one. */
static struct page *extension_page(const struct web_request *w)
{
    struct browser_session *s = browser_session(w->browser, w->session, false);
    struct page *p = s && w->client.n ? page_find(s, w->client, origin_of(w->req)) : NULL;

    return p || !w->client.n ? p : client_page(w);
}

static void on_tools_register(struct web_request *w)
{
    struct sender s = sender_of(w, &dialect_d5);

    if (!w->client.n) {
        refuse(w->x, 400, "X-Client-ID is required", NULL);
        return;
    }
    s.page = extension_page(w);
    s.key = w->client;
    if (!s.page) {
        struct page *p = enter(w, w->session, w->client, &dialect_d5);
        if (!p)
            return;
        map_put(&w->browser->clients, w->client, p);
        s.page = p;
    }
    s.session = s.page->session;
    deliver(w, &s);
}

static void on_tools_response(struct web_request *w)
{
    struct sender s = sender_of(w, &dialect_d5);

    s.page = extension_page(w);
    deliver(w, &s);
}

static void on_register(struct web_request *w)
{
    struct sender s = sender_of(w, &dialect_d6);
    enum json_type type;

    s.key = SPAN(REMOTE_KEY);
    if (json_skim(w->req->body, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT) {
        struct json_slot params = json_get(w->req->body, "params");
        struct json_slot id = params.type == JSON_OBJECT ? json_get(params.value, "sessionId")
                                                         : (struct json_slot){0};
        if (id.type == JSON_STRING)
            s.session_id = json_text(id.value, &w->scratch[3]);
    }
    if (!s.session_id.n) {
        refuse(w->x, 400, "params.sessionId is required", NULL);
        return;
    }
    s.session = browser_session(w->browser, s.session_id, false);
    s.page = s.session ? page_find(s.session, s.key, s.origin) : NULL;
    deliver(w, &s);
    if (s.page && s.page->text)
        remotes_keep(w->browser, span_str(s.page->session->id), s.page->origin,
                     span_of(s.page->text, s.page->text_n));
}

static void on_response(struct web_request *w)
{
    struct sender s = sender_of(w, &dialect_d6);

    deliver(w, &s);
}

static void on_rpc(struct web_request *w)
{
    struct sender s = sender_of(w, &dialect_d7);

    if (!w->session.n)
        s.session = browser_only_session(w->browser);
    deliver(w, &s);
}

/* --- WebSockets --- */

static void on_socket(struct web_request *w, bool named)
{
    const struct ws_options options = {.max_message = w->browser->options.max_message,
                                       .queue_limit = w->browser->options.max_message * 2,
                                       .ping_every = WS_PING_MS};
    const struct dialect *d = named ? &dialect_d3 : &dialect_d1;
    struct page *p = NULL;
    BUF_SCOPED scratch = {0};

    if (relay_is_wanted(w->req)) {
        struct pipe *relay = relay_open(w->browser, w->x, w->req, &options);
        if (relay)
            note_caller(relay, w);
        return;
    }
    bool agent = named && span_is(w->type, "agent");
    if (agent && w->offers_only) {
        refuse_agent(w);
        return;
    }
    if (named && !agent && !(p = enter(w, w->session, w->client, d)))
        return;
    struct pipe *pipe = pipe_new(w->browser, d, origin_of(w->req));
    note_caller(pipe, w);
    /* A client may offer subprotocols that we do not know: none is chosen, but the client is
     * served. */
    pipe->ws = ws_accept(w->browser->loop, w->x, w->req, NULL, &options, &pipe_ws_events, pipe);
    if (!pipe->ws) {
        pipe_free(pipe);
        if (p && !p->key)
            page_free(p);
        return;
    }
    if (p) {
        say_connected(pipe, w->client.n ? w->client : span_str(p->id), span_str(p->session->id),
                      "browser");
        struct span program = http_query(w->req->query, "client", &scratch);
        bool asks = span_is(program, "rialto.js");
        p->ours = asks || span_is(program, "webmcp.js");
        p->session->enforces |= asks;
        page_attach(p, pipe);
    } else if (named) {
        welcome_agent(w, pipe);
    }
}

/* --- the table of routes --- */

static const struct web_route {
    const char *method, *path;
    void (*handle)(struct web_request *w);
    bool is_open;    /* also for requests without the pairing token */
    bool for_agents; /* closed to sites that may only offer tools */
} routes[] = {
    {"GET", "/events", on_events, false, false},
    {"POST", "/message", on_message, false, false},
    {"POST", "/tools/register", on_tools_register, false, false},
    {"POST", "/tools/response", on_tools_response, false, false},
    {"POST", "/register", on_register, false, false},
    {"POST", "/response", on_response, false, false},
    {"POST", "/rpc", on_rpc, false, true},
    {"GET", "/health", on_health, true, false},
    {"GET", "/sessions", on_sessions, false, true},
};

/* The path without repeated slashes: clients append "/ws" to addresses that end in a slash. */
static struct span plain_path(struct span path, struct buf *out)
{
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] != '/' || !out->n || out->p[out->n - 1] != '/')
            buf_char(out, path.p[i]);
    return buf_view(out);
}

static bool ends_in_ws(struct span path)
{
    return path.n >= 3 && memcmp(path.p + path.n - 3, "/ws", 3) == 0;
}

static const struct web_route *route_of(struct span path)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        if (span_is(path, routes[i].path))
            return &routes[i];
    return NULL;
}

/* MCP clients offer the subprotocol "mcp", also when their address has no path. */
static bool speaks_mcp(const struct http_request *req)
{
    struct span offered = http_header(req, "sec-websocket-protocol"), item;

    while (http_next_item(&offered, &item))
        if (span_is(item, "mcp"))
            return true;
    return false;
}

bool routes_want(const struct http_request *req)
{
    BUF_SCOPED text = {0};
    struct span path = plain_path(req->path, &text);
    bool socket = ws_is_wanted(req) && !speaks_mcp(req) && !span_starts(path, SPAN("/mcp")) &&
                  (span_is(path, "/") || span_is(path, "/btcp") || ends_in_ws(path));
    bool wants = socket || route_of(path) || files_have(path);

    return wants;
}

static bool shows_token(const struct browser *b, const struct http_request *req)
{
    struct span wanted = span_str(b->options.token), given = http_bearer(req);
    BUF_SCOPED scratch = {0};

    if (!given.n)
        given = http_query(req->query, "token", &scratch);
    return span_eq_secret(given, wanted);
}

/* May the request go on? If not, it has been refused. */
static bool is_let_in(struct web_request *w)
{
    bool unnamed = w->caller->way == CALLER_EXTENSION;
    bool must_show = unnamed || w->browser->options.pairing;

    bool vouched = w->caller->trusted || w->caller->way == CALLER_SOCKET;

    w->anonymous = !vouched && !shows_token(w->browser, w->req);
    if (!must_show || w->caller->trusted || !w->anonymous)
        return true;
    if (unnamed) {
        log_warn("browser", "refused " SPAN_FMT ": it is not in browser.origins, and not paired",
                 SPAN_ARG(origin_of(w->req)));
        refuse(w->x, 403, "this browser extension is not known here",
               "name it in browser.origins of the configuration (chrome-extension://ID), or let "
               "it show the token of 'rialto browser pair', as ?token= or as a Bearer token");
    } else {
        refuse(w->x, 401, "the pairing token is missing or wrong",
               "'rialto browser pair' shows it; give it as ?token= or as a Bearer token");
    }
    return false;
}

static void read_request(struct web_request *w)
{
    w->session = http_query(w->req->query, "sessionId", &w->scratch[0]);
    w->in_query = w->session.n > 0;
    if (!w->in_query)
        w->session = http_header(w->req, "x-session-id");
    w->client = http_query(w->req->query, "clientId", &w->scratch[1]);
    if (!w->client.n)
        w->client = http_header(w->req, "x-client-id");
    if (w->client.n > 128)
        w->client.n = 128;
    w->type = http_query(w->req->query, "clientType", &w->scratch[2]);
}

static void route(struct web_request *w, struct span path)
{
    const struct web_route *r = route_of(path);
    bool socket = ws_is_wanted(w->req);

    if (w->browser->closed) {
        refuse(w->x, 503, "the bridge is shutting down", NULL);
    } else if (!socket && files_have(path)) {
        files_serve(w->x, path);
    } else if (http_is_embedded(w->req)) {
        refuse(w->x, 403, "pages of other sites may only load our scripts", NULL);
    } else if (!(r && r->is_open) && !is_let_in(w)) {
        return;
    } else if (socket) {
        on_socket(w, ends_in_ws(path));
    } else if (!r) {
        refuse(w->x, 404, "no such path", NULL);
    } else if (span_is(w->req->method, "OPTIONS")) {
        http_respond(w->x, 204, NULL, SPAN_EMPTY, SPAN_EMPTY);
    } else if (!span_is(w->req->method, r->method)) {
        refuse(w->x, 405, "method not allowed", r->method);
    } else if (r->for_agents && w->offers_only) {
        refuse_agent(w);
    } else {
        r->handle(w);
    }
}

void routes_handle(struct browser *b, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req)
{
    struct web_request w = {.browser = b,
                            .x = x,
                            .req = req,
                            .caller = caller,
                            .offers_only =
                                caller->way == CALLER_SITE || caller->way == CALLER_EXTENSION};
    BUF_SCOPED path = {0};

    read_request(&w);
    route(&w, plain_path(req->path, &path));
    for (size_t i = 0; i < COUNT_OF(w.scratch); i++)
        buf_fini(&w.scratch[i]);
}
