/* /api/sessions: the agents that are connected, and ending one; /api/pages: the web pages that
 * offer tools. Called by api.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "mcp/agent/session_list.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* What the agent says of itself, redacted; null if it said nothing that can be shown. */
static void put_client(struct buf *out, const char *client)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, span_str(client));
    bool fine = shown.n && json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0 &&
                json_type_of(buf_view(&shown)) == JSON_OBJECT;
    struct json_slot name = {0}, version = {0};
    if (fine) {
        name = json_get(buf_view(&shown), "name");
        version = json_get(buf_view(&shown), "version");
    }
    if (name.type != JSON_STRING) {
        json_out_raw(out, "client", SPAN("null"));
        return;
    }
    json_out_open(out, "client", '{');
    json_out_raw(out, "name", name.value);
    if (version.type == JSON_STRING)
        json_out_raw(out, "version", version.value);
    buf_char(out, '}');
}

static bool is_shown(const struct sight *s, const struct session_list_entry *e)
{
    return !s->narrowed || (e->view && strcmp(e->view, s->view) == 0);
}

static void put_session(struct buf *out, const struct admin *a, const struct session_list_entry *e)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "id", e->label);
    put_client(out, e->client);
    json_out_str(out, "era", "initialize");
    json_out_str(out, "protocol", e->version);
    json_out_str(out, "way", e->way);
    json_out_text_or_null(out, "token", span_str(principal_name(e->principal)));
    json_out_text_or_null(out, "view", span_str(e->view));
    json_out_text_or_null(out, "endpoint", span_str(e->endpoint));
    status_put_time(out, "since", a, e->since);
    status_put_time(out, "last", a, e->last);
    json_out_number(out, "calls", e->calls);
    json_out_number(out, "open", *e->open);
    buf_char(out, '}');
}

static void end_session(const struct admin *a, struct http_exchange *x, const struct api_path *path)
{
    const struct session_list_entry *e = NULL;

    if (span_starts(path->name, SPAN("stateless-"))) {
        http_refuse(x, 409, "this caller has no session that could be ended",
                    "each of its requests is independent; revoke its token instead");
        return;
    }
    do
        e = session_list_next(bridge_sessions(a->bridge), e);
    while (e && !span_is(path->name, e->label));
    if (!e) {
        http_refuse(x, 404, "no such session, or not any more", "/api/sessions lists them");
        return;
    }
    log_info("mcp", "session %s ended, by %s", e->label,
             path->caller->principal ? path->caller->principal->name : http_exchange_peer(x));
    e->hang_up(e->owner);
    http_respond(x, 200, "application/json", SPAN_EMPTY, SPAN("{}\n"));
}

void sessions_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                     const struct api_path *path)
{
    if (path->name.n && span_is(path->verb, "end")) {
        if (api_wants_post(x, req))
            end_session(a, x, path);
    } else if (path->name.n) {
        api_no_such_path(x);
    } else if (admin_wants_get(x, req)) {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '[');
        for (const struct session_list_entry *e = NULL;
             (e = session_list_next(bridge_sessions(a->bridge), e));)
            if (is_shown(&path->sight, e))
                put_session(out, a, e);
        if (!path->sight.narrowed)
            stateless_put(out, a); /* their views are not recorded */
        buf_str(out, "]\n");
        http_respond_end(x);
    }
}

/* --- web pages --- */

void sessions_handle_pages(struct admin *a, struct http_exchange *x, const struct http_request *req,
                           const struct api_path *path)
{
    struct browser_numbers now = {0};
    BUF_SCOPED list = {0}, shown = {0};

    if (path->name.n) {
        api_no_such_path(x);
    } else if (admin_wants_get(x, req)) {
        hub_count_pages(a->hub, &now);
        if (now.of)
            browser_put_pages(&list, now.of, true);
        else
            buf_str(&list, "[]");
        log_redact(&shown, buf_view(&list));
        buf_char(&shown, '\n');
        http_respond(x, 200, "application/json", SPAN_EMPTY, buf_view(&shown));
    }
}
