/* GET /api/calls: the recorded calls as a list, or one with its arguments and result, secrets
 * redacted. Called by api.c; news.c, story.c, replay.c, record_file.c and stateless.c use its
 * parts. */
#include "admin/story.h"
#include "base/log.h"
#include "base/utf8.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>

enum { SHOWN = 50, SHOWN_MAX = 1000, ERROR_SHOWN = 300, NAME_SHOWN = 4096 };

static const char *state_of(const struct admin *a, const struct record *rec)
{
    const struct call *c = rec->ended ? NULL : router_find(a->router, rec->id);

    if (!rec->ended)
        return c && c->state == CALL_OPEN ? "running" : "waiting";
    if (rec->kind == OUTCOME_FAILED)
        return "failed";
    return rec->kind == OUTCOME_ERROR || rec->is_error ? "error" : "ok";
}

void calls_put_text(struct buf *out, const char *name, struct span text, size_t max)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, text);
    struct span cut = span_cut(buf_view(&shown), 0, max);
    while (cut.n < shown.n && cut.n && utf8_tail((unsigned char)shown.p[cut.n]))
        cut.n--;
    json_out_text(out, name, cut);
}

/* Redacting a secret that is longer than one JSON string may leave text that is no JSON: such a
 * body is shown as text, too. */
bool calls_put_body(struct buf *out, const char *name, const struct admin *a,
                    const struct record_body *body)
{
    bool whole = recorder_is_whole(&a->recorder, body);
    BUF_SCOPED shown = {0};

    log_redact(&shown, body->kept);
    if (!body->kept.n) {
        json_out_raw(out, name, SPAN("null"));
    } else if (whole && json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0) {
        json_out(out, name);
        json_one_line(out, buf_view(&shown));
    } else {
        calls_put_text(out, name, body->kept, recorder_shown(&a->recorder, body));
    }
    return whole;
}

/* The arguments of a tool call; for other operations, all params. */
static struct record_body given_to(const struct admin *a, const struct record *rec)
{
    if (rec->op != OP_CALL_TOOL || !recorder_is_whole(&a->recorder, &rec->params) ||
        !rec->params.whole)
        return rec->params;
    struct span arguments = json_get(rec->params.kept, "arguments").value;
    return (struct record_body){arguments, arguments.n};
}

struct span calls_client(const struct admin *a, const struct record *rec)
{
    struct span info = rec->client;

    if (!info.n && recorder_is_whole(&a->recorder, &rec->params))
        info = mcp_client_of(rec->params.kept);
    if (json_skim(info, NULL, NULL, NULL, NULL) == 0 && json_type_of(info) == JSON_OBJECT &&
        json_get(info, "name").type == JSON_STRING)
        return info;
    return SPAN_EMPTY;
}

void calls_put_client(struct buf *out, const struct admin *a, const struct record *rec)
{
    struct span info = calls_client(a, rec);
    BUF_SCOPED scratch = {0}, more = {0};

    if (!info.n) {
        json_out_raw(out, "client", SPAN("null"));
        return;
    }
    struct json_slot version = json_get(info, "version");
    json_out_open(out, "client", '{');
    calls_put_text(out, "name", json_text(json_get(info, "name").value, &scratch), ERROR_SHOWN);
    if (version.type == JSON_STRING)
        calls_put_text(out, "version", json_text(version.value, &more), ERROR_SHOWN);
    buf_char(out, '}');
}

static void put_members(struct buf *out, const struct admin *a, const struct record *rec)
{
    uint64_t took = rec->ended ? rec->took : router_timers(a->router)->now - rec->opened_at;
    const char *method = mcp_operations[rec->op].method;

    json_out(out, "id");
    buf_printf(out, "\"%" PRIu64 "\"", rec->id);
    json_out_open(out, "at", '"');
    status_put_stamp(out, status_unix(a, rec->opened_at));
    buf_char(out, '"');
    json_out_text_or_null(out, "token", rec->token);
    calls_put_client(out, a, rec);
    json_out_text_or_null(out, "session", rec->session);
    json_out_text_or_null(out, "server", rec->server);
    /* For a method that MCP does not know, the operation is the name of the method. */
    calls_put_text(out, "operation", method ? span_str(method) : rec->name, rec->name.n + 64);
    calls_put_text(out, "name", rec->name, NAME_SHOWN);
    json_out_str(out, "state", state_of(a, rec));
    json_out_bool(out, "live", !rec->ended);
    json_out_number(out, "retried", rec->retried);
    json_out_number(out, "duration_ms", took);
    json_out_number(out, "arguments_bytes", given_to(a, rec).whole);
    json_out_number(out, "result_bytes", rec->result.whole);
    if (rec->error.n)
        calls_put_text(out, "error", rec->error, ERROR_SHOWN);
    else
        json_out_raw(out, "error", SPAN("null"));
    if (rec->decided_by.n)
        calls_put_text(out, rec->allowed ? "approved_by" : "refused_by", rec->decided_by,
                       ERROR_SHOWN);
}

