/* The browser family put behind the front door: the pairing token, the providers of browser
 * sessions, and MCP requests that select a session. Called by hub.c and cmd/browser.c. */
#include "hub/browser_desk.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/doors.h"
#include "hub/places.h"
#include "io/ws.h"
#include "mcp/agent/entrance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* In place of the name of a session; none can be called so. */
#define EVERY_PAGE "*"

/* As many servers to join as the configuration takes. */
enum { MAX_JOINS = 16 };

/* As the specification of BTCP introduces itself. */
#define SERVER_INFO "{\"name\":\"btcp-server\",\"version\":\"1.0.0\"}"

/* The entrance to one session, for one owner of a token. */
struct seat {
    struct list node;
    struct entrance *entrance;
    const char *principal; /* whose it is; NULL: everybody's */
    char *session;
};

struct browser_desk {
    struct loop *loop;
    const struct config *config;
    struct bridge *bridge;
    struct browser *browser;
    struct view *pages;                   /* every session's tools, and nothing else */
    const struct browser_session *hosted; /* of the agent on our own standard input; or NULL */
    struct list seats;
    struct span *granted;
    char *token;
    char *grants_file, *remotes_file;
    size_t closing; /* parts that are not closed yet */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* --- files that outlive us --- */

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

char *browser_desk_token(struct err *err)
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

/* --- what the browser family tells --- */

static void on_opened(void *arg, struct provider *p)
{
    struct browser_desk *d = arg;

    bridge_admit(d->bridge, p);
    view_add(d->pages, p, NULL);
}

static struct seat *seat_of(const struct browser_desk *d, const char *session,
                            const char *principal)
{
    LIST_EACH (&d->seats, it) {
        struct seat *s = LIST_ENTRY(it, struct seat, node);
        if (strcmp(s->session, session) == 0 && caller_same(s->principal, principal))
            return s;
    }
    return NULL;
}

static void part_closed(void *arg)
{
    struct browser_desk *d = arg;

    if (--d->closing || !d->is_closing)
        return;
    router_remove_view(bridge_router(d->bridge), d->pages);
    view_free(d->pages);
    d->closed(d->closed_arg);
    mem_free(d->granted);
    mem_free(d->token);
    mem_free(d->grants_file);
    mem_free(d->remotes_file);
    mem_free(d);
}

static void seat_free(struct browser_desk *d, struct seat *s)
{
    list_remove(&s->node);
    d->closing++;
    entrance_close(s->entrance, part_closed, d);
    mem_free(s->session);
    mem_free(s);
}

static bool may_end(void *arg, struct browser_session *session)
{
    struct browser_desk *d = arg;
    const char *id = browser_session_id(session);

    if (session == d->hosted)
        return false;
    LIST_EACH (&d->seats, it) {
        const struct seat *s = LIST_ENTRY(it, struct seat, node);
        if (strcmp(s->session, id) == 0 && entrance_sessions(s->entrance))
            return false;
    }
    LIST_EACH_SAFE (&d->seats, it)
        if (strcmp(LIST_ENTRY(it, struct seat, node)->session, id) == 0)
            seat_free(d, LIST_ENTRY(it, struct seat, node));
    return true;
}

/* --- agents of one session --- */

static struct mcp_host host_of(const struct browser_desk *d, struct view *view)
{
    return (struct mcp_host){.router = bridge_router(d->bridge),
                             .view = view,
                             .server_info = SERVER_INFO,
                             .max_batch = d->config->limits.batch,
                             .max_answers = d->config->limits.message};
}

struct mcp_host browser_desk_host(struct browser_desk *d, const char *session)
{
    struct browser_session *s =
        session ? browser_session(d->browser, span_str(session), true) : NULL;

    d->hosted = s;
    return host_of(d, s ? browser_session_view(s) : d->pages);
}

/* NULL: the seat of those who want all pages and no server. */
static struct seat *seat_make(struct browser_desk *d, const struct caller *caller,
                              struct browser_session *session)
{
    const char *name = session ? browser_session_id(session) : EVERY_PAGE;
    struct seat *s = seat_of(d, name, caller->principal);

