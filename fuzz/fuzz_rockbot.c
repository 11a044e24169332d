/*
 * rockbot: what peers of the bus and servers can put into a record, a result, a schema. Whatever is
 * written must be JSON again, and a record that was read and written must be read the same.
 */
#include "base/log.h"
#include "rockbot/capture.h"
#include "rockbot/content.h"
#include "rockbot/fingerprint.h"
#include "rockbot/hints.h"
#include "rockbot/proxy_parts.h"
#include "rockbot/rockbot.h"
#include "rockbot/trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be(struct span text, enum json_type wanted)
{
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) < 0 || type != wanted)
        abort();
}

static void try_record(enum rockbot_record type, struct span text)
{
    struct json_slot slots[ROCKBOT_MAX_MEMBERS], again[ROCKBOT_MAX_MEMBERS];
    struct span values[ROCKBOT_MAX_MEMBERS];
    struct buf texts[ROCKBOT_MAX_MEMBERS] = {0}, out = {0};
    struct err err;

    if (rockbot_read(type, text, slots, &err) == 0) {
        for (size_t i = 0; i < ROCKBOT_MAX_MEMBERS; i++)
            values[i] =
                slots[i].type == JSON_STRING ? rockbot_text(&slots[i], &texts[i]) : slots[i].value;
        rockbot_put(&out, type, values);
        must_be(buf_view(&out), JSON_OBJECT);
        if (rockbot_read(type, buf_view(&out), again, &err) < 0)
            abort();
    }
    for (size_t i = 0; i < ROCKBOT_MAX_MEMBERS; i++)
        buf_fini(&texts[i]);
    buf_fini(&out);
}

static void try_object(struct span text)
{
    const struct content_options options = {.attach_limit = 16, .inline_limit = 8};
    const struct config_capture capture = {
        .content = "content", .name = "file", .mime = "mime", .encoding = "encoding"};
    char print[FINGERPRINT_SIZE];
    struct buf out = {0};
    struct content c;

    content_read(&c, text, &options);
    if (c.blocks.n)
        must_be(buf_view(&c.blocks), JSON_ARRAY);
    content_put_resource(&out, text, &options);
    must_be(buf_view(&out), JSON_ARRAY);
    out.n = 0;
    content_put_messages(&out, text);
    must_be(buf_view(&out), JSON_ARRAY);
    out.n = 0;
    (void)hints_put(&out, SPAN("tool"), text, text, buf_view(&c.text));
    out.n = 0;
    fingerprint_put_canonical(&out, text);
    must_be(buf_view(&out), JSON_OBJECT);
    fingerprint_of_tool(print, SPAN("tool"), buf_view(&c.text), text);
    out.n = 0;
    buf_span(&out, text);
    if (capture_text(&out, &capture, "/nonexistent"))
        must_be(buf_view(&out), JSON_OBJECT);
    buf_fini(&out);
    content_fini(&c);
}

typedef bool put_fn(struct buf *out, struct span body, struct buf *why);

static bool put_result(struct buf *out, struct span body, struct buf *why)
{
    bool is_error;

    return remote_put_result(out, body, &is_error, why);
}

/* The answers of a remote bridge, converted to MCP. */
static void try_answer(struct span text)
{
    put_fn *const puts[] = {put_result, remote_put_prompt, remote_put_contents};
    struct buf out = {0}, why = {0};

    for (size_t i = 0; i < COUNT_OF(puts); i++) {
        out.n = why.n = 0;
        if (puts[i](&out, text, &why))
            must_be(buf_view(&out), JSON_OBJECT);
    }
    buf_fini(&why);
    buf_fini(&out);
}

/* The tools, prompts and resources that a remote bridge offers. */
static void try_offer(struct span text)
{
    struct catalog *c = catalog_new();

    remote_add_tool(c, text);
    remote_add_prompt(c, text);
    remote_add_resource(c, text, ITEM_RESOURCE);
    remote_add_resource(c, text, ITEM_TEMPLATE);
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        for (size_t i = 0; i < c->n[kind]; i++) {
            const struct item *item = &c->items[kind][i];
            must_be(item->raw, JSON_OBJECT);
            must_be(span_cut(item->raw, item->name_at.at, item->name_at.n), JSON_STRING);
            if (memchr(item->raw.p, '\n', item->raw.n))
                abort(); /* lists go out on line-framed links */
        }
    catalog_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct message m = {0};
    enum json_type type;
    struct buf line = {0};
    struct trace t;

    log_set_level(LOG_ERROR);
    (void)message_add_header(&m, ROCKBOT_TRACEPARENT, text);
    (void)message_add_header(&m, ROCKBOT_TIMEOUT, text);
    (void)trace_extract(&t, &m);
    (void)rockbot_timeout(&m);
    (void)rockbot_is_agent_name(text);
    content_put_line(&line, text);
    buf_fini(&line);
    for (int i = 0; i < ROCKBOT_RECORDS; i++)
        try_record((enum rockbot_record)i, text);
    try_answer(text);
    try_offer(text);
    if (json_skim(text, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
        try_object(text);
    return 0;
}
