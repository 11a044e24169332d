/* POST /api/calls/ID/replay: a recorded call made again, as a call of the operator, and the
 * difference of the answers. Called by calls.c; admin.c ends what is left. */
#include "admin/story.h"
#include "base/line_diff.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/route.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"
#include "wire/json_sorted.h"

#include <inttypes.h>

/* How many at once; and how much longer a text may become by escaping its characters. */
enum { REPLAYS_MAX = 16, ESCAPED = 6 };

/* A call that is made again, until it has ended. */
struct replay {
    struct peer peer;
    struct list node;
    struct admin *a;
    struct http_exchange *x; /* NULL: its client has left */
    struct buf before;       /* the recorded answer */
};

/* --- what can be made again --- */

static bool is_known_op(enum op op)
{
    return op == OP_CALL_TOOL || op == OP_READ_RESOURCE || op == OP_GET_PROMPT || op == OP_COMPLETE;
}

/* NULL, or why this call cannot be made again; `reason` in one word, for programs. */
static const char *obstacle(const struct admin *a, const struct record *rec, const char **reason)
{
    *reason = "cut";
    if (!recorder_is_whole(&a->recorder, &rec->params))
        return "its arguments were cut when they were recorded (record.body)";
    if (rec->ended && !recorder_is_whole(&a->recorder, &rec->result))
        return "its result was cut when it was recorded (record.body), so there is nothing to "
               "compare with";
    *reason = "busy";
    if (!rec->ended)
        return "it has not ended yet";
    *reason = "gone";
    if (!is_known_op(rec->op))
        return "only calls of tools, prompts, completions and reads of resources can be repeated";
    if (!rec->server.n)
        return "there was no server for it";
    if (rec->page.n)
        return "its page offers the tool to agents only: have one call it";
    if (rec->resumes)
        return "it continued another call, whose questions are answered already";
    return NULL;
}

void replay_put_member(struct buf *out, const struct admin *a, const struct record *rec)
{
    const char *reason, *why = obstacle(a, rec, &reason);

    if (why)
        json_out_str(out, "replayable", why);
    else
        json_out_bool(out, "replayable", true);
}

__attribute__((format(printf, 4, 5))) static void
refuse(struct http_exchange *x, const char *reason, uint64_t id, const char *fmt, ...)
{
    static const char *const hints[][2] = {
        {"confirm", "its tool does not say that it only reads or may be repeated: say \"confirm\": "
                    "true, or --yes"},
        {"cut", "record.body says how much is kept of calls from now on"},
        {"gone", "/api/servers and /api/tools list what there is"},
        {"busy", "try again later"},
        {"failed", "/api/calls has that call"},
    };
    struct buf *out = http_respond_begin(x, 409, "application/json", SPAN_EMPTY);
    BUF_SCOPED text = {0}, answer = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    buf_char(&answer, '{');
    json_out_redacted(&answer, "error", buf_view(&text));
    for (size_t i = 0; i < COUNT_OF(hints); i++)
        if (strcmp(hints[i][0], reason) == 0)
            json_out_str(&answer, "hint", hints[i][1]);
    json_out_str(&answer, "reason", reason);
    if (id) {
        json_out(&answer, "id");
        buf_printf(&answer, "\"%" PRIu64 "\"", id);
    }
    buf_str(&answer, "}\n");
    buf_span(out, buf_view(&answer));
    http_respond_end(x);
}

/* --- the answer --- */

/* What a server answered, as one JSON value; for a call that ended without an answer, the
 * reason. */
static void put_answer(struct buf *out, enum outcome_kind kind, struct span body, struct span text)
{
    if (kind == OUTCOME_RESULT) {
        buf_span(out, body.n ? body : SPAN("{}"));
        return;
    }
    buf_str(out, "{\"error\":");
    if (kind == OUTCOME_ERROR)
        buf_span(out, body);
    else
        json_quote(out, text);
    buf_char(out, '}');
}

/* The value in several lines, secrets redacted. A value that is too long, or is no JSON after
 * redacting, is one line of text. */
