/* Connects the browser family to the front door: the pairing token, the providers of browser
 * sessions, and MCP requests that select a session. Called by hub.c and cmd/browser.c. */
#include "hub/web_pages.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/routes.h"
#include "hub/places.h"
#include "io/ws.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Selects all sessions instead of one; no session can have this name. */
#define EVERY_PAGE "*"

/* As many servers to join as the configuration allows. */
enum { MAX_JOINS = 16 };

/* The name that the specification of BTCP gives. */
#define SERVER_INFO "{\"name\":\"btcp-server\",\"version\":\"1.0.0\"}"

struct web_pages {
    struct loop *loop;
    const struct config *config;
    struct bridge *bridge;
    struct browser *browser;              /* NULL once it is closed */
    const struct browser_session *hosted; /* of the agent on our own standard input; or NULL */
    struct endpoints *endpoints;          /* NULL once they are closed */
    struct span *granted;
    char *token;
    char *grants_file, *remotes_file;
    size_t closing; /* parts that are not closed yet */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* --- files that outlive the process --- */

static char *read_token(const char *path)
{
    char text[ID_TOKEN_SIZE] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n == (ssize_t)sizeof text - 1 ? mem_str(text) : NULL;
}

char *web_pages_token(struct err *err)
{
    char *path = place_path(PLACE_STATE, "browser-token");
    char fresh[ID_TOKEN_SIZE];

    if (!path) {
        err_set(err, -ENOENT, "there is no home folder to keep the pairing token in");
        return NULL;
    }
    char *token = read_token(path);
    if (!token) {
        id_token(fresh);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd >= 0 && write(fd, fresh, sizeof fresh - 1) == (ssize_t)sizeof fresh - 1)
            token = mem_str(fresh);
        else
            err_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    mem_free(path);
    return token;
}

/* --- callbacks of the browser family --- */

static void on_opened(void *arg, struct provider *p)
{
    struct web_pages *w = arg;

    bridge_admit(w->bridge, p);
}

static void part_closed(void *arg)
{
    struct web_pages *w = arg;

    if (--w->closing || !w->is_closing)
        return;
    w->closed(w->closed_arg);
    if (w->endpoints) /* retired: there may still be requests to refuse */
        return;
    mem_free(w->granted);
    mem_free(w->token);
    mem_free(w->grants_file);
    mem_free(w->remotes_file);
    mem_free(w);
}

static void browser_closed(void *arg)
{
    struct web_pages *w = arg;

    w->browser = NULL;
    part_closed(w);
}

static bool may_end(void *arg, struct browser_session *session)
{
    struct web_pages *w = arg;
    const struct view *v = browser_session_view(session);

    return !w->endpoints || (session != w->hosted && !endpoints_in_use(w->endpoints, v));
}

static void ending(void *arg, struct browser_session *session)
{
    struct web_pages *w = arg;

    if (w->endpoints)
        endpoints_leave(w->endpoints,
                        session ? browser_session_view(session) : browser_view(w->browser));
}

/* --- agents of one session --- */

static struct mcp_host host_of(const struct web_pages *w, struct view *view)
{
    return (struct mcp_host){.router = bridge_router(w->bridge),
                             .view = view,
                             .server_info = SERVER_INFO,
                             .max_batch = w->config->limits.batch,
                             .max_answers = w->config->limits.message};
}

struct mcp_host web_pages_host(struct web_pages *w, const char *session)
{
    struct browser_session *s =
        session ? browser_session(w->browser, span_str(session), true) : NULL;

    w->hosted = s;
    return host_of(w, s ? browser_session_view(s) : browser_view(w->browser));
}

/* `session` NULL: all pages, and no servers. */
static struct endpoint *endpoint_to(struct web_pages *w, const struct caller *caller,
                                    struct browser_session *session)
{
    struct mcp_host host =
        host_of(w, session ? browser_session_view(session) : browser_view(w->browser));

    return endpoints_at(w->endpoints, caller, &host);
}

/* The session that the request selects. In a POST of HTTP+SSE, `sessionId` does not count: there it
 * names the agent's own session. */
static struct span selection(const struct http_request *req, bool sse, struct buf *scratch)
{
    struct span id = http_query(req->query, "session", scratch);

