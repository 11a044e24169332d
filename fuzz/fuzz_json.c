/*
 * The JSON reader on any bytes. Beyond not crashing: what is accepted can be walked to the end
 * without leaving it, every part of it is JSON again, a shape sees the same members as a walk, and
 * what the writers make is accepted and means the same.
 */
#include "base/utf8.h"
#include "wire/json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static const struct json_shape_row inner_rows[] = {{"b", 2, NULL}, {"name", 3, NULL}};
static const struct json_shape inner_shape = JSON_SHAPE(inner_rows);
static const struct json_shape_row outer_rows[] = {{"a", 0, &inner_shape}, {"id", 1, NULL}};
static const struct json_shape outer_shape = JSON_SHAPE(outer_rows);

static bool one_of(const char *set, char c)
{
    return c && strchr(set, c);
}

static bool accepted(struct span text)
{
    return json_skim(text, NULL, NULL, NULL, NULL) == 0;
}

static void check_scalar(struct span value)
{
    struct buf text = {0}, again = {0}, scratch = {0};
    int64_t i;
    double d;

    if (json_int(value, &i))
        CHECK(json_type_of(value) == JSON_NUMBER && json_double(value, &d));
    json_unescape(&text, value);
    CHECK(utf8_valid(buf_view(&text)));
    CHECK(json_string_is(value, buf_view(&text)) == (json_type_of(value) == JSON_STRING));
    CHECK(span_eq(json_text(value, &scratch), buf_view(&text)));
    json_quote(&again, buf_view(&text));
    CHECK(json_string_is(buf_view(&again), buf_view(&text)));
    buf_fini(&text);
    buf_fini(&again);
    buf_fini(&scratch);
}

/* Walks a checked value: parts follow each other inside it, with nothing but structure between. */
static void check_walk(struct span value, unsigned depth)
{
    const char *at = value.p + 1, *end = value.p + value.n;
    struct json_iter it = json_iter(value);

    CHECK(depth <= JSON_MAX_DEPTH);
    if (json_type_of(value) < JSON_ARRAY) {
        check_scalar(value);
        return;
    }
    while (json_next(&it)) {
        CHECK(it.member.p >= at && it.value.p + it.value.n < end);
        CHECK(it.member.p + it.member.n == it.value.p + it.value.n);
        for (; at < it.member.p; at++)
            CHECK(one_of(", \t\r\n", *at));
        if (it.key.n) {
            CHECK(it.key.p == it.member.p && json_type_of(it.key) == JSON_STRING);
            for (const char *p = it.key.p + it.key.n; p < it.value.p; p++)
                CHECK(one_of(": \t\r\n", *p));
            check_scalar(it.key);
        }
        CHECK((it.key.n > 0) == (json_type_of(value) == JSON_OBJECT));
        CHECK(it.type != JSON_NONE);
        at = it.value.p + it.value.n;
        check_walk(it.value, depth + 1);
    }
    for (; at < end - 1; at++)
        CHECK(one_of(" \t\r\n", *at));
}

/* A member's slot by the shape is the member that a walk finds, and is there only once. */
static void check_slot(struct span object, const char *key, const struct json_slot *slot)
{
    unsigned times = 0;

    for (struct json_iter it = json_iter(object); json_next(&it);) {
        if (!json_string_is(it.key, span_str(key)))
            continue;
        times++;
        CHECK(slot->type == it.type && slot->value.p == it.value.p && slot->value.n == it.value.n);
        CHECK(slot->member.p == it.member.p && slot->member.n == it.member.n);
    }
    CHECK(times == (slot->type != JSON_NONE));
    CHECK(json_get(object, key).value.p == slot->value.p);
}

static void check_shape(struct span text, struct span value)
{
    struct json_slot slots[4] = {0};
    enum json_type type;
    int error = json_skim(text, &outer_shape, slots, &type, NULL);

    CHECK(error == 0 || error == ERR_DUPLICATE);
    if (error)
        return;
    CHECK(type == json_type_of(value));
    if (type != JSON_OBJECT)
        return;
    check_slot(value, "a", &slots[0]);
    check_slot(value, "id", &slots[1]);
    if (slots[0].type != JSON_OBJECT)
        return;
    check_slot(slots[0].value, "b", &slots[2]);
    check_slot(slots[0].value, "name", &slots[3]);
}

static void check_writers(struct span text, struct span value)
{
    struct buf line = {0}, more = {0};

    json_one_line(&line, text);
    CHECK(accepted(buf_view(&line)));
    CHECK(!line.n || (!memchr(line.p, '\n', line.n) && !memchr(line.p, '\r', line.n)));
    json_insert(&more, value, SPAN("\"zz\":1,\"\":[]"));
    CHECK(accepted(buf_view(&more)));
    if (json_type_of(value) == JSON_OBJECT)
        CHECK(span_is(json_get(buf_view(&more), "zz").value, "1"));
    buf_fini(&line);
    buf_fini(&more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size), value = text;
    struct buf quoted = {0}, back = {0};
    size_t at = 0;

    /* As JSON. */
    if (json_skim(text, NULL, NULL, NULL, &at) == 0) {
        CHECK(utf8_valid(text));
        while (one_of(" \t\r\n", value.p[0]))
            value = span_from(value, 1);
        while (one_of(" \t\r\n", value.p[value.n - 1]))
            value.n--;
        check_walk(value, 0);
        check_shape(text, value);
        check_writers(text, value);
    } else {
        CHECK(at <= size);
    }

    /* As any text. */
    json_quote(&quoted, text);
    CHECK(accepted(buf_view(&quoted)));
    if (utf8_valid(text)) {
        json_unescape(&back, buf_view(&quoted));
        CHECK(span_eq(buf_view(&back), text));
    }
    buf_fini(&quoted);
    buf_fini(&back);
    return 0;
}
