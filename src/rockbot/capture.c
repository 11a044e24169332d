/* A file in a member of a JSON text: checks whether there is one and whether it is binary, and
 * replaces its bytes in the text. Called by content.c. */
#include "rockbot/capture.h"

#include "base/log.h"
#include "base/mem.h"
#include "rockbot/attachments.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* A text of this length with so many U+FFFD is a binary file that the server took for text. */
enum { MANGLED_LENGTH = 1024, MANGLED_SIGNS = 8 };

/* The text of a member, by its name in any case; empty when there is none. */
static void get(struct buf *out, struct span object, const char *name)
{
    BUF_SCOPED key = {0};

    for (struct json_iter it = json_iter(object); name && json_next(&it);) {
        key.n = 0;
        json_unescape(&key, it.key);
        if (!span_eq_nocase(buf_view(&key), span_str(name)))
            continue;
        if (it.type == JSON_STRING)
            json_unescape(out, it.value);
        return;
    }
}

/* Writes a copy of the object, not closed, without the member that has the bytes and without the
 * members that the caller adds. */
static void put_rest(struct buf *out, struct span object, const char *content, bool described)
{
    static const char *const ours[] = {"note", "path", "name", "size", "mime"};
    BUF_SCOPED key = {0};

    buf_char(out, '{');
    for (struct json_iter it = json_iter(object); json_next(&it);) {
        key.n = 0;
        json_unescape(&key, it.key);
        bool skip = span_eq_nocase(buf_view(&key), span_str(content));
        for (size_t i = 0; i < (described ? COUNT_OF(ours) : 1); i++)
            skip |= span_is(buf_view(&key), ours[i]);
        if (skip)
            continue;
        buf_str(out, out->p[out->n - 1] == '{' ? "" : ",");
        buf_span(out, it.member);
    }
}

static bool is_mangled(struct span text)
{
    size_t signs = 0;

    for (size_t i = 0; text.n >= MANGLED_LENGTH && i + 3 <= text.n; i++)
        signs += memcmp(text.p + i, "\xef\xbf\xbd", 3) == 0;
    return signs >= MANGLED_SIGNS;
}

/* The bytes are lost already; they only fill the model's context. */
static void put_lost(struct buf *out, struct span object, const char *content, size_t n)
{
    BUF_SCOPED note = {0};

    buf_printf(&note,
               "The server returned the file's bytes as if they were text, which destroyed them; "
               "%zu bytes of that were dropped. Calling again gives the same: get the file in "
               "another way.",
               n);
    put_rest(out, object, content, false);
    json_out_text(out, "note", buf_view(&note));
    buf_char(out, '}');
}

static void put_name(struct buf *out, struct span object, const struct config_capture *rule)
{
    get(out, object, rule->name);
    if (!out->n)
        get(out, object, "name");
    if (!out->n)
        get(out, object, "path");
}

/* False when the bytes are no binary file, or cannot be saved. */
static bool put_saved(struct buf *out, struct span object, const struct config_capture *rule,
                      const char *folder, struct span bytes)
{
    BUF_SCOPED name = {0}, mime = {0};
    struct attachment file;
    struct err err = {0};

    put_name(&name, object, rule);
    get(&mime, object, rule->mime);
    if (!mime.n)
        buf_span(&mime, span_str(attachment_mime(buf_view(&name))));
    if (!attachment_is_binary(buf_view(&mime), bytes))
        return false;
    if (attachment_save(&file, folder, bytes, buf_view(&mime), buf_view(&name), &err) < 0) {
        log_warn("bus", "%s", err.text);
        return false;
    }
    put_rest(out, object, rule->content, true);
    attachment_put(out, &file, buf_view(&mime));
    json_out_str(out, "note", CAPTURE_NOTE);
    buf_char(out, '}');
    attachment_fini(&file);
    return true;
}

bool capture_text(struct buf *text, const struct config_capture *rule, const char *folder)
{
    BUF_SCOPED base64 = {0}, encoding = {0}, bytes = {0}, out = {0};
    struct span object = buf_view(text);
    enum json_type type;
    bool done = true;

    if (json_skim(object, NULL, NULL, &type, NULL) < 0 || type != JSON_OBJECT)
        return false;
    get(&base64, object, rule->content);
    get(&encoding, object, rule->encoding);
    if (!base64.n || (encoding.n && !span_eq_nocase(buf_view(&encoding), SPAN("base64"))))
        return false;
    if (attachment_decode(&bytes, buf_view(&base64)) == 0)
        done = put_saved(&out, object, rule, folder, buf_view(&bytes));
    else if (is_mangled(buf_view(&base64)))
        put_lost(&out, object, rule->content, base64.n);
    else
        done = false;
    if (done) {
        text->n = 0;
        buf_span(text, buf_view(&out));
    }
    return done;
}
