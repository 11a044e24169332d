/* Parses one JSON line of the embedded bus's protocol, and reads single fields of that line. Called
 * by line_conn.c, line_client.c and cmd/bus_dead.c. */
#include "bus/line.h"

static const struct json_shape_row rows[] = {
    {"op", LINE_OP, NULL},
    {"id", LINE_ID, NULL},
    {"sid", LINE_SID, NULL},
    {"tag", LINE_TAG, NULL},
    {"topic", LINE_TOPIC, NULL},
    {"group", LINE_GROUP, NULL},
    {"prefetch", LINE_PREFETCH, NULL},
    {"durable", LINE_DURABLE, NULL},
    {"lossy", LINE_LOSSY, NULL},
    {"requeue", LINE_REQUEUE, NULL},
    {"redelivered", LINE_REDELIVERED, NULL},
    {"env", LINE_ENV, NULL},
    {"v", LINE_V, NULL},
    {"name", LINE_NAME, NULL},
    {"token", LINE_TOKEN, NULL},
    {"code", LINE_CODE, NULL},
    {"message", LINE_MESSAGE, NULL},
    {"after", LINE_AFTER, NULL},
    {"number", LINE_NUMBER, NULL},
    {"at", LINE_AT, NULL},
    {"reason", LINE_REASON, NULL},
};
static const struct json_shape shape = JSON_SHAPE(rows);

int line_read(struct line *l, struct span text)
{
    *l = (struct line){0};
    int code = json_skim(text, &shape, l->slots, NULL, NULL);
    if (code < 0)
        return code;
    return l->slots[LINE_OP].type == JSON_STRING ? 0 : ERR_PROTOCOL;
}

bool line_op_is(const struct line *l, const char *op)
{
    return json_string_is(l->slots[LINE_OP].value, span_str(op));
}

int64_t line_number(const struct line *l, enum line_slot slot, int64_t preset)
{
    const struct json_slot *s = &l->slots[slot];
    int64_t n;

    if (s->type == JSON_NONE || s->type == JSON_NULL)
        return preset;
    return s->type == JSON_NUMBER && json_int(s->value, &n) && n >= 0 ? n : -1;
}

struct span line_text(const struct line *l, enum line_slot slot, struct buf *scratch)
{
    const struct json_slot *s = &l->slots[slot];

    return s->type == JSON_STRING ? json_text(s->value, scratch) : SPAN_EMPTY;
}

bool line_is_true(const struct line *l, enum line_slot slot)
{
    return l->slots[slot].type == JSON_TRUE;
}
