/*
 * task_text: a task as JSON, in the words of either era.
 *
 * 2025-11-25 has {"task":{taskId, status, ..., ttl, pollInterval}} and sends result and questions
 * in other messages; the extension of 2026-07-28 has taskId, status, ..., ttlMs, pollIntervalMs and
 * the result, error or questions in one object. Other members are passed on unchanged.
 */
#ifndef RIALTO_MCP_TASK_TEXT_H
#define RIALTO_MCP_TASK_TEXT_H

#include "mcp/protocol.h"

struct task_text {
    struct span raw; /* the object */
    struct span id;  /* raw string, or empty: this is no task */
    struct span status;
    struct span message;     /* raw, or empty */
    uint64_t ttl, poll;      /* ms; 0 = unlimited, or not given */
    struct json_slot result; /* only in the stateless era, like the two below */
    struct json_slot error, questions;
};

/* `id` is empty if the object is no task. */
struct task_text task_text_read(struct span raw);
/* Has the task ended? */
bool task_text_ended(const struct task_text *t);

/* How to write a task. */
struct task_style {
    bool modern;
    struct span id;     /* as the reader knows it */
    const char *status; /* instead of the task's own; NULL: unchanged */
    struct span more;   /* members to add, or empty */
    bool brief;         /* without result, error and questions */
};
/* Append the members, without braces. */
void task_text_put(struct buf *out, const struct task_text *t, const struct task_style *style);
/* The same for a task whose members task_text_put wrote. */
void task_text_put_again(struct buf *out, struct span members, const struct task_style *style);

/* ms since 1970 as both eras write times. */
void task_text_time(char out[32], uint64_t ms);

/* Append an object with `id` as the related task in its `_meta`; `id` empty: with no such task. */
void task_text_relate(struct buf *out, struct span object, struct span id);
/* The id of the related task in `_meta` of params or a result, raw; empty: there is none. */
struct span task_text_related(struct span object);

#endif