    if (!id.p && !(sse && span_is(req->method, "POST")))
        id = http_query(req->query, "sessionId", scratch);
    return id;
}

static void drop_message(void *owner, enum ws_opcode op, struct span payload)
{
    (void)owner, (void)op, (void)payload;
}

static void refused_closed(void *owner, uint16_t code, const char *reason)
{
    (void)code, (void)reason;
    part_closed(owner);
}

static const struct ws_events refused_events = {.message = drop_message, .closed = refused_closed};

/* A page cannot see the status of a refused handshake, so a WebSocket is opened and closed with the
 * reason. */
static void refuse_session(struct web_pages *w, struct http_exchange *x,
                           const struct http_request *req)
{
    static const char *const protocols[] = {"mcp", NULL};
    enum { SESSION_NOT_FOUND = 4001 };

    if (!ws_is_wanted(req)) {
        http_refuse(x, 404, "Session not found",
                    "no page has this session; /sessions lists them, and &wait=1 waits for one");
        return;
    }
    struct ws *ws = ws_accept(w->loop, x, req, protocols,
                              &(struct ws_options){.max_message = w->config->limits.message},
                              &refused_events, w);
    if (!ws)
        return;
    w->closing++; /* `w` must outlive the WebSocket */
    ws_close(ws, SESSION_NOT_FOUND, "Session not found");
}

static void refuse_late(struct http_exchange *x)
{
    http_refuse(x, 503, "this Rialto is being stopped", "come back when it runs again");
}

bool web_pages_mcp(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse)
{
    BUF_SCOPED scratch = {0}, more = {0};
    struct span id = selection(req, sse, &scratch);
    bool selects = id.p != NULL;

    if (selects && w->is_closing) {
        refuse_late(x);
    } else if (selects && caller->view) {
        http_refuse(x, 403, "this token's view has no browser sessions",
                    "leave ?session= out, or use a token without a view");
    } else if (selects) {
        bool waits = http_query(req->query, "wait", &more).p != NULL;
        struct browser_session *s = browser_session(w->browser, id, waits);
        if (s || span_is(id, EVERY_PAGE))
            endpoint_handle(endpoint_to(w, caller, s), x, req, sse);
        else
            refuse_session(w, x, req);
    }
    return selects;
}

void web_pages_all(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse)
{
    endpoint_handle(endpoint_to(w, caller, NULL), x, req, sse);
}

void web_pages_count(const struct web_pages *w, struct browser_numbers *out)
{
    *out = (struct browser_numbers){0};
    if (w->browser)
        browser_count(w->browser, out);
}

void web_pages_review(struct web_pages *w, bool asks_tokens)
{
    if (w->browser)
        browser_review(w->browser, w->config->browser.pairing || asks_tokens);
}

/* --- life --- */

static void on_page(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span path)
{
    struct web_pages *w = owner;

    (void)path;
    if (w->is_closing)
        refuse_late(x);
    else
        routes_handle(w->browser, caller, x, req);
}

struct web_pages *web_pages_new(struct loop *loop, const struct config *c, struct bridge *bridge,
                                struct front *front, struct endpoints *endpoints)
{
    struct web_pages *w = MEM_NEW(struct web_pages);
    struct browser_join joins[MAX_JOINS];
    struct err err;

    size_t n_joins = c->browser.join.n < MAX_JOINS ? c->browser.join.n : MAX_JOINS;
    for (size_t i = 0; i < n_joins; i++)
        joins[i] =
            (struct browser_join){c->browser.join.items[i].url, c->browser.join.items[i].session};
    w->loop = loop;
    w->config = c;
    w->bridge = bridge;
    w->endpoints = endpoints;
    w->granted = MEM_ARRAY(struct span, c->browser.granted.n + 1);
    for (size_t i = 0; i < c->browser.granted.n; i++)
        w->granted[i] = span_str(c->browser.granted.items[i]);
    w->grants_file = place_path(PLACE_STATE, "browser-grants.json");
    w->remotes_file = place_path(PLACE_STATE, "browser-pages.json");
    /* Where agents must show a token, pages and BTCP agents must show one as well: the pairing
     * token. */
    bool paired = c->browser.pairing || c->asks_tokens;
    if (!(w->token = web_pages_token(&err)))
        log_line(paired ? LOG_ERROR : LOG_INFO, "browser", "%s", err.text);
    if (w->token)
        log_add_secret(span_str(w->token));
    w->browser = browser_new(
        loop, bridge_router(bridge),
        &(struct browser_options){.session_ttl = c->browser.session_ttl,
                                  .session_idle = c->browser.session_idle,
                                  .max_sessions = c->limits.sessions,
                                  .max_message = c->limits.message,
                                  .strict = c->browser.capabilities != CAPABILITIES_AUTO,
                                  .listed_only = c->browser.capabilities == CAPABILITIES_LIST,
                                  .consent_timeout = c->browser.consent_timeout,
                                  .granted = w->granted,
                                  .n_granted = c->browser.granted.n,
                                  .token = w->token,
                                  .pairing = paired,
                                  .webmcp = c->browser.webmcp,
                                  .socket = c->browser.socket,
                                  .grants_file = w->grants_file,
                                  .remotes_file = w->remotes_file,
                                  .joins = joins,
                                  .n_joins = n_joins,
                                  .arg = w,
                                  .opened = on_opened,
                                  .may_end = may_end,
                                  .ending = ending});
    front_route_pages(front, routes_want, on_page, w);
    return w;
}

void web_pages_close(struct web_pages *w, void (*closed)(void *arg), void *arg)
{
    w->endpoints = NULL;
    web_pages_retire(w, closed, arg);
}

void web_pages_retire(struct web_pages *w, void (*closed)(void *arg), void *arg)
{
    w->closed = closed;
    w->closed_arg = arg;
    w->is_closing = true;
    w->closing++;
    browser_close(w->browser, browser_closed, w);
}
