/* /api/servers and /api/config: lists the servers, shows one with all that is known, starts and
 * stops servers, and changes them in the configuration file. Called by api.c; news.c asks for
 * rows. */
#include "admin/inside.h"
#include "base/log.h"
#include "config/check.h"
#include "config/server_edit.h"
#include "hub/graph/lock.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { STDERR_LINES = 100 };

static struct provider *find(const struct admin *a, struct span name)
{
    struct provider *p = NULL;

    do
        p = bridge_next(a->bridge, p);
    while (p && !span_is(name, p->alias));
    return p;
}

/* --- servers of the configuration that are not in use --- */

const struct config_server *servers_next_absent(const struct admin *a,
                                                const struct config_server *after)
{
    const struct config *c = bridge_config(a->bridge);

    for (size_t i = after ? (size_t)(after - c->servers.items) + 1 : 0; i < c->servers.n; i++)
        if (!find(a, span_str(c->servers.items[i].alias)))
            return &c->servers.items[i];
    return NULL;
}

static const struct config_server *find_absent(const struct admin *a, struct span name)
{
    const struct config_server *s = NULL;

    do
        s = servers_next_absent(a, s);
    while (s && !span_is(name, s->alias));
    return s;
}

static void put_absent_members(struct buf *out, const struct admin *a,
                               const struct config_server *s)
{
    const char *lacks = bridge_lacks(a->bridge, s->alias);
    BUF_SCOPED why = {0};

    if (s->enabled && lacks)
        buf_printf(&why, "no value for %s", lacks);
    else if (s->enabled)
        buf_str(&why, "it would start this same configuration again");
    json_out_str(out, "name", s->alias);
    json_out_str(out, "state", s->enabled ? "left out" : "disabled");
    json_out_bool(out, "enabled", s->enabled);
    json_out_text_or_null(out, "last_error", buf_view(&why));
    health_put_lacks(out, a, s->alias);
}

void servers_put_absent(struct buf *out, const struct admin *a, const struct config_server *s)
{
    buf_char(out, '{');
    put_absent_members(out, a, s);
    buf_char(out, '}');
}

/* --- one server --- */

/* The instances of a server: the shared ones, and those of single sessions. */
static void put_instances(struct buf *out, const struct admin *a, const char *alias)
{
    json_out_open(out, "processes", '[');
    for (struct provider *p = NULL; (p = router_next_provider(a->router, p));) {
        struct provider_facts facts = provider_describe(p);
        if (!span_is(span_str(p->alias), alias))
            continue;
        json_out_open(out, NULL, '{');
        if (facts.pid)
            json_out_number(out, "pid", (uint64_t)facts.pid);
        json_out_str(out, "state", provider_state_name(p->state));
        json_out_str(out, "for", p->entry ? "all" : "a session");
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* Raw JSON of a peer or of the file, redacted; as text when redacting left no JSON. */
static void put_raw(struct buf *out, const char *name, struct span json)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, json);
    if (!json.n)
        json_out_raw(out, name, SPAN("null"));
    else if (json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0)
        json_out_raw(out, name, buf_view(&shown));
    else
        json_out_text(out, name, buf_view(&shown));
}

static void put_lock(struct buf *out, const struct admin *a, const char *alias,
                     const struct sight *s)
{
    const struct lock *lock = bridge_lock(a->bridge);

    json_out_open(out, "lock", '{');
    json_out_open(out, "held", '[');
    for (const struct lock_held *h = NULL; (h = lock_next(lock, h));) {
        if (strcmp(h->server, alias) != 0 ||
            !sight_shows_call(s, span_str(alias), OP_CALL_TOOL, span_str(h->tool)))
            continue;
        json_out_open(out, NULL, '{');
        json_out_redacted(out, "tool", span_str(h->tool));
        json_out_str(out, "change", h->known ? "changed" : "new");
        json_out_bool(out, "refused", h->refused);
        buf_char(out, '}');
    }
    buf_str(out, "]}");
}

/* What a viewer who has a view is not shown of a server: its log and its entry in the file. */
static void put_inside(struct buf *out, const struct admin *a, const char *alias)
{
    BUF_SCOPED entry = {0};
    const char *file = hub_file(a->hub);

    json_out_open(out, "stderr", '[');
    log_ring_put_texts(out, &a->log, span_str(alias), STDERR_LINES);
    buf_char(out, ']');
    put_raw(out, "entry",
            file && server_edit_put_entry(&entry, file, alias) ? buf_view(&entry) : SPAN_EMPTY);
    json_out_redacted(out, "entry_file", span_str(entry.n ? file : NULL));
}

static void put_details(struct buf *out, const struct admin *a, const struct provider *p,
                        const struct sight *s)
{
    const struct mcp_provider *server = bridge_mcp_provider(p);
    const char *instructions = server ? mcp_provider_instructions(server) : NULL;

    json_out_bool(out, "enabled", true);
    put_raw(out, "server_info", server ? mcp_provider_info(server) : SPAN_EMPTY);
    put_raw(out, "capabilities", server ? mcp_provider_capabilities(server) : SPAN_EMPTY);
    json_out_redacted(out, "instructions", span_str(instructions));
    put_instances(out, a, p->alias);
    put_lock(out, a, p->alias, s);
}