    if (s)
        return s;
    struct mcp_host host = host_of(d, session ? browser_session_view(session) : d->pages);
    host.principal = caller->principal;
    s = MEM_NEW(struct seat);
    s->session = mem_str(name);
    s->principal = caller->principal;
    s->entrance =
        entrance_new(d->loop, &host,
                     &(struct entrance_options){.max_sessions = d->config->limits.sessions,
                                                .session_ttl = d->config->limits.session_ttl,
                                                .max_message = d->config->limits.message});
    list_append(&d->seats, &s->node);
    return s;
}

/* `sessionId` is what POSTs of HTTP+SSE call a session of their own. */
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

/* A page cannot see the status of a refused handshake, so a WebSocket is opened to say it. */
static void refuse_session(struct browser_desk *d, struct http_exchange *x,
                           const struct http_request *req)
{
    static const char *const protocols[] = {"mcp", NULL};
    enum { SESSION_NOT_FOUND = 4001 };

    if (!ws_is_wanted(req)) {
        http_refuse(x, 404, "Session not found",
                    "no page has this session; /sessions lists them, and &wait=1 waits for one");
        return;
    }
    struct ws *ws = ws_accept(d->loop, x, req, protocols,
                              &(struct ws_options){.max_message = d->config->limits.message},
                              &refused_events, d);
    if (!ws)
        return;
    d->closing++; /* we cannot be gone before it is */
    ws_close(ws, SESSION_NOT_FOUND, "Session not found");
}

bool browser_desk_mcp(struct browser_desk *d, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, bool sse)
{
    struct buf scratch = {0}, more = {0};
    struct span id = selection(req, sse, &scratch);
    bool selects = id.p != NULL;

    if (selects && caller->view) {
        http_refuse(x, 403, "this token's view has no browser sessions",
                    "leave ?session= out, or use a token without a view");
    } else if (selects) {
        bool waits = http_query(req->query, "wait", &more).p != NULL;
        struct browser_session *s = browser_session(d->browser, id, waits);
        if (s || span_is(id, EVERY_PAGE))
            entrance_handle(seat_make(d, caller, s)->entrance, x, req, sse);
        else
            refuse_session(d, x, req);
    }
    buf_fini(&more);
    buf_fini(&scratch);
    return selects;
}

void browser_desk_all(struct browser_desk *d, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, bool sse)
{
    entrance_handle(seat_make(d, caller, NULL)->entrance, x, req, sse);
}

size_t browser_desk_sessions(const struct browser_desk *d)
{
    size_t n = 0;

    LIST_EACH (&d->seats, it)
        n += entrance_sessions(LIST_ENTRY(it, struct seat, node)->entrance);
    return n;
}

void browser_desk_count(const struct browser_desk *d, struct browser_numbers *out)
{
    browser_count(d->browser, out);
}

/* --- life --- */

static void on_page(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span path)
{
    struct browser_desk *d = owner;

    (void)path;
    doors_handle(d->browser, caller, x, req);
}

struct browser_desk *browser_desk_new(struct loop *loop, const struct config *c,
                                      struct bridge *bridge, struct front *front)
{
    struct browser_desk *d = MEM_NEW(struct browser_desk);
    struct browser_join joins[MAX_JOINS];
    struct err err;

    size_t n_joins = c->browser.join.n < MAX_JOINS ? c->browser.join.n : MAX_JOINS;
    for (size_t i = 0; i < n_joins; i++)
        joins[i] =
            (struct browser_join){c->browser.join.items[i].url, c->browser.join.items[i].session};
    d->loop = loop;
    d->config = c;
    d->bridge = bridge;
    list_init(&d->seats);
    d->pages = view_new("pages", NULL);
    router_add_view(bridge_router(bridge), d->pages);
    d->granted = MEM_ARRAY(struct span, c->browser.granted.n + 1);
    for (size_t i = 0; i < c->browser.granted.n; i++)
        d->granted[i] = span_str(c->browser.granted.items[i]);
    d->grants_file = place_path(PLACE_STATE, "browser-grants.json");
    d->remotes_file = place_path(PLACE_STATE, "browser-pages.json");
    /* Where agents must show a token, pages and BTCP agents must: they have this one for it. */
    bool paired = c->browser.pairing || c->tokens.n;
    if (!(d->token = browser_desk_token(&err)))
        log_line(paired ? LOG_ERROR : LOG_INFO, "browser", "%s", err.text);
    if (d->token)
        log_add_secret(span_str(d->token));
    d->browser = browser_new(
        loop, bridge_router(bridge),
        &(struct browser_options){.session_ttl = c->browser.session_ttl,
                                  .session_idle = c->browser.session_idle,
                                  .max_sessions = c->limits.sessions,
                                  .max_message = c->limits.message,
                                  .strict = c->browser.capabilities != CAPABILITIES_AUTO,
                                  .listed_only = c->browser.capabilities == CAPABILITIES_LIST,
                                  .consent_timeout = c->browser.consent_timeout,
                                  .granted = d->granted,
                                  .n_granted = c->browser.granted.n,
                                  .token = d->token,
                                  .pairing = paired,
                                  .socket = c->browser.socket,
                                  .grants_file = d->grants_file,
                                  .remotes_file = d->remotes_file,
                                  .joins = joins,
                                  .n_joins = n_joins,
                                  .arg = d,
                                  .opened = on_opened,
                                  .may_end = may_end});
    front_route_pages(front, doors_want, on_page, d);
    return d;
}

void browser_desk_close(struct browser_desk *d, void (*closed)(void *arg), void *arg)
{
    d->closed = closed;
    d->closed_arg = arg;
    d->is_closing = true;
    d->closing++;
    LIST_EACH_SAFE (&d->seats, it)
        seat_free(d, LIST_ENTRY(it, struct seat, node));
    browser_close(d->browser, part_closed, d);
}
