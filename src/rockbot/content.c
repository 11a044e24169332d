/* Converts results of tools, resources and prompts to RockBot's content, with large parts saved as
 * attachments; also shortens texts. Called by worker_invoke.c, worker_manage.c, job.c, handback.c,
 * enclosures.c, form.c, news.c, surface.c and hints.c. */
#include "rockbot/content.h"

#include "base/log.h"
#include "base/utf8.h"
#include "rockbot/attachments.h"
#include "rockbot/capture.h"
#include "rockbot/rockbot.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>

enum { MAX_LINE = 2000 };

/* A block of a result; the bufs hold its texts, unescaped. */
struct block {
    struct span raw;
    struct buf type, text, data, mime, uri;
    bool is_text;
};

static void block_fini(struct block *b)
{
    buf_fini(&b->type);
    buf_fini(&b->text);
    buf_fini(&b->data);
    buf_fini(&b->mime);
    buf_fini(&b->uri);
}

/* Append the text of a member, if it is a string. */
static void get(struct buf *out, struct span object, const char *key)
{
    struct json_slot slot = json_get(object, key);

    if (slot.type == JSON_STRING)
        json_unescape(out, slot.value);
}

struct span content_cut(struct span text, size_t max)
{
    if (text.n <= max)
        return text;
    while (max && utf8_tail((unsigned char)text.p[max]))
        max--;
    return span_cut(text, 0, max);
}