static void show_server(const struct admin *a, struct http_exchange *x, int status,
                        struct span name, const struct sight *s)
{
    const struct provider *p = find(a, name);
    const struct config_server *absent = p ? NULL : find_absent(a, name);
    BUF_SCOPED row = {0}, more = {0};

    if (p) {
        status_put_server(&row, a, p);
        put_details(&more, a, p, s);
    } else if (absent) {
        servers_put_absent(&row, a, absent);
    }
    if (absent || p) {
        if (!s->narrowed)
            put_inside(&more, a, p ? p->alias : absent->alias);
    } else {
        buf_str(&row, "{}"); /* it was removed */
    }
    struct buf *out = http_respond_begin(x, status, "application/json", SPAN_EMPTY);
    json_insert(out, buf_view(&row), buf_view(&more));
    buf_char(out, '\n');
    http_respond_end(x);
}

/* --- start, stop, restart --- */

static void log_who(const char *alias, const char *what, const struct http_exchange *x,
                    const struct caller *caller)
{
    if (caller->principal)
        log_info(alias, "%s, by the token %s (%s)", what, caller->principal->name,
                 http_exchange_peer(x));
    else
        log_info(alias, "%s, by %s", what, http_exchange_peer(x));
}

static bool order_server(struct admin *a, struct http_exchange *x, struct provider *p,
                         const struct api_path *path)
{
    static const struct {
        const char *verb;
        void (*act)(struct provider *p);
    } rows[] = {{"start", bridge_server_resume},
                {"stop", provider_halt},
                {"restart", bridge_server_restart}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!span_is(path->verb, rows[i].verb))
            continue;
        log_who(p->alias, rows[i].verb, x, path->caller);
        rows[i].act(p);
        show_server(a, x, 202, path->name, &path->sight); /* accepted: the new state comes later */
        return true;
    }
    return false;
}

/* --- changes of the file --- */

/* An entry names a program that we start. So without a token it is changed only by the user that
 * this daemon runs as, not by everybody who can reach a port of this machine. */
static bool may_edit(struct http_exchange *x, const struct caller *caller)
{
    if (caller->principal || http_exchange_is_by_us(x))
        return true;
    http_refuse(x, 403, "only for the user that this Rialto runs as",
                "do it as that user, or with a token of an operator (rialto token add NAME)");
    return false;
}

static void edit(struct admin *a, struct http_exchange *x, const struct api_path *path,
                 const struct server_edit *e, const char *done)
{
    struct err err = {0};

    if (!may_edit(x, path->caller))
        return;
    int code = hub_edit(a->hub, e, &err);
    BUF_SCOPED shown = {0};

    log_redact(&shown, span_str(err.text));
    if (code) {
        http_refuse(x,
                    code == -ENOENT                            ? 404
                    : code == ERR_CONFIG || code == ERR_SYNTAX ? 400
                                                               : 409,
                    buf_cstr(&shown), err.hint[0] ? err.hint : "nothing was changed");
        return;
    }
    log_who(e->name, done, x, path->caller);
    live_mark(a->live, LIVE_CONFIG);
    show_server(a, x, e->act == SERVER_EDIT_ADD ? 201 : 200, span_str(e->name), &path->sight);
}

