/*
 * task_text: a task as JSON, in the words of either era.
 *
 * 2025-11-25 says {"task":{taskId, status, ..., ttl, pollInterval}} and keeps result and questions
 * apart; the extension of 2026-07-28 says taskId, status, ..., ttlMs, pollIntervalMs beside each
 * other, with result, error or questions. Everything else of a task is passed on as it came.
 */
#ifndef RIALTO_MCP_TASK_TEXT_H
#define RIALTO_MCP_TASK_TEXT_H

#include "mcp/protocol.h"

struct task_text {
    struct span raw; /* the object */
    struct span id;  /* raw string, or empty: this is no task */
    struct span status;
    struct span message;     /* raw, or empty */
    uint64_t ttl, poll;      /* ms; 0 = unlimited, not said */
    struct json_slot result; /* of the stateless era, as the two below */
    struct json_slot error, questions;
};

/* `id` is empty if the object is no task. */
struct task_text task_text_read(struct span raw);
/* A task that is over? */
bool task_text_ended(const struct task_text *t);

/* How to write it. */
struct task_style {
    bool modern;
    struct span id;     /* as the reader knows it */
    const char *status; /* in place of its own; NULL: as it is */
    struct span more;   /* members to add, or empty */
    bool brief;         /* without result, error and questions */
};
/* Append the members, without braces. */
void task_text_put(struct buf *out, const struct task_text *t, const struct task_style *style);
/* The same from members that task_text_put wrote. */
void task_text_put_again(struct buf *out, struct span members, const struct task_style *style);

/* ms since 1970 as both eras write times. */
void task_text_time(char out[32], uint64_t ms);

/* Append an object with the task that its `_meta` relates it to replaced; `id` empty: with none. */
void task_text_relate(struct buf *out, struct span object, struct span id);
/* The id in `_meta` of params or a result, raw; empty: it is related to no task. */
struct span task_text_related(struct span object);

#endif
