/* The paths under /api: servers (show, start, stop, restart), approvals and reload; calls and logs
 * are passed on to calls.c and logs.c. Called by way of the table of paths in admin.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "base/visible.h"
#include "core/approval.h"
#include "mcp/consent.h"
#include "wire/json.h"

#include <inttypes.h>

/* "/servers/files/stop" */
static struct api_path path_of(struct span rest)
{
    struct span parts[3] = {{0}};

    for (size_t i = 0; i < 3 && rest.n > 1; i++) {
        rest = span_from(rest, 1);
        parts[i] = span_cut(rest, 0, span_find(rest, '/'));
        rest = span_from(rest, parts[i].n);
    }
    if (rest.n)
        parts[2] = SPAN("?"); /* deeper than any path of the API */
    return (struct api_path){parts[0], parts[1], parts[2]};
}

static bool wants_post(struct http_exchange *x, const struct http_request *req)
{
    if (span_is(req->method, "POST"))
        return true;
    http_refuse_with(x, 405, SPAN("Allow: POST\r\n"), "method not allowed",
                     "this does something: POST");
    return false;
}

/* --- servers --- */

static void show_server(const struct admin *a, struct http_exchange *x, int status,
                        const struct provider *p)
{
    struct buf *out = http_respond_begin(x, status, "application/json", SPAN_EMPTY);

    status_put_server(out, a, p);
    buf_char(out, '\n');
    http_respond_end(x);
}

static void order_server(struct admin *a, struct http_exchange *x, struct provider *p,
                         struct span verb)
{
    static const struct {
        const char *verb;
        void (*act)(struct provider *p);
    } rows[] = {{"start", provider_resume}, {"stop", provider_halt}, {"restart", provider_restart}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!span_is(verb, rows[i].verb))
            continue;
        log_info(p->alias, "%s, by %s", rows[i].verb, http_exchange_peer(x));
        rows[i].act(p);
        show_server(a, x, 202, p); /* accepted: the new state comes later */
        return;
    }
    api_no_such_path(x);
}

static void handle_servers(struct admin *a, struct http_exchange *x, const struct http_request *req,
                           const struct api_path *path)
{
    struct provider *p = NULL;

    if (!path->name.n) {
        if (!admin_wants_get(x, req))
            return;
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        status_put_servers(out, a);
        buf_char(out, '\n');
        http_respond_end(x);
        return;
    }
    do
        p = bridge_next(a->bridge, p);
    while (p && !span_is(path->name, p->alias));
    if (!p)
        http_refuse(x, 404, "no such server", "/api/servers lists them");
    else if (!path->verb.n && admin_wants_get(x, req))
        show_server(a, x, 200, p);
    else if (path->verb.n && wants_post(x, req))
        order_server(a, x, p, path->verb);
}

/* --- approvals --- */

static void put_arguments(struct buf *out, const struct call *c)
{
    struct buf shown = {0};

    consent_put_arguments(&shown, c);
    /* Hiding a secret that reached past a string may leave text that is no JSON. */
    if (json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0)
        buf_span(out, buf_view(&shown));
    else
        json_quote(out, buf_view(&shown));
    buf_fini(&shown);
}

static void put_held(struct buf *out, const struct admin *a, const struct call *c)
{
    static const char *const words[] = {[APPROVE_BY_OPERATOR] = "operator",
                                        [APPROVE_BY_CLIENT] = "client",
                                        [APPROVE_BY_EITHER] = "either"};
    uint64_t now = router_timers(a->router)->now;
    struct buf tool = {0};

    visible_put(&tool, span_of(c->name, c->name_n), 0);
    buf_printf(out, "{\"id\":\"%" PRIu64 "\",\"server\":", c->handle);
    json_quote(out, span_str(c->provider->alias));
    buf_str(out, ",\"tool\":");
    json_quote(out, buf_view(&tool));
    buf_str(out, ",\"arguments\":");
    put_arguments(out, c);
    buf_str(out, ",\"since\":\"");
    status_put_time(out, a, c->opened_at);
    buf_printf(out, "\",\"refused_in_ms\":%" PRIu64 ",\"asked\":\"%s\",\"approve_by\":\"%s\"}",
               c->deadline.at - now, approval_is_with_consumer(c) ? "client" : "operator",
               words[c->provider->policy.approve_by]);
    buf_fini(&tool);
}

static void list_held(const struct admin *a, struct http_exchange *x)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    const char *comma = "";

    buf_char(out, '[');
    for (struct call *c = NULL; (c = approval_next(a->router, c)); comma = ",") {
        buf_str(out, comma);
        put_held(out, a, c);
    }
    buf_str(out, "]\n");
    http_respond_end(x);
}

