/* HTTP routes for pages and agents: event streams, POSTs, WebSockets, health, the list of sessions,
 * and the check of the pairing token. Called by hub/web_pages.c for each request. */
#include "browser/doors.h"

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
struct visit {
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

static void on_health(struct visit *v)
{
    struct browser *b = v->browser;
    struct buf *out = http_respond_begin(v->x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_str(out, "status", "ok");
    json_out_str(out, "service", "rialto");
    json_out_number(out, "sessions", b->sessions.n);
    json_out_number(out, "clients", b->n_pipes);
    json_out_number(out, "uptime", (loop_now(b->loop) - b->started_at) / 1000);
    buf_char(out, '}');
    http_respond_end(v->x);
}

static void on_sessions(struct visit *v)
{
    struct buf *out = http_respond_begin(v->x, 200, "application/json", SPAN_EMPTY);

    buf_str(out, "{\"sessions\":");
    browser_put_sessions(out, v->browser, SESSION_PAGES);
    buf_char(out, '}');
    http_respond_end(v->x);
}

/* --- event streams --- */

/* Stores in the connection who opened it. */
static void note_caller(struct pipe *p, const struct visit *v)
{
    p->offers_only = v->offers_only;
    p->anonymous = v->anonymous;
    p->principal = principal_hold(v->caller->principal);
}

static struct pipe *open_stream(struct visit *v, const struct dialect *d)
{
    struct pipe *p = pipe_new(v->browser, d, origin_of(v->req));

    note_caller(p, v);
    pipe_take_stream(p, v->x);
    return p;
}

static void refuse_agent(struct visit *v)
{
    refuse(v->x, 403, "pages of this site may offer tools, and use nobody's",
           "browser.origins lets sites in for that alone");
}

static void refuse_page(struct visit *v)
{
    refuse(v->x, 400, "this session cannot be opened",
           "its name must be 1 to 128 of letters, digits and . _ : -; there may also be too many "
           "sessions, or too many pages in this one");
}

/* The page with this key in the session, both made if missing; NULL: the request was refused. */
static struct page *enter(struct visit *v, struct span session, struct span key,
                          const struct dialect *d)
{
    struct browser_session *s = browser_make_session(v->browser, session);
    struct page *p = s ? page_enter(s, key, origin_of(v->req), d) : NULL;

    if (!p)
        refuse_page(v);
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

static void stream_for_page(struct visit *v)
{
    struct page *p = enter(v, v->session, v->client.n ? v->client : SPAN(SSE_KEY), &dialect_d4a);

    if (!p)
        return;
    struct pipe *pipe = open_stream(v, &dialect_d4a);
    say_connected(pipe, v->client.n ? v->client : span_str(p->id), v->session, "browser");
    page_attach(p, pipe);
}

static void welcome_agent(struct visit *v, struct pipe *pipe)
{
    struct agent *a = agent_new(v->browser, pipe);
    struct browser_session *s = browser_session(v->browser, v->session, false);
    char id[ID_TOKEN_SIZE];
    BUF_SCOPED text = {0};

    id_token(id);
    a->client = v->client.n ? mem_span(v->client) : mem_str(id);
    a->own = v->session.n ? mem_span(v->session) : NULL;
    buf_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"sessions\",\"result\":{\"sessions\":");
    browser_put_sessions(&text, v->browser, SESSION_FACTS);
    buf_str(&text, "}}");
    pipe_send(pipe, buf_view(&text), false);
    say_connected(pipe, span_str(a->client), v->session, "agent");
    if (s)
        agent_join(a, s);
}

/* The page that this client id was last used for; NULL: none, or one of another origin. */
static struct page *client_page(const struct visit *v)
{
    struct page *p = map_get(&v->browser->clients, v->client);

    return p && page_may_be(p, origin_of(v->req)) ? p : NULL;
}

static void stream_for_extension(struct visit *v)
{
    struct page *known = client_page(v);
    struct span session = v->session;
    BUF_SCOPED text = {0};

    if (!session.n && known)
        session = span_str(known->session->id);
    struct page *p = enter(v, session, v->client, &dialect_d5);
    if (!p)
        return;
    map_put(&v->browser->clients, v->client, p);
    struct pipe *pipe = open_stream(v, &dialect_d5);
    buf_printf(&text, "event: session\ndata: {\"sessionId\":\"%s\"}\n\n", p->session->id);
    pipe_comment(pipe, buf_view(&text));
    page_attach(p, pipe);
}

static void stream_for_remote(struct visit *v, struct page *p)
{
    struct pipe *pipe = open_stream(v, &dialect_d6);
    BUF_SCOPED text = {0};

    buf_printf(&text, "event: connected\ndata: {\"sessionId\":\"%s\"}\n\n", p->session->id);
    pipe_comment(pipe, buf_view(&text));
    page_attach(p, pipe);
}

/* Restores a page that registered with an earlier run of this program and has only reopened its
 * stream; NULL: no such page. */
static struct page *recall_remote(struct visit *v)
{
    const struct remote_page *known = remotes_find(v->browser->remotes, v->session);
    struct err err;

    if (!known || !span_eq(span_str(known->origin), origin_of(v->req)))
        return NULL;
    struct browser_session *s = browser_make_session(v->browser, v->session);
    struct page *p = s ? page_enter(s, SPAN(REMOTE_KEY), origin_of(v->req), &dialect_d6) : NULL;
    if (p && page_register(p, span_str(known->tools), &err))
        log_warn("browser", "%s", err.text);
    return p;
}

static void on_events(struct visit *v)
{
    struct browser_session *s = browser_session(v->browser, v->session, false);
    struct page *remote = s ? page_find(s, SPAN(REMOTE_KEY), origin_of(v->req)) : NULL;

    if (!v->type.n && v->client.n)
        stream_for_extension(v);
    else if (!v->session.n)
        refuse(v->x, 400, "sessionId is required", NULL);
    else if (span_is(v->type, "browser"))
        stream_for_page(v);
    else if (!v->type.n && (remote || (remote = recall_remote(v))))
        stream_for_remote(v, remote);
    else if (v->offers_only)
        refuse_agent(v);
    else
        welcome_agent(v, open_stream(v, &dialect_d4a));
}

/* --- POSTs --- */

static struct sender sender_of(struct visit *v, const struct dialect *d)
{
    return (struct sender){.browser = v->browser,
                           .dialect = d,
                           .origin = origin_of(v->req),
                           .session_id = v->session,
                           .session = browser_session(v->browser, v->session, false),
                           .x = v->x,
                           .offers_only = v->offers_only,
                           .principal = v->caller->principal};
}

/* Handles the message of a POST. The reply is the body of the response and, in some dialects
 * (reply_on_stream), is sent on the sender's stream too. */
static void deliver(struct visit *v, struct sender *s)
{
    struct pipe *pipe = s->agent ? s->agent->pipe : s->page ? page_pipe(s->page) : NULL;

    if (pipe && !pipe_counts(pipe)) {
        refuse(v->x, 429, "too many messages", "send fewer in a second");
        return;
    }
    if (s->session)
        session_touch(s->session);
    if (s->page)
        page_heard(s->page);
    bool fine = sender_receive(s, v->req->body);
    pipe = s->agent ? s->agent->pipe : s->page ? page_pipe(s->page) : NULL;
    if (s->held) {
        buf_fini(&s->reply);
        return;
    }
    if (fine && s->reply.n && pipe && s->dialect->reply_on_stream)
        pipe_send(pipe, buf_view(&s->reply), false);
    if (!fine)
        refuse(v->x, 400, "Invalid JSON-RPC message", "send one JSON-RPC 2.0 message as JSON");
    else
        http_respond(v->x, s->refused && s->dialect->reply_has_status ? 400 : 200,
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

static void on_message(struct visit *v)
{
    struct sender s = sender_of(v, v->in_query ? &dialect_d4a : &dialect_d4b);

    if (!v->session.n) {
        refuse(v->x, 400, "sessionId is required", "give it as ?sessionId= or as X-Session-ID");
        return;
    }
    s.key = v->client.n ? v->client : SPAN(SSE_KEY);
    s.agent = agent_find(v->browser, v->client, v->session);
    if (!s.session && s.agent)
        s.session = s.agent->session;
    if (s.session && !(s.agent && v->client.n))
        s.page = page_find(s.session, s.key, s.origin);
    /* Agents that never join use the page's session id: then only the message shows who sent it. */
    if (s.page && is_agents(v->req->body))
        s.page = NULL;
    else if (s.page)
        s.agent = NULL;
    deliver(v, &s);
}

/* An extension's page: in the session that the request names, or else the client id's last one. */
static struct page *extension_page(const struct visit *v)
{
    struct browser_session *s = browser_session(v->browser, v->session, false);
    struct page *p = s && v->client.n ? page_find(s, v->client, origin_of(v->req)) : NULL;

    return p || !v->client.n ? p : client_page(v);
}

static void on_tools_register(struct visit *v)
{
    struct sender s = sender_of(v, &dialect_d5);

    if (!v->client.n) {
        refuse(v->x, 400, "X-Client-ID is required", NULL);
        return;
    }
    s.page = extension_page(v);
    s.key = v->client;
    if (!s.page) {
        struct page *p = enter(v, v->session, v->client, &dialect_d5);
        if (!p)
            return;
        map_put(&v->browser->clients, v->client, p);
        s.page = p;
    }
    s.session = s.page->session;
    deliver(v, &s);
}

static void on_tools_response(struct visit *v)
{
    struct sender s = sender_of(v, &dialect_d5);

    s.page = extension_page(v);
    deliver(v, &s);
}

static void on_register(struct visit *v)
{
    struct sender s = sender_of(v, &dialect_d6);
    enum json_type type;

    s.key = SPAN(REMOTE_KEY);
    if (json_skim(v->req->body, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT) {
        struct json_slot params = json_get(v->req->body, "params");
        struct json_slot id = params.type == JSON_OBJECT ? json_get(params.value, "sessionId")
                                                         : (struct json_slot){0};
        if (id.type == JSON_STRING)
            s.session_id = json_text(id.value, &v->scratch[3]);
    }
    if (!s.session_id.n) {
        refuse(v->x, 400, "params.sessionId is required", NULL);
        return;
    }
    s.session = browser_session(v->browser, s.session_id, false);
    s.page = s.session ? page_find(s.session, s.key, s.origin) : NULL;
    deliver(v, &s);
    if (s.page && s.page->text)
        remotes_keep(v->browser->remotes, span_str(s.page->session->id), s.page->origin,
                     span_of(s.page->text, s.page->text_n));
}

static void on_response(struct visit *v)
{
    struct sender s = sender_of(v, &dialect_d6);

    deliver(v, &s);
}

static void on_rpc(struct visit *v)
{
    struct sender s = sender_of(v, &dialect_d7);

    if (!v->session.n)
        s.session = browser_only_session(v->browser);
    deliver(v, &s);
}

/* --- WebSockets --- */

static void on_socket(struct visit *v, bool named)
{
    const struct ws_options options = {.max_message = v->browser->options.max_message,
                                       .queue_limit = v->browser->options.max_message * 2,
                                       .ping_every = WS_PING_MS};
    const struct dialect *d = named ? &dialect_d3 : &dialect_d1;
    struct page *p = NULL;
    BUF_SCOPED scratch = {0};

    if (relay_is_wanted(v->req)) {
        struct pipe *relay = relay_open(v->browser, v->x, v->req, &options);
        if (relay)
            note_caller(relay, v);
        return;
    }
    bool agent = named && span_is(v->type, "agent");
    if (agent && v->offers_only) {
        refuse_agent(v);
        return;
    }
    if (named && !agent && !(p = enter(v, v->session, v->client, d)))
        return;
    struct pipe *pipe = pipe_new(v->browser, d, origin_of(v->req));
    note_caller(pipe, v);
    /* A client may offer subprotocols that we do not know: none is chosen, but the client is
     * served. */
    pipe->ws = ws_accept(v->browser->loop, v->x, v->req, NULL, &options, &pipe_ws_events, pipe);
    if (!pipe->ws) {
        pipe_free(pipe);
        if (p && !p->key)
            page_free(p);
        return;
    }
    if (p) {
        say_connected(pipe, v->client.n ? v->client : span_str(p->id), span_str(p->session->id),
                      "browser");
        struct span program = http_query(v->req->query, "client", &scratch);
        bool asks = span_is(program, "rialto.js");
        p->ours = asks || span_is(program, "webmcp.js");
        p->session->enforces |= asks;
        page_attach(p, pipe);
    } else if (named) {
        welcome_agent(v, pipe);
    }
}

/* --- the table of routes --- */

static const struct door {
    const char *method, *path;
    void (*handle)(struct visit *v);
    bool is_open;    /* also for requests without the pairing token */
    bool for_agents; /* closed to sites that may only offer tools */
} doors[] = {
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

static const struct door *door_of(struct span path)
{
    for (size_t i = 0; i < COUNT_OF(doors); i++)
        if (span_is(path, doors[i].path))
            return &doors[i];
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

bool doors_want(const struct http_request *req)
{
    BUF_SCOPED text = {0};
    struct span path = plain_path(req->path, &text);
    bool socket = ws_is_wanted(req) && !speaks_mcp(req) && !span_starts(path, SPAN("/mcp")) &&
                  (span_is(path, "/") || span_is(path, "/btcp") || ends_in_ws(path));
    bool wants = socket || door_of(path) || files_have(path);

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
static bool is_let_in(struct visit *v)
{
    bool unnamed = v->caller->way == CALLER_EXTENSION;
    bool must_show = unnamed || v->browser->options.pairing;

    bool vouched = v->caller->trusted || v->caller->way == CALLER_SOCKET;

    v->anonymous = !vouched && !shows_token(v->browser, v->req);
    if (!must_show || v->caller->trusted || !v->anonymous)
        return true;
    if (unnamed) {
        log_warn("browser", "refused " SPAN_FMT ": it is not in browser.origins, and not paired",
                 SPAN_ARG(origin_of(v->req)));
        refuse(v->x, 403, "this browser extension is not known here",
               "name it in browser.origins of the configuration (chrome-extension://ID), or let "
               "it show the token of 'rialto browser pair', as ?token= or as a Bearer token");
    } else {
        refuse(v->x, 401, "the pairing token is missing or wrong",
               "'rialto browser pair' shows it; give it as ?token= or as a Bearer token");
    }
    return false;
}

static void read_visit(struct visit *v)
{
    v->session = http_query(v->req->query, "sessionId", &v->scratch[0]);
    v->in_query = v->session.n > 0;
    if (!v->in_query)
        v->session = http_header(v->req, "x-session-id");
    v->client = http_query(v->req->query, "clientId", &v->scratch[1]);
    if (!v->client.n)
        v->client = http_header(v->req, "x-client-id");
    if (v->client.n > 128)
        v->client.n = 128;
    v->type = http_query(v->req->query, "clientType", &v->scratch[2]);
}

static void route(struct visit *v, struct span path)
{
    const struct door *door = door_of(path);
    bool socket = ws_is_wanted(v->req);

    if (v->browser->closed) {
        refuse(v->x, 503, "the bridge is shutting down", NULL);
    } else if (!socket && files_have(path)) {
        files_serve(v->x, path);
    } else if (http_is_embedded(v->req)) {
        refuse(v->x, 403, "pages of other sites may only load our scripts", NULL);
    } else if (!(door && door->is_open) && !is_let_in(v)) {
        return;
    } else if (socket) {
        on_socket(v, ends_in_ws(path));
    } else if (!door) {
        refuse(v->x, 404, "no such path", NULL);
    } else if (span_is(v->req->method, "OPTIONS")) {
        http_respond(v->x, 204, NULL, SPAN_EMPTY, SPAN_EMPTY);
    } else if (!span_is(v->req->method, door->method)) {
        refuse(v->x, 405, "method not allowed", door->method);
    } else if (door->for_agents && v->offers_only) {
        refuse_agent(v);
    } else {
        door->handle(v);
    }
}

void doors_handle(struct browser *b, const struct caller *caller, struct http_exchange *x,
                  const struct http_request *req)
{
    struct visit v = {.browser = b,
                      .x = x,
                      .req = req,
                      .caller = caller,
                      .offers_only = caller->way == CALLER_SITE || caller->way == CALLER_EXTENSION};
    BUF_SCOPED path = {0};

    read_visit(&v);
    route(&v, plain_path(req->path, &path));
    for (size_t i = 0; i < COUNT_OF(v.scratch); i++)
        buf_fini(&v.scratch[i]);
}