/* {"name": ..., "entry": {...}}; to change a server, the name is in the path. */
static void put_entry(struct admin *a, struct http_exchange *x, const struct http_request *req,
                      const struct api_path *path)
{
    static const struct json_shape_row rows[] = {{"name", 0, NULL}, {"entry", 1, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot slots[2] = {{0}};
    BUF_SCOPED scratch = {0};
    bool fresh = !path->name.n;

    if (json_skim(req->body, &shape, slots, NULL, NULL) || slots[1].type != JSON_OBJECT ||
        (fresh && slots[0].type != JSON_STRING)) {
        http_refuse(x, 400, "no entry in the body",
                    "send {\"name\": ..., \"entry\": {\"command\": ...}}");
        return;
    }
    struct span text = fresh ? json_text(slots[0].value, &scratch) : path->name;
    const char *wrong = check_alias(text);
    if (wrong) {
        http_refuse(x, 400, "this cannot be a server's name", wrong);
        return;
    }
    char *name = mem_span(text);
    edit(a, x, path,
         &(struct server_edit){.act = fresh ? SERVER_EDIT_ADD : SERVER_EDIT_CHANGE,
                               .name = name,
                               .entry = slots[1].value},
         fresh ? "added to the configuration" : "changed in the configuration");
    mem_free(name);
}

static void edit_named(struct admin *a, struct http_exchange *x, const struct api_path *path,
                       enum server_edit_act act, const char *done)
{
    char *name = mem_span(path->name);

    edit(a, x, path, &(struct server_edit){.act = act, .name = name}, done);
    mem_free(name);
}

/* --- requests --- */

static void list(const struct admin *a, struct http_exchange *x, const struct sight *s)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    status_put_servers(out, a, s);
    out->n--; /* drops the bracket: servers that are not in use follow */
    for (const struct config_server *it = NULL; (it = servers_next_absent(a, it));) {
        if (!sight_shows_server(s, span_str(it->alias)))
            continue;
        json_out_open(out, NULL, '{');
        put_absent_members(out, a, it);
        buf_char(out, '}');
    }
    buf_str(out, "]\n");
    http_respond_end(x);
}

static void handle_verb(struct admin *a, struct http_exchange *x, const struct http_request *req,
                        const struct api_path *path)
{
    struct provider *p = find(a, path->name);
    bool login = span_is(path->verb, "login"), logout = span_is(path->verb, "logout");

    if (span_is(path->verb, "messages") && path->sight.narrowed)
        admin_refuse_view(x); /* the messages contain lists, with items that the view hides */
    else if (span_is(path->verb, "messages") && p)
        messages_handle(a, x, req, p);
    else if ((login || logout) && p)
        logins_handle(x, req, p, logout);
    else if (!api_wants_post(x, req))
        return;
    else if (span_is(path->verb, "enable"))
        edit_named(a, x, path, SERVER_EDIT_ENABLE, "enabled in the configuration");
    else if (span_is(path->verb, "disable"))
        edit_named(a, x, path, SERVER_EDIT_DISABLE, "disabled in the configuration");
    else if (!p)
        http_refuse(x, 409, "this server is not in use", "enable it, or give it what it lacks");
    else if (!order_server(a, x, p, path))
        api_no_such_path(x);
}

void servers_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                    const struct api_path *path)
{
    bool looks = span_is(req->method, "GET") || span_is(req->method, "HEAD");
    bool known = find(a, path->name) || find_absent(a, path->name);

    if (!path->name.n && looks)
        list(a, x, &path->sight);
    else if (!path->name.n && api_wants_post(x, req))
        put_entry(a, x, req, path);
    else if (!path->name.n)
        return;
    else if (!known || !sight_shows_server(&path->sight, path->name))
        http_refuse(x, 404, "no such server", "/api/servers lists them");
    else if (path->verb.n)
        handle_verb(a, x, req, path);
    else if (looks)
        show_server(a, x, 200, path->name, &path->sight);
    else if (span_is(req->method, "PUT"))
        put_entry(a, x, req, path);
    else if (span_is(req->method, "DELETE"))
        edit_named(a, x, path, SERVER_EDIT_REMOVE, "removed from the configuration");
    else
        http_refuse_with(x, 405, SPAN("Allow: GET, HEAD, PUT, DELETE\r\n"), "method not allowed",
                         "GET shows a server, PUT changes its entry, DELETE removes it");
}

/* --- the configuration as a whole --- */

static void put_errors(struct buf *out, const struct admin *a)
{
    const struct problems *rejected = hub_rejected(a->hub);

    json_out_open(out, "errors", '[');
    for (size_t i = 0; i < rejected->n; i++) {
        const struct problem *p = &rejected->items[i];
        if (p->level != PROBLEM_ERROR)
            continue;
        json_out_open(out, NULL, '{');
        json_out_redacted(out, "file", span_str(p->file));
        json_out_number(out, "line", p->at.line);
        json_out_number(out, "column", p->at.column);
        json_out_str(out, "key", p->key);
        json_out_redacted(out, "reason", span_str(p->text));
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_views(struct buf *out, const struct config *c)
{
    json_out_open(out, "views", '[');
    for (size_t i = 0; i < c->views.n; i++)
        json_out_str(out, NULL, c->views.items[i].name);
    buf_char(out, ']');
}

void servers_handle_config(struct admin *a, struct http_exchange *x, const struct http_request *req,
                           const struct api_path *path)
{
    const struct front *front = hub_front(a->hub);
    const char *file = hub_file(a->hub);
    char *program = realpath("/proc/self/exe", NULL);

    if (path->name.n) {
        api_no_such_path(x);
    } else if (admin_wants_get(x, req)) {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '{');
        json_out_redacted(out, "file", span_str(file));
        json_out_redacted(out, "path", span_str(a->config ? a->config : file));
        json_out_bool(out, "writable",
                      !bridge_config(a->bridge)->fixed && (!file || access(file, W_OK) == 0));
        json_out_str(out, "state", hub_rejected(a->hub)->errors ? "rejected" : "ok");
        put_errors(out, a);
        json_out_open(out, "listen", '[');
        for (size_t i = 0; i < front_open_count(front); i++) {
            BUF_SCOPED origin = {0};
            front_put_origin(&origin, front, i);
            json_out_text(out, NULL, buf_view(&origin));
        }
        buf_char(out, ']');
        put_views(out, bridge_config(a->bridge));
        json_out_bool(out, "tokens", front_asks_tokens(front));
        json_out_redacted(out, "program", span_str(program));
        buf_str(out, "}\n");
        http_respond_end(x);
    }
    free(program); /* allocated by realpath */
}