void content_put_line(struct buf *out, struct span text)
{
    BUF_SCOPED clean = {0};
    struct span line;
    bool blank = true;

    log_redact(&clean, content_cut(text, (size_t)4 * MAX_LINE));
    line = content_cut(buf_view(&clean), MAX_LINE);
    for (size_t i = 0; i < line.n; i++) {
        bool control = (unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f;
        /* A run of line ends is one blank. */
        if (!control)
            buf_char(out, line.p[i]);
        else if (!blank)
            buf_char(out, ' ');
        blank = control || line.p[i] == ' ';
    }
    if (line.n < clean.n || text.n > (size_t)4 * MAX_LINE)
        buf_str(out, "...");
}

/* --- blocks of results --- */

/* The description that replaces the bytes. */
static void put_description(struct buf *out, const struct attachment *a, struct span mime,
                            struct span uri)
{
    buf_char(out, '{');
    attachment_put(out, a, mime);
    if (uri.n)
        json_out_text(out, "uri", uri);
    json_out_str(out, "note", CAPTURE_NOTE);
    buf_char(out, '}');
}

/* Moves large data to a file. Small data stays, and so does all data without a folder. */
static void move_data(struct block *b, const struct content_options *options)
{
    struct attachment file;
    struct err err = {0};

    if (!options->attachments || b->data.n <= options->attach_limit)
        return;
    if (attachment_save_base64(&file, options->attachments, buf_view(&b->data), buf_view(&b->mime),
                               &err) < 0) {
        log_warn("bus", "%s", err.text);
        return;
    }
    buf_reset(&b->data, 0);
    put_description(&b->text, &file, buf_view(&b->mime), buf_view(&b->uri));
    attachment_fini(&file);
}

static void read_text(struct block *b, const struct content_options *options)
{
    (void)options;
    get(&b->text, b->raw, "text");
    b->is_text = true;
}

static void read_data(struct block *b, const struct content_options *options)
{
    get(&b->data, b->raw, "data");
    get(&b->mime, b->raw, "mimeType");
    move_data(b, options);
}

/* A link becomes one line that a model can read. */
static void read_link(struct block *b, const struct content_options *options)
{
    BUF_SCOPED name = {0}, description = {0};

    (void)options;
    get(&name, b->raw, json_get(b->raw, "title").type == JSON_STRING ? "title" : "name");
    get(&description, b->raw, "description");
    get(&b->uri, b->raw, "uri");
    get(&b->mime, b->raw, "mimeType");
    b->type.n = 0;
    buf_str(&b->type, "resource");
    buf_str(&b->text, "Resource ");
    content_put_line(&b->text, buf_view(&name));
    buf_printf(&b->text, "%s<", name.n ? " " : "");
    content_put_line(&b->text, buf_view(&b->uri));
    buf_char(&b->text, '>');
    if (b->mime.n) {
        buf_str(&b->text, " (");
        content_put_line(&b->text, buf_view(&b->mime));
        buf_char(&b->text, ')');
    }
    if (description.n) {
        buf_str(&b->text, ": ");
        content_put_line(&b->text, buf_view(&description));
    }
}

static void read_resource(struct block *b, const struct content_options *options)
{
    struct json_slot inside = json_get(b->raw, "resource");

    if (inside.type != JSON_OBJECT)
        return;
    get(&b->uri, inside.value, "uri");
    get(&b->mime, inside.value, "mimeType");
    if (json_get(inside.value, "text").type == JSON_STRING) {
        buf_str(&b->text, "[resource ");
        content_put_line(&b->text, buf_view(&b->uri));
        buf_str(&b->text, "]\n");
        get(&b->text, inside.value, "text");
        return;
    }
    get(&b->data, inside.value, "blob");
    move_data(b, options);
}

static void read_unknown(struct block *b, const struct content_options *options)
{
    (void)options;
    buf_str(&b->text, "[content of type '");
    content_put_line(&b->text, content_cut(buf_view(&b->type), 64));
    buf_str(&b->text, "', which cannot be shown here]");
}

static void read_block(struct block *b, const struct content_options *options)
{
    static const struct {
        const char *type;
        void (*read)(struct block *b, const struct content_options *options);
    } rows[] = {{"text", read_text},
                {"image", read_data},
                {"audio", read_data},
                {"resource_link", read_link},
                {"resource", read_resource}};

    get(&b->type, b->raw, "type");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (span_is(buf_view(&b->type), rows[i].type)) {
            rows[i].read(b, options);
            return;
        }
    read_unknown(b, options);
}

static void add_block(struct content *c, const struct block *b)
{
    buf_str(&c->blocks, c->blocks.n ? "," : "[");
    rockbot_put(&c->blocks, ROCKBOT_A_BLOCK,
                (const struct span[ROCKBOT_MAX_MEMBERS]){[BLOCK_TYPE] = buf_view(&b->type),
                                                         [BLOCK_TEXT] = buf_view(&b->text),
                                                         [BLOCK_DATA] = buf_view(&b->data),
                                                         [BLOCK_MIME] = buf_view(&b->mime),
                                                         [BLOCK_URI] = buf_view(&b->uri)});
    if (!b->text.n)
        return;
    buf_str(&c->text, c->text.n ? "\n" : "");
    buf_span(&c->text, buf_view(&b->text));
}

void content_read(struct content *c, struct span result, const struct content_options *options)
{
    struct json_slot list = json_get(result, "content");
    struct json_slot structured = json_get(result, "structuredContent");
    bool only_text = true, captured = !options->capture || !options->attachments;

    *c = (struct content){0};
    for (struct json_iter it = json_iter(list.type == JSON_ARRAY ? list.value : SPAN("[]"));
         json_next(&it);) {
        struct block b = {.raw = it.type == JSON_OBJECT ? it.value : SPAN("{}")};
        read_block(&b, options);
        if (b.is_text && !captured)
            captured = capture_text(&b.text, options->capture, options->attachments);
        add_block(c, &b);
        only_text = only_text && b.is_text;
        block_fini(&b);
    }
    if (c->blocks.n)
        buf_char(&c->blocks, ']');
    if (only_text)
        buf_reset(&c->blocks, 0);
    /* The records of the bus have no member for structuredContent: it becomes the text. */
    if (!c->text.n && !c->blocks.n && structured.type == JSON_OBJECT)
        buf_span(&c->text, structured.value);
}

void content_fini(struct content *c)
{
    buf_fini(&c->text);
    buf_fini(&c->blocks);
}

/* --- resources --- */

struct content_piece {
    struct buf uri, mime, text, note;
    struct attachment file;
    uint64_t size;
};

/* A text that is too long is saved to a file or cut, with a note. */
static void trim_text(struct content_piece *p, const struct content_options *options)
{
    struct err err = {0};

    p->size = p->text.n;
    if (p->text.n <= options->inline_limit)
        return;
    if (options->attachments && attachment_save(&p->file, options->attachments, buf_view(&p->text),
                                                buf_view(&p->mime), SPAN_EMPTY, &err) == 0) {
        buf_reset(&p->text, 0);
        buf_printf(&p->note, "The text has %" PRIu64 " bytes and was saved to the path above.",
                   p->size);
        return;
    }
    p->text.n = content_cut(buf_view(&p->text), options->inline_limit).n;
    buf_printf(&p->note, "Cut: these are the first %zu of %" PRIu64 " bytes.", p->text.n, p->size);
}

static void move_blob(struct content_piece *p, struct span base64,
                      const struct content_options *options)
{
    struct err err = {0};

    p->size = attachment_size(base64);
    if (!options->attachments)
        buf_printf(&p->note,
                   "Binary content of %" PRIu64 " bytes. The bridge has no attachments folder to "
                   "put it in; its operator can set one (bus.attachments).",
                   p->size);
    else if (attachment_save_base64(&p->file, options->attachments, base64, buf_view(&p->mime),
                                    &err) < 0)
        buf_printf(&p->note, "Binary content of %" PRIu64 " bytes, not saved: %s.", p->size,
                   err.text);
}

static void put_piece(struct buf *out, struct content_piece *p)
{
    BUF_SCOPED size = {0};

    buf_u64(&size, p->size);
    rockbot_put(out, ROCKBOT_A_CONTENT,
                (const struct span[ROCKBOT_MAX_MEMBERS]){[CONTENT_URI] = buf_view(&p->uri),
                                                         [CONTENT_MIME] = buf_view(&p->mime),
                                                         [CONTENT_TEXT] = buf_view(&p->text),
                                                         [CONTENT_PATH] = span_str(p->file.path),
                                                         [CONTENT_NAME] = span_str(p->file.name),
                                                         [CONTENT_SIZE] = buf_view(&size),
                                                         [CONTENT_NOTE] = buf_view(&p->note)});
    buf_fini(&p->uri);
    buf_fini(&p->mime);
    buf_fini(&p->text);
    buf_fini(&p->note);
    attachment_fini(&p->file);
}

void content_put_resource(struct buf *out, struct span result,
                          const struct content_options *options)
{
    struct json_slot list = json_get(result, "contents");
    bool first = true;

    buf_char(out, '[');
    for (struct json_iter it = json_iter(list.type == JSON_ARRAY ? list.value : SPAN("[]"));
         json_next(&it); first = false) {
        struct span raw = it.type == JSON_OBJECT ? it.value : SPAN("{}");
        struct content_piece p = {0};
        BUF_SCOPED blob = {0};
        get(&p.uri, raw, "uri");
        get(&p.mime, raw, "mimeType");
        get(&p.text, raw, "text");
        get(&blob, raw, "blob");
        if (blob.n)
            move_blob(&p, buf_view(&blob), options);
        else
            trim_text(&p, options);
        buf_str(out, first ? "" : ",");
        put_piece(out, &p);
    }
    buf_char(out, ']');
}

/* --- prompts --- */

void content_put_messages(struct buf *out, struct span result)
{
    struct json_slot list = json_get(result, "messages");
    bool first = true;

    buf_char(out, '[');
    for (struct json_iter it = json_iter(list.type == JSON_ARRAY ? list.value : SPAN("[]"));
         json_next(&it); first = false) {
        struct span raw = it.type == JSON_OBJECT ? it.value : SPAN("{}");
        struct json_slot content = json_get(raw, "content");
        BUF_SCOPED role = {0}, type = {0}, text = {0};
        get(&role, raw, "role");
        if (content.type == JSON_OBJECT)
            get(&type, content.value, "type");
        if (span_is(buf_view(&type), "text"))
            get(&text, content.value, "text");
        else
            buf_span(&text, content.value);
        buf_str(out, first ? "" : ",");
        rockbot_put(
            out, ROCKBOT_A_MESSAGE,
            (const struct span[ROCKBOT_MAX_MEMBERS]){[MESSAGE_ROLE] = buf_view(&role),
                                                     [MESSAGE_CONTENT] = buf_view(&text),
                                                     [MESSAGE_CONTENT_TYPE] = buf_view(&type)});
    }
    buf_char(out, ']');
}
