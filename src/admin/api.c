/* The paths under /api: servers (show, start, stop, restart), tools and reload; approvals, calls and
 * logs are passed on to the files of that name; codes and grants of our own authorization server. Called
 * by way of the table of paths in admin.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "hub/issuer.h"
#include "hub/tool_list.h"
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

bool api_wants_post(struct http_exchange *x, const struct http_request *req)
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
    else if (span_is(path->verb, "login") || span_is(path->verb, "logout"))
        logins_handle(a, x, req, p, span_is(path->verb, "logout"));
    else if (path->verb.n && api_wants_post(x, req))
        order_server(a, x, p, path->verb);
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

/* --- tools --- */

static void handle_tools(struct admin *a, struct http_exchange *x, const struct http_request *req,
                         const struct api_path *path)
{
    if (path->name.n) {
        api_no_such_path(x);
    } else if (admin_wants_get(x, req)) {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        BUF_SCOPED list = {0};
        tool_list_put(&list, a->bridge);
        buf_span(out, buf_view(&list));
        buf_char(out, '\n');
        http_respond_end(x);
    }
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
    if (!api_wants_post(x, req))
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

/* --- our own authorization server --- */

static void handle_pair(struct admin *a, struct http_exchange *x, const struct http_request *req,
                        const struct api_path *path)
{
    char code[PAIRING_CODE_SIZE];

    if (path->name.n)
        api_no_such_path(x);
    else if (!api_wants_post(x, req))
        ;
    else if (!issuer_put_code(front_issuer(hub_front(a->hub)), code))
        http_refuse(x, 409, "this Rialto is not where agents sign in",
                    "set auth.issuer: built-in, and public_url");
    else {
        struct buf *out =
            http_respond_begin(x, 200, "application/json", SPAN("Cache-Control: no-store\r\n"));
        buf_printf(out, "{\"code\":\"%s\"}\n", code);
        http_respond_end(x);
    }
}

static void handle_grants(struct admin *a, struct http_exchange *x, const struct http_request *req,
                          const struct api_path *path)
{
    struct issuer *issuer = front_issuer(hub_front(a->hub));

    if (path->name.n && span_is(path->verb, "revoke")) {
        if (!api_wants_post(x, req))
            return;
        if (issuer_revoke(issuer, path->name))
            http_respond(x, 200, "application/json", SPAN_EMPTY, SPAN("{}\n"));
        else
            http_refuse(x, 404, "no such grant", "/api/grants lists them");
        return;
    }
    if (path->name.n) {
        api_no_such_path(x);
        return;
    }
    if (!admin_wants_get(x, req))
        return;
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    issuer_put_grants(out, issuer);
    buf_char(out, '\n');
    http_respond_end(x);
}

/* --- the table of paths --- */

static const struct {
    const char *list;
    void (*handle)(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path);
    const char *paths; /* for the answer to an unknown path */
} rows[] = {
    {"servers", handle_servers,
     "/api/servers, /api/servers/<name>[/start|stop|restart|login|logout]"},
    {"tools", handle_tools, "/api/tools"},
    {"approvals", approvals_handle, "/api/approvals[/<id>]"},
    {"calls", calls_handle, "/api/calls[/<id>]"},
    {"logs", logs_handle, "/api/logs"},
    {"grants", handle_grants, "/api/grants[/<id>/revoke]"},
    {"pair", handle_pair, "/api/pair"},
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