static void put_lines(struct buf *out, const struct admin *a, struct span json)
{
    BUF_SCOPED shown = {0}, sorted = {0};

    log_redact(&shown, span_cut(json, 0, a->recorder.body + RECORD_MARGIN));
    if (json.n > a->recorder.body || json_skim(buf_view(&shown), NULL, NULL, NULL, NULL)) {
        buf_span(out, span_cut(buf_view(&shown), 0, a->recorder.body));
        return;
    }
    json_sorted_put(&sorted, buf_view(&shown));
    json_out_pretty(out, buf_view(&sorted));
}

static bool is_same(struct span before, struct span after)
{
    BUF_SCOPED a = {0}, b = {0};

    if (after.n / ESCAPED > before.n)
        return false; /* too long even if all of `before` were written as \u0061 */
    json_sorted_put(&a, before);
    json_sorted_put(&b, after);
    return span_eq(buf_view(&a), buf_view(&b));
}

static void put_diff(struct buf *out, const struct admin *a, struct span before, struct span after)
{
    BUF_SCOPED old = {0}, new = {0}, diff = {0};

    put_lines(&old, a, before);
    put_lines(&new, a, after);
    line_diff_put(&diff, buf_view(&old), buf_view(&new));
    json_out_open(out, "diff", '[');
    for (struct span rest = buf_view(&diff); rest.n;) {
        size_t end = span_find(rest, '\n');
        json_out_text(out, NULL, span_cut(rest, 0, end));
        rest = span_from(rest, end + 1);
    }
    buf_char(out, ']');
    if (!diff.n)
        json_out_str(out, "note", "the answers differ in what is not shown");
}

static void put_comparison(struct buf *out, const struct replay *r, uint64_t id, struct span after)
{
    struct span before = buf_view(&r->before);
    size_t max = r->a->recorder.body + RECORD_MARGIN;
    bool same = is_same(before, after);

    buf_char(out, '{');
    json_out(out, "id");
    buf_printf(out, "\"%" PRIu64 "\"", id);
    json_out_bool(out, "same", same);
    if (same)
        json_out_raw(out, "diff", SPAN("[]"));
    else
        put_diff(out, r->a, before, after);
    (void)calls_put_body(out, "before", r->a,
                         &(struct record_body){span_cut(before, 0, max), before.n});
    (void)calls_put_body(out, "after", r->a,
                         &(struct record_body){span_cut(after, 0, max), after.n});
    buf_str(out, "}\n");
}

/* Did the server get the call, and end it in some way? */
static bool was_run(const struct outcome *outcome)
{
    return outcome->kind != OUTCOME_FAILED || outcome->why == FAIL_CRASHED ||
           outcome->why == FAIL_TIMEOUT || outcome->why == FAIL_PROTOCOL;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct replay *r = CONTAINER_OF(self, struct replay, peer);

    if (r->x && !was_run(outcome)) {
        refuse(r->x, "failed", call->handle, SPAN_FMT, SPAN_ARG(outcome->text));
    } else if (r->x) {
        BUF_SCOPED after = {0}, text = {0};
        put_answer(&after, outcome->kind, outcome->body, outcome->text);
        put_comparison(&text, r, call->handle, buf_view(&after));
        http_respond(r->x, 200, "application/json", SPAN_EMPTY, buf_view(&text));
    }
    list_remove(&r->node);
    principal_release(r->peer.principal);
    buf_fini(&r->before);
    mem_free(r);
}

/* --- making the call --- */

static const struct peer_verbs verbs = {
    .event = ask_ignore_event, .ask = ask_nobody, .done = on_done};

/* The client has left. call_cancel calls `done`, which frees the replay. */
static void on_gone(void *owner)
{
    struct replay *r = owner;

    r->x = NULL;
    call_cancel(LIST_FIRST(&r->peer.opened, struct call, in_consumer), FAIL_CANCELLED);
}

/* The recorded params with the server's own name of the item, without what belonged to the agent's
 * request only (_meta, task). */
