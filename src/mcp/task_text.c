/* Tasks read and written in the words of both eras, and `_meta` that relates a message to a task.
 * Called by server/upstream_tasks.c, server/task_request.c, server/task_watch.c, server/provider.c
 * and agent/own_tasks.c. */
#include "mcp/task_text.h"

#include <stdio.h>
#include <time.h>

/* The members that the eras name differently, and those that only the stateless era has. */
static const struct {
    const char *legacy, *modern;
} words[] = {{"ttl", "ttlMs"},
             {"pollInterval", "pollIntervalMs"},
             {NULL, "result"},
             {NULL, "error"},
             {NULL, "inputRequests"}};

static uint64_t number_of(struct span raw, const char *legacy, const char *modern)
{
    struct json_slot slot = json_get(raw, modern);
    int64_t n = 0;

    if (slot.type == JSON_NONE)
        slot = json_get(raw, legacy);
    return slot.type == JSON_NUMBER && json_int(slot.value, &n) && n > 0 ? (uint64_t)n : 0;
}

struct task_text task_text_read(struct span raw)
{
    struct task_text t = {.raw = raw};

    if (!raw.n || json_type_of(raw) != JSON_OBJECT)
        return t;
    struct json_slot id = json_get(raw, "taskId"), status = json_get(raw, "status"),
                     message = json_get(raw, "statusMessage");
    if (id.type != JSON_STRING || status.type != JSON_STRING)
        return t;
    t.id = id.value;
    t.status = status.value;
    t.message = message.type == JSON_STRING ? message.value : SPAN_EMPTY;
    t.ttl = number_of(raw, "ttl", "ttlMs");
    t.poll = number_of(raw, "pollInterval", "pollIntervalMs");
    t.result = json_get(raw, "result");
    t.error = json_get(raw, "error");
    t.questions = json_get(raw, "inputRequests");
    return t;
}

bool task_text_ended(const struct task_text *t)
{
    return json_string_is(t->status, SPAN("completed")) ||
           json_string_is(t->status, SPAN("failed")) ||
           json_string_is(t->status, SPAN("cancelled"));
}

/* The name of a member for this reader; empty: the reader has no such member. */
static struct span name_of(struct span key, const struct task_style *s, struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        bool is_legacy = words[i].legacy && json_string_is(key, span_str(words[i].legacy));
        if (!is_legacy && !json_string_is(key, span_str(words[i].modern)))
            continue;
        const char *word = s->modern ? words[i].modern : words[i].legacy;
        if (!word || (s->brief && !words[i].legacy))
            return SPAN_EMPTY;
        buf_printf(out, "\"%s\"", word);
        return buf_view(out);
    }
    return key;
}

/* A result that says it is an error is a failed task in the initialize era, and only there. */
static const char *status_for(const struct task_text *t, const struct task_style *s)
{
    bool is_error =
        t->result.type == JSON_OBJECT && json_get(t->result.value, "isError").type == JSON_TRUE;

    if (!s->status && !s->modern && is_error && json_string_is(t->status, SPAN("completed")))
        return "failed";
    return s->status;
}

void task_text_put(struct buf *out, const struct task_text *t, const struct task_style *s)
{
    struct json_iter it = json_iter(t->raw);
    const char *status = status_for(t, s);

    buf_str(out, "\"taskId\":");
    json_quote(out, s->id);
    while (json_next(&it)) {
        BUF_SCOPED name = {0};
        if (json_string_is(it.key, SPAN("taskId")) || json_string_is(it.key, SPAN("resultType")) ||
            json_string_is(it.key, SPAN("_meta")))
            continue;
        struct span key = name_of(it.key, s, &name);
        if (!key.n)
            continue;
        buf_char(out, ',');
        buf_span(out, key);
        buf_char(out, ':');
        if (status && json_string_is(it.key, SPAN("status")))
            json_quote(out, span_str(status));
        else
            buf_span(out, it.value);
    }
    if (s->more.n)
        buf_char(out, ',');
    buf_span(out, s->more);
}

void task_text_put_again(struct buf *out, struct span members, const struct task_style *style)
{
    BUF_SCOPED whole = {0};

    buf_char(&whole, '{');
    buf_span(&whole, members);
    buf_char(&whole, '}');
    struct task_text t = task_text_read(buf_view(&whole));
    task_text_put(out, &t, style);
}

void task_text_time(char out[32], uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    char text[24];

    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, 32, "%s.%03uZ", text, (unsigned)(ms % 1000));
}

/* --- relations --- */

struct span task_text_related(struct span object)
{
    struct json_slot meta = {0}, related = {0};

    /* A cheap test first: few of the messages of a server with tasks have a related task. */
    if (object.n && memmem(object.p, object.n, MCP_RELATED_TASK, sizeof MCP_RELATED_TASK - 1))
        meta = json_get(object, "_meta");
    if (meta.type == JSON_OBJECT)
        related = json_get(meta.value, MCP_RELATED_TASK);
    if (related.type == JSON_OBJECT)
        related = json_get(related.value, "taskId");
    return related.type == JSON_STRING ? related.value : SPAN_EMPTY;
}

static void put_meta(struct buf *out, struct span meta, struct span id)
{
    struct json_iter it = json_iter(meta);
    size_t start = out->n;

    buf_char(out, '{');
    while (json_next(&it)) {
        if (json_string_is(it.key, SPAN(MCP_RELATED_TASK)))
            continue;
        if (out->n > start + 1)
            buf_char(out, ',');
        buf_span(out, it.member);
    }
    if (id.n) {
        buf_str(out, out->n > start + 1 ? ",\"" MCP_RELATED_TASK "\":{\"taskId\":"
                                        : "\"" MCP_RELATED_TASK "\":{\"taskId\":");
        json_quote(out, id);
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

void task_text_relate(struct buf *out, struct span object, struct span id)
{
    struct json_slot meta = json_get(object, "_meta");
    BUF_SCOPED fresh = {0};

    if (meta.type == JSON_OBJECT) {
        size_t at = (size_t)(meta.value.p - object.p);
        buf_span(out, span_cut(object, 0, at));
        put_meta(out, meta.value, id);
        buf_span(out, span_from(object, at + meta.value.n));
    } else if (id.n && meta.type == JSON_NONE) {
        buf_str(&fresh, "\"_meta\":");
        put_meta(&fresh, SPAN("{}"), id);
        json_insert(out, object, buf_view(&fresh));
    } else {
        buf_span(out, object);
    }
}