bool api_read_number(const struct http_request *req, const char *name, uint64_t *n)
{
    struct buf scratch = {0};
    struct span text = http_query(req->query, name, &scratch);
    int64_t value = 0;
    bool fine = !text.p || (json_int(text, &value) && value >= 0);

    if (text.p && fine)
        *n = (uint64_t)value;
    buf_fini(&scratch);
    return fine;
}

bool api_read_id(struct span text, uint64_t *id)
{
    int64_t n;

    if (!text.n || text.n > 18)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    if (!json_int(text, &n))
        return false;
    *id = (uint64_t)n;
    return true;
}

/* Reads {"approved": true} or false; returns false for any other body. */
static bool read_decision(struct span body, bool *approved)
{
    static const struct json_shape_row rows[] = {{"approved", 0, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot slot = {0};

    if (json_skim(body, &shape, &slot, NULL, NULL))
        return false;
    *approved = slot.type == JSON_TRUE;
    return slot.type == JSON_TRUE || slot.type == JSON_FALSE;
}

/* Which operator decides, as far as the request tells. */
static void put_operator(struct buf *out, const struct caller *caller,
                         const struct http_exchange *x, const struct http_request *req)
{
    if (caller->way == CALLER_SOCKET)
        buf_str(out, "the operator (control socket)");
    else if (caller->principal)
        buf_printf(out, "the operator (token %s)", caller->principal);
    else
        buf_printf(out, "the operator (%s%s)", http_header(req, "origin").p ? "the page, " : "",
                   http_exchange_peer(x));
}

static void decide(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path)
{
    struct buf by = {0};
    uint64_t id = 0;
    bool approved = false;

    if (!read_decision(req->body, &approved)) {
        http_refuse(x, 400, "no decision in the body", "send {\"approved\": true} or false");
        return;
    }
    put_operator(&by, path->caller, x, req);
    const struct verdict verdict = {approved, buf_cstr(&by), "the operator"};
    enum decided decided =
        api_read_id(path->name, &id) ? approval_decide(a->router, id, &verdict) : DECIDED_UNKNOWN;
    buf_fini(&by);
    if (decided == DECIDED_UNKNOWN) {
        http_refuse(x, 404, "no such call waits", "/api/approvals lists those that do");
    } else if (decided == DECIDED_ELSEWHERE) {
        http_refuse(x, 409, "its client is being asked",
                    "only the client can answer for it (servers.*.approve_by)");
    } else {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_printf(out, "{\"id\":\"%" PRIu64 "\",\"approved\":%s}\n", id,
                   approved ? "true" : "false");
        http_respond_end(x);
    }
}

static void handle_approvals(struct admin *a, struct http_exchange *x,
                             const struct http_request *req, const struct api_path *path)
{
    if (path->verb.n)
        api_no_such_path(x);
    else if (path->name.n && wants_post(x, req))
        decide(a, x, req, path);
    else if (!path->name.n && admin_wants_get(x, req))
        list_held(a, x);
}

/* --- the configuration --- */

static void handle_reload(struct admin *a, struct http_exchange *x, const struct http_request *req,
                          const struct api_path *path)
{
    struct buf report = {0};
    struct err err = {0};

    if (path->name.n) {
        api_no_such_path(x);
        return;
    }
    if (!wants_post(x, req))
        return;
    if (hub_reload(a->hub, &report, &err)) {
        http_refuse(x, 409, err.text, err.hint[0] ? err.hint : "nothing was changed");
    } else {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_span(out, buf_view(&report));
        buf_char(out, '\n');
        http_respond_end(x);
    }
    buf_fini(&report);
}

/* --- the table of paths --- */

static const struct {
    const char *list;
    void (*handle)(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path);
    const char *paths; /* for the answer to an unknown path */
} rows[] = {
    {"servers", handle_servers, "/api/servers, /api/servers/<name>[/start|stop|restart]"},
    {"approvals", handle_approvals, "/api/approvals[/<id>]"},
    {"calls", calls_handle, "/api/calls[/<id>]"},
    {"logs", logs_handle, "/api/logs"},
    {"reload", handle_reload, "/api/reload"},
};

void api_no_such_path(struct http_exchange *x)
{
    struct buf hint = {0};

    buf_str(&hint, "there are ");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        buf_printf(&hint, "%s%s",
                   i == 0                   ? ""
                   : i + 1 < COUNT_OF(rows) ? ", "
                                            : " and ",
                   rows[i].paths);
    http_refuse(x, 404, "no such path", buf_cstr(&hint));
    buf_fini(&hint);
}

void api_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                const struct http_request *req, struct span rest)
{
    struct api_path path = path_of(rest);

    path.caller = caller;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (span_is(path.list, rows[i].list)) {
            rows[i].handle(owner, x, req, &path);
            return;
        }
    }
    api_no_such_path(x);
}