static void put_params(struct buf *out, const struct record *rec, struct request *q)
{
    struct json_iter it = json_iter(rec->params.whole ? rec->params.kept : SPAN("{}"));
    const char *named = rec->op == OP_READ_RESOURCE ? "uri" : "name";

    buf_char(out, '{');
    while (json_next(&it)) {
        bool is_name = rec->op != OP_COMPLETE && json_string_is(it.key, span_str(named));
        if (json_string_is(it.key, SPAN("_meta")) || json_string_is(it.key, SPAN("task")))
            continue;
        if (out->n > 1)
            buf_char(out, ',');
        buf_span(out, it.key);
        buf_char(out, ':');
        size_t at = out->n;
        if (is_name)
            json_quote(out, rec->name);
        else
            buf_span(out, it.value);
        struct cut cut = {at, out->n - at};
        if (is_name)
            q->name_at = cut;
        if (json_string_is(it.key, SPAN("arguments")))
            q->arguments_at = cut;
    }
    buf_char(out, '}');
}

static void open_replay(struct admin *a, struct http_exchange *x, const struct record *rec,
                        const struct request *q, struct view *v, struct principal *principal)
{
    struct replay *r = MEM_NEW(struct replay);

    r->a = a;
    r->x = x;
    peer_init(&r->peer, &verbs);
    r->peer.principal = principal ? principal_hold(principal) : principal_new_tokenless("operator");
    r->peer.client = "{\"name\":\"operator\"}";
    r->peer.endpoint = "replay";
    put_answer(&r->before, rec->kind, rec->result.kept, rec->error);
    list_append(&a->replays, &r->node);
    http_exchange_on_gone(x, on_gone, r);
    (void)call_open(a->router, &r->peer, v, q, r);
}

static size_t count(const struct admin *a)
{
    size_t n = 0;

    LIST_EACH (&a->replays, it)
        n++;
    return n;
}

static void make(struct admin *a, struct http_exchange *x, const struct record *rec,
                 struct span server, bool confirmed, struct principal *principal)
{
    const struct exposure *e = bridge_one(a->bridge, server);
    struct view *v = e ? exposure_full(e) : NULL;
    struct request q = {.op = rec->op, .name = rec->name, .takes_structured = true};
    BUF_SCOPED params = {0};
    struct route route;

    put_params(&params, rec, &q);
    q.params = buf_view(&params);
    if (!v)
        refuse(x, "gone", 0, "there is no server '" SPAN_FMT "'", SPAN_ARG(server));
    else if (!route_find(v, &q, &route))
        refuse(x, "gone", 0, "server '" SPAN_FMT "' does not offer '" SPAN_FMT "'",
               SPAN_ARG(server), SPAN_ARG(rec->name));
    else if (!route.repeatable && !confirmed)
        refuse(x, "confirm", 0, "calling '" SPAN_FMT "' again may do something again",
               SPAN_ARG(rec->name));
    else if (count(a) >= REPLAYS_MAX)
        refuse(x, "busy", 0, "%d calls are being made again already", REPLAYS_MAX);
    else
        open_replay(a, x, rec, &q, v, principal);
}

void replay_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path, const struct record *rec)
{
    struct span body = req->body.n ? req->body : SPAN("{}");
    const char *reason, *why = obstacle(a, rec, &reason);
    BUF_SCOPED scratch = {0};

    if (!api_wants_post(x, req))
        return;
    if (path->caller->view) {
        http_refuse(x, 403, "this token sees only a part", "replay with one that has no view");
        return;
    }
    if (json_skim(body, NULL, NULL, NULL, NULL) || json_type_of(body) != JSON_OBJECT) {
        http_refuse(x, 400, "bad body", "{\"server\": NAME, \"confirm\": true}, both optional");
        return;
    }
    struct json_slot server = json_get(body, "server");
    if (why)
        refuse(x, reason, 0, "the call cannot be made again: %s", why);
    else
        make(a, x, rec,
             server.type == JSON_STRING ? json_text(server.value, &scratch) : rec->server,
             json_get(body, "confirm").type == JSON_TRUE, path->caller->principal);
}

void replay_end_all(struct admin *a)
{
    struct replay *r;

    /* The front has closed before this, and has told the clients of those that are left. */
    while ((r = LIST_FIRST(&a->replays, struct replay, node)))
        on_gone(r);
}
