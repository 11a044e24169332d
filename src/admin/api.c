/* The paths under /api: the table that passes a request to the file of admin/ for its list; the
 * handlers for reload, for the MCP requests of the page, and for codes and grants of our own
 * authorization server. Called through the table of paths in admin.c; the other files use its
 * helpers. */
#include "admin/inside.h"
#include "base/log.h"
#include "hub/auth/issuer.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>

/* "/servers/files/stop" */
static struct api_path path_of(struct span rest)
{
    struct span parts[4] = {{0}};

    for (size_t i = 0; i < 4 && rest.n > 1; i++) {
        rest = span_from(rest, 1);
        parts[i] = span_cut(rest, 0, span_find(rest, '/'));
        rest = span_from(rest, parts[i].n);
    }
    if (rest.n)
        parts[3] = SPAN("?"); /* deeper than any path of the API */
    return (struct api_path){
        .list = parts[0], .name = parts[1], .verb = parts[2], .last = parts[3]};
}

bool api_wants_post(struct http_exchange *x, const struct http_request *req)
{
    if (span_is(req->method, "POST"))
        return true;
    http_refuse_with(x, 405, SPAN("Allow: POST\r\n"), "method not allowed",
                     "this does something: POST");
    return false;
}

bool api_has_flag(const struct http_request *req, const char *name)
{
    BUF_SCOPED scratch = {0};
    struct span value = http_query(req->query, name, &scratch);

    return value.p && !span_is(value, "0") && !span_is(value, "false");
}

bool api_read_number(const struct http_request *req, const char *name, uint64_t *n)
{
    BUF_SCOPED scratch = {0};
    struct span text = http_query(req->query, name, &scratch);
    int64_t value = 0;
    bool fine = !text.p || (json_int(text, &value) && value >= 0);

    if (text.p && fine)
        *n = (uint64_t)value;
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

/* --- the configuration --- */

static void handle_reload(struct admin *a, struct http_exchange *x, const struct http_request *req,
                          const struct api_path *path)
{
    BUF_SCOPED report = {0};
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
}

/* --- MCP, for the page --- */

static void handle_mcp(struct admin *a, struct http_exchange *x, const struct http_request *req,
                       const struct api_path *path)
{
    if (path->verb.n)
        api_no_such_path(x);
    else if (path->caller->viewer)
        http_refuse(x, 403, "this token is read-only",
                    "its role is viewer (auth.tokens.*.role): calls need one of role: operator");
    else if (api_wants_post(x, req))
        hub_operate(a->hub, path->caller, x, req, path->name);
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
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
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
        int code = issuer_revoke(issuer, path->name);
        if (!code)
            http_respond(x, 200, "application/json", SPAN_EMPTY, SPAN("{}\n"));
        else if (code != -ENOENT)
            http_refuse(x, 503, "the grant has ended, but its end cannot be kept",
                        "it would be valid again after a restart: make room for grants.json in the "
                        "state folder, and revoke it once more");
        else
            http_refuse(x, 404, "no such grant",
                        "'rialto pair --list' shows them, and so does /api/grants");
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
    bool whole;        /* shows more than a view: refused to viewers who have one */
    bool deep;         /* takes paths of four parts */
} rows[] = {
    {"servers", servers_handle,
     "/api/servers, /api/servers/<name>[/start|stop|restart|enable|disable|login|logout|messages]"},
    {"config", servers_handle_config, "/api/config", true},
    {"tools", tools_handle, "/api/tools[/<name>]"},
    {"approvals", approvals_handle, "/api/approvals[/<id>]"},
    {"calls", calls_handle, "/api/calls[/<id>[/replay]]"},
    {"logs", logs_handle, "/api/logs", true},
    {"events", live_handle, "/api/events"},
    {"grants", handle_grants, "/api/grants[/<id>/revoke]", true},
    {"mcp", handle_mcp, "/api/mcp[/<server>]"},
    {"pair", handle_pair, "/api/pair"},
    {"reload", handle_reload, "/api/reload"},
    {"sessions", sessions_handle, "/api/sessions[/<id>/end]"},
    {"pages", sessions_handle_pages, "/api/pages", true},
    {"tasks", task_rows_handle, "/api/tasks[/<id>/cancel]", true},
    {"numbers", charts_handle, "/api/numbers"},
    {"bus", buses_handle, "/api/bus[/dead-letters/<id>/resend]", true, true},
};

void api_no_such_path(struct http_exchange *x)
{
    BUF_SCOPED hint = {0};

    buf_str(&hint, "there are ");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        buf_printf(&hint, "%s%s",
                   i == 0                   ? ""
                   : i + 1 < COUNT_OF(rows) ? ", "
                                            : " and ",
                   rows[i].paths);
    http_refuse(x, 404, "no such path", buf_cstr(&hint));
}

void api_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                const struct http_request *req, struct span rest)
{
    struct admin *a = owner;
    struct api_path path = path_of(rest);

    status_mind_clock(a);
    path.caller = caller;
    path.sight = sight_of(a->hub, caller);
    http_exchange_add_headers(x, SPAN("Cache-Control: no-store\r\n"));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (span_is(path.list, rows[i].list)) {
            if (path.last.n && !rows[i].deep)
                api_no_such_path(x);
            else if (rows[i].whole && path.sight.narrowed)
                admin_refuse_view(x);
            else
                rows[i].handle(owner, x, req, &path);
            return;
        }
    }
    api_no_such_path(x);
}