void calls_put(struct buf *out, const struct admin *a, const struct record *rec)
{
    struct record_body given = given_to(a, rec);

    json_out_open(out, NULL, '{');
    put_members(out, a, rec);
    bool arguments = calls_put_body(out, "arguments", a, &given);
    bool result = calls_put_body(out, "result", a, &rec->result);
    json_out_open(out, "cut", '{');
    json_out_bool(out, "arguments", !arguments);
    json_out_bool(out, "result", !result);
    buf_char(out, '}');
    replay_put_member(out, a, rec);
    story_put(out, a, rec);
    buf_char(out, '}');
}

void calls_put_row(struct buf *out, const struct admin *a, const struct record *rec)
{
    json_out_open(out, NULL, '{');
    put_members(out, a, rec);
    buf_char(out, '}');
}

static void show_record(const struct admin *a, struct http_exchange *x, const struct record *rec)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    BUF_SCOPED text = {0};

    calls_put(&text, a, rec);
    buf_span(out, buf_view(&text));
    buf_char(out, '\n');
    http_respond_end(x);
}

/* The query of a request for a list of calls. */
struct calls_query {
    uint64_t limit, after;
    struct buf server;
    bool of_server, failed;
    const struct sight *sight;
};

static bool read_question(const struct http_request *req, struct calls_query *q)
{
    BUF_SCOPED scratch = {0};

    *q = (struct calls_query){.limit = SHOWN, .sight = q->sight};
    struct span server = http_query(req->query, "server", &scratch);
    q->of_server = server.p != NULL;
    buf_span(&q->server, server);
    q->failed = api_has_flag(req, "failed");
    return api_read_number(req, "limit", &q->limit) && api_read_number(req, "after", &q->after) &&
           q->limit <= SHOWN_MAX;
}

static bool is_wanted(const struct calls_query *q, const struct record *rec)
{
    bool went_wrong = rec->ended && (rec->kind != OUTCOME_RESULT || rec->is_error);

    return sight_shows_call(q->sight, rec->server, rec->op, rec->name) &&
           (!q->of_server || span_eq(rec->server, buf_view(&q->server))) &&
           (!q->failed || went_wrong);
}

static void list_records(const struct admin *a, struct http_exchange *x,
                         const struct calls_query *q)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    const struct record *rec = NULL;
    uint64_t n = 0;

    buf_char(out, '[');
    while (n < q->limit && (rec = recorder_next(&a->recorder, rec)) && rec->id > q->after) {
        if (!is_wanted(q, rec))
            continue;
        n++;
        calls_put_row(out, a, rec);
    }
    buf_str(out, "]\n");
    http_respond_end(x);
}

/* /api/calls/ID and /api/calls/ID/replay. */
static void handle_one(struct admin *a, struct http_exchange *x, const struct http_request *req,
                       const struct api_path *path)
{
    uint64_t id = 0;
    const struct record *rec =
        api_read_id(path->name, &id) ? recorder_find(&a->recorder, id) : NULL;

    if (path->verb.n && !span_is(path->verb, "replay"))
        api_no_such_path(x);
    else if (!rec || !sight_shows_call(&path->sight, rec->server, rec->op, rec->name))
        http_refuse(x, 404, "no such call, or not any more", "/api/calls lists them");
    else if (path->verb.n)
        replay_handle(a, x, req, path, rec);
    else if (admin_wants_get(x, req))
        show_record(a, x, rec);
}

void calls_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path)
{
    struct calls_query q;

    if (!a->recorder.max_chunks) {
        http_refuse(x, 404, "nothing is recorded", "set 'record' in the configuration: 1MiB");
    } else if (path->name.n) {
        handle_one(a, x, req, path);
    } else if (admin_wants_get(x, req)) {
        q.sight = &path->sight;
        if (read_question(req, &q))
            list_records(a, x, &q);
        else
            http_refuse(x, 400, "bad query",
                        "limit (at most 1000) and after take numbers; server a name; failed=1");
        buf_fini(&q.server);
    }
}
