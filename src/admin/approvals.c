/* Lists and decides what waits for an operator: calls that are held (core/approval), and tools that
 * are new or not as they were approved (hub/graph/lock). Called through the table in api.c;
 * status.c asks for the count. */
#include "admin/inside.h"
#include "base/visible.h"
#include "core/approval.h"
#include "hub/graph/lock.h"
#include "mcp/consent.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <inttypes.h>

/* --- calls --- */

static void put_arguments(struct buf *out, const struct call *c)
{
    BUF_SCOPED shown = {0};

    consent_put_arguments(&shown, c);
    /* Redacting a secret that is longer than one JSON string may leave text that is no JSON. */
    if (json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0)
        buf_span(out, buf_view(&shown));
    else
        json_quote(out, buf_view(&shown));
}

static void put_held(struct buf *out, const struct admin *a, const struct call *c)
{
    static const char *const words[] = {[APPROVE_BY_OPERATOR] = "operator",
                                        [APPROVE_BY_CLIENT] = "client",
                                        [APPROVE_BY_EITHER] = "either"};
    uint64_t now = router_timers(a->router)->now;
    BUF_SCOPED tool = {0};

    visible_put(&tool, span_of(c->name, c->name_n), 0);
    buf_printf(out, "{\"id\":\"%" PRIu64 "\"", c->handle);
    json_out_str(out, "server", c->provider->alias);
    json_out_text(out, "tool", buf_view(&tool));
    json_out(out, "arguments");
    put_arguments(out, c);
    status_put_time(out, "since", a, c->opened_at);
    json_out_number(out, "refused_in_ms", c->deadline.at - now);
    json_out_str(out, "asked", approval_is_with_consumer(c) ? "client" : "operator");
    json_out_str(out, "approve_by", words[c->provider->policy.approve_by]);
    buf_char(out, '}');
}

/* --- tools --- */

/* The lines of a difference, as an array of strings. */
static void put_lines(struct buf *out, struct span text)
{
    json_out_open(out, "difference", '[');
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        json_out_redacted(out, NULL, line);
        text = span_from(text, line.n + 1);
    }
    buf_char(out, ']');
}

static void put_held_tool(struct buf *out, const struct lock *lock, const struct lock_held *h)
{
    BUF_SCOPED id = {0}, tool = {0}, difference = {0};

    buf_printf(&id, "t%" PRIu64, h->id);
    visible_put(&tool, span_str(h->tool), 0);
    lock_put_difference(&difference, lock, h);
    json_out_open(out, NULL, '{');
    json_out_text(out, "id", buf_view(&id));
    json_out_str(out, "server", h->server);
    json_out_text(out, "tool", buf_view(&tool));
    json_out_str(out, "change", h->known ? "changed" : "new");
    put_lines(out, buf_view(&difference));
    json_out_str(out, "asked", "operator");
    buf_char(out, '}');
}

static const struct lock_held *next_waiting(const struct lock *l, const struct lock_held *h)
{
    do
        h = lock_next(l, h);
    while (h && !lock_is_waiting(l, h));
    return h;
}

/* --- both --- */

size_t approvals_count(const struct admin *a)
{
    const struct lock *lock = bridge_lock(a->bridge);
    size_t n = 0;

    for (struct call *c = NULL; (c = approval_next(a->router, c));)
        n++;
    for (const struct lock_held *h = NULL; (h = next_waiting(lock, h));)
        n++;
    return n;
}

static void list_held(const struct admin *a, struct http_exchange *x, const struct sight *s)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    const struct lock *lock = bridge_lock(a->bridge);

    buf_char(out, '[');
    for (struct call *c = NULL; (c = approval_next(a->router, c));) {
        if (!sight_shows_call(s, span_str(c->provider->alias), c->op, span_of(c->name, c->name_n)))
            continue;
        json_out(out, NULL);
        put_held(out, a, c);
    }
    for (const struct lock_held *h = NULL; (h = next_waiting(lock, h));)
        if (sight_shows_call(s, span_str(h->server), OP_CALL_TOOL, span_str(h->tool)))
            put_held_tool(out, lock, h);
    buf_str(out, "]\n");
    http_respond_end(x);
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
        buf_printf(out, "the operator (token %s)", caller->principal->name);
    else
        buf_printf(out, "the operator (%s%s)", http_header(req, "origin").p ? "the page, " : "",
                   http_exchange_peer(x));
}

static void answer_decided(struct http_exchange *x, struct span id, bool approved)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_text(out, "id", id);
    json_out_bool(out, "approved", approved);
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void decide_call(struct admin *a, struct http_exchange *x, struct span name,
                        const struct verdict *verdict)
{
    uint64_t id = 0;
    enum decided decided =
        api_read_id(name, &id) ? approval_decide(a->router, id, verdict) : DECIDED_UNKNOWN;

    if (decided == DECIDED_UNKNOWN)
        http_refuse(x, 404, "nothing of this id waits", "/api/approvals lists what does");
    else if (decided == DECIDED_ELSEWHERE)
        http_refuse(x, 409, "its client is being asked",
                    "only the client can answer for it (servers.*.approve_by)");
    else
        answer_decided(x, name, verdict->allowed);
}

static void decide_tool(struct admin *a, struct http_exchange *x, struct span name,
                        const struct verdict *verdict)
{
    struct err err = {0};
    uint64_t id = 0;
    int code = api_read_id(span_from(name, 1), &id)
                   ? lock_decide(bridge_lock(a->bridge), id, verdict->allowed, verdict->by, &err)
                   : -ENOENT;

    if (code == -ENOENT)
        http_refuse(x, 404, "nothing of this id waits", "/api/approvals lists what does");
    else if (code)
        http_refuse(x, 500, err.text, "the tool is offered until the next start of the daemon");
    else
        answer_decided(x, name, verdict->allowed);
    if (code != -ENOENT)
        bridge_compare(a->bridge);
}

static void decide(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path)
{
    bool approved = false;
    BUF_SCOPED by = {0};

    if (!read_decision(req->body, &approved)) {
        http_refuse(x, 400, "no decision in the body", "send {\"approved\": true} or false");
        return;
    }
    put_operator(&by, path->caller, x, req);
    const struct verdict verdict = {approved, buf_cstr(&by), "the operator"};
    /* The id of a call is a number, that of a tool a `t` and a number. */
    (span_starts(path->name, SPAN("t")) ? decide_tool : decide_call)(a, x, path->name, &verdict);
}

void approvals_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                      const struct api_path *path)
{
    if (path->verb.n)
        api_no_such_path(x);
    else if (path->name.n && api_wants_post(x, req))
        decide(a, x, req, path);
    else if (!path->name.n && admin_wants_get(x, req))
        list_held(a, x, &path->sight);
}
