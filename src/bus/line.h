/*
 * line: the lines of the embedded bus, as its server and its client read and write them.
 *
 * Each line is one JSON object; its `op` says what it is. A line with an `id` is answered with `ok`
 * or `err` and the same id; a line that fails is answered with `err` even without an id.
 */
#ifndef RIALTO_BUS_LINE_H
#define RIALTO_BUS_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "bus/message.h"
#include "wire/json.h"

enum {
    LINE_MOST = 16 * 1024 * 1024, /* bytes in a line */
    LINE_OVERHEAD = 64 * 1024,    /* bytes of a line for all but the body */
    LINE_VERSION = 1,
};

enum line_slot {
    LINE_OP,
    LINE_ID,
    LINE_SID,
    LINE_TAG,
    LINE_TOPIC,
    LINE_GROUP,
    LINE_PREFETCH,
    LINE_DURABLE,
    LINE_LOSSY,
    LINE_REQUEUE,
    LINE_REDELIVERED,
    LINE_ENV,
    LINE_V,
    LINE_NAME,
    LINE_TOKEN,
    LINE_CODE,
    LINE_MESSAGE,
    LINE_AFTER,
    LINE_NUMBER,
    LINE_AT,
    LINE_REASON,
    LINE_SLOTS,
};

struct line {
    struct json_slot slots[LINE_SLOTS];
};

/* Negative when the text is no JSON object with a string `op`. */
MUST_CHECK int line_read(struct line *l, struct span text);
bool line_op_is(const struct line *l, const char *op);
/* A whole number of 0 or more; `preset` when the slot is empty, -1 when it holds something else. */
int64_t line_number(const struct line *l, enum line_slot slot, int64_t preset);
/* Empty when the slot is empty or holds no string. */
struct span line_text(const struct line *l, enum line_slot slot, struct buf *scratch);
bool line_is_true(const struct line *l, enum line_slot slot);

#endif
