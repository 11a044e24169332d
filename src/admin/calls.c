/* GET /api/calls: the recorded calls as a list or one with its arguments and result, secrets
 * redacted. Called by api.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "base/utf8.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <time.h>

enum { SHOWN = 50, SHOWN_MAX = 1000, ERROR_SHOWN = 300 };

/* `at` is on the router's clock; written as "2026-02-18T06:30:24.017Z". */
static void put_moment(struct buf *out, const struct admin *a, uint64_t at)
{
    uint64_t ago = router_timers(a->router)->now - at;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    status_put_stamp(out, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 - ago);
}

static const char *state_of(const struct admin *a, const struct record *rec)
{
    const struct call *c = rec->ended ? NULL : router_find(a->router, rec->id);

    if (!rec->ended)
        return c && c->state == CALL_OPEN ? "running" : "waiting";
    if (rec->kind == OUTCOME_FAILED)
        return "failed";
    return rec->kind == OUTCOME_ERROR || rec->is_error ? "error" : "ok";
}

/* `text`, redacted and cut to `max` bytes, in whole characters. */
static void put_text(struct buf *out, const char *name, struct span text, size_t max)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, text);
    struct span cut = span_cut(buf_view(&shown), 0, max);
    while (cut.n < shown.n && cut.n && utf8_tail((unsigned char)shown.p[cut.n]))
        cut.n--;
    json_out_text(out, name, cut);
}

static bool is_whole(const struct record_body *body)
{
    return body->whole <= RECORD_SHOWN;
}

/*
 * JSON when the whole body was kept, else text. Hiding a secret that reached past a string may
 * leave text that is no JSON, which is then shown as text, too.
 */
static void put_body(struct buf *out, const char *name, struct span json, bool whole)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, json);
    if (!json.n) {
        json_out_raw(out, name, SPAN("null"));
    } else if (whole && json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0) {
        json_out(out, name);
        json_one_line(out, buf_view(&shown));
    } else {
        put_text(out, name, json, RECORD_SHOWN);
    }
}

/* The arguments of a tool call; for other operations, all params. */
static struct span given_to(const struct record *rec)
{
    if (rec->op != OP_CALL_TOOL || !is_whole(&rec->params))
        return rec->params.kept;
    return json_get(rec->params.kept, "arguments").value;
}

/* The name and version of the caller's program, as it says: of the session, or of the request. */
static void put_client(struct buf *out, const struct record *rec)
{
    struct span info = rec->client;

    if (!info.n && is_whole(&rec->params))
        info = mcp_client_of(rec->params.kept);
    struct json_slot name = {0}, version = {0};
    if (json_skim(info, NULL, NULL, NULL, NULL) == 0 && json_type_of(info) == JSON_OBJECT) {
        name = json_get(info, "name");
        version = json_get(info, "version");
    }
    BUF_SCOPED scratch = {0}, more = {0};
    if (name.type != JSON_STRING) {
        json_out_raw(out, "client", SPAN("null"));
        return;
    }
    json_out_open(out, "client", '{');
    put_text(out, "name", json_text(name.value, &scratch), ERROR_SHOWN);
    if (version.type == JSON_STRING)
        put_text(out, "version", json_text(version.value, &more), ERROR_SHOWN);
    buf_char(out, '}');
}

static void put_members(struct buf *out, const struct admin *a, const struct record *rec)
{
    uint64_t took = rec->ended ? rec->took : router_timers(a->router)->now - rec->opened_at;
    const char *method = mcp_operations[rec->op].method;

    json_out(out, "id");
    buf_printf(out, "\"%" PRIu64 "\"", rec->id);
    json_out_open(out, "at", '"');
    put_moment(out, a, rec->opened_at);
    buf_char(out, '"');
    json_out_text_or_null(out, "token", rec->token);
    put_client(out, rec);
    json_out_text_or_null(out, "server", rec->server);
    /* A method that MCP does not know has its name in the place of the operation. */
    put_text(out, "operation", method ? span_str(method) : rec->name, rec->name.n + 64);
    put_text(out, "name", rec->name, RECORD_SHOWN);
    json_out_str(out, "state", state_of(a, rec));
    json_out_number(out, "duration_ms", took);
    json_out_number(out, "arguments_bytes",
                    is_whole(&rec->params) ? given_to(rec).n : rec->params.whole);
    json_out_number(out, "result_bytes", rec->result.whole);
    if (rec->error.n)
        put_text(out, "error", rec->error, ERROR_SHOWN);
    else
        json_out_raw(out, "error", SPAN("null"));
    if (rec->decided_by.n)
        put_text(out, rec->allowed ? "approved_by" : "refused_by", rec->decided_by, ERROR_SHOWN);
}

static void show_record(const struct admin *a, struct http_exchange *x, const struct record *rec)
{
    bool params_whole = is_whole(&rec->params), result_whole = is_whole(&rec->result);
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_char(out, '{');
    put_members(out, a, rec);
    put_body(out, "arguments", given_to(rec), params_whole);
    put_body(out, "result", rec->result.kept, result_whole);
    json_out_open(out, "cut", '{');
    json_out_bool(out, "arguments", !params_whole);
    json_out_bool(out, "result", !result_whole);
    buf_str(out, "}}\n");
    http_respond_end(x);
}

/* The query of a request for a list of calls. */
struct calls_query {
    uint64_t limit, after;
    struct buf server;
    bool of_server, failed;
};

static bool read_question(const struct http_request *req, struct calls_query *q)
{
    BUF_SCOPED scratch = {0};

    *q = (struct calls_query){.limit = SHOWN};
    struct span server = http_query(req->query, "server", &scratch);
    q->of_server = server.p != NULL;
    buf_span(&q->server, server);
    buf_reset(&scratch, 0);
    struct span failed = http_query(req->query, "failed", &scratch);
    q->failed = failed.p && !span_is(failed, "0") && !span_is(failed, "false");
    return api_read_number(req, "limit", &q->limit) && api_read_number(req, "after", &q->after) &&
           q->limit <= SHOWN_MAX;
}

static bool is_wanted(const struct calls_query *q, const struct record *rec)
{
    bool went_wrong = rec->ended && (rec->kind != OUTCOME_RESULT || rec->is_error);

    return (!q->of_server || span_eq(rec->server, buf_view(&q->server))) &&
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
        json_out_open(out, NULL, '{');
        put_members(out, a, rec);
        buf_char(out, '}');
    }
    buf_str(out, "]\n");
    http_respond_end(x);
}

void calls_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path)
{
    const struct record *rec;
    struct calls_query q;
    uint64_t id = 0;

    if (path->verb.n) {
        api_no_such_path(x);
    } else if (!admin_wants_get(x, req)) {
        return;
    } else if (!a->recorder.max_chunks) {
        http_refuse(x, 404, "nothing is recorded", "set 'record' in the configuration: 1MiB");
    } else if (path->name.n) {
        rec = api_read_id(path->name, &id) ? recorder_find(&a->recorder, id) : NULL;
        if (rec)
            show_record(a, x, rec);
        else
            http_refuse(x, 404, "no such call, or not any more", "/api/calls lists them");
    } else {
        if (read_question(req, &q))
            list_records(a, x, &q);
        else
            http_refuse(x, 400, "bad query",
                        "limit (at most 1000) and after take numbers; server a name; failed=1");
        buf_fini(&q.server);
    }
}
