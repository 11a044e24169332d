/* Turns the content of results into lines of text and files. Called by call.c. */
#include "cmd/payload.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many numbers are tried for the name of a new file. */
enum { MAX_FILES = 10000 };

/* --- files --- */

static const char *extension_of(struct span type)
{
    static const struct {
        const char *type, *extension;
    } rows[] = {
        {"image/png", "png"},         {"image/jpeg", "jpg"},      {"image/gif", "gif"},
        {"image/webp", "webp"},       {"image/svg+xml", "svg"},   {"audio/wav", "wav"},
        {"audio/x-wav", "wav"},       {"audio/mpeg", "mp3"},      {"audio/ogg", "ogg"},
        {"application/pdf", "pdf"},   {"application/zip", "zip"}, {"application/gzip", "gz"},
        {"application/json", "json"}, {"text/plain", "txt"},      {"text/html", "html"}};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (span_eq_nocase(span_cut(type, 0, span_find(type, ';')), span_str(rows[i].type)))
            return rows[i].extension;
    return "bin";
}

/* Opens the first of DIR/KIND-1.EXT, DIR/KIND-2.EXT ... that is not there yet. */
static int open_new(struct buf *path, const char *dir, const char *kind, struct span type)
{
    int fd = -1;

    for (int n = 1; fd < 0 && n < MAX_FILES; n++) {
        path->n = 0;
        buf_printf(path, "%s/%s-%d.%s", dir, kind, n, extension_of(type));
        fd = open(buf_cstr(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd < 0 ? -errno : fd;
}

static int save(struct buf *path, const char *dir, const char *kind, struct span type,
                struct span bytes)
{
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return -errno;
    int fd = open_new(path, dir, kind, type);
    if (fd < 0)
        return fd;
    int code = file_write_fd(fd, bytes);
    if (close(fd) < 0 && !code)
        code = -errno;
    return code;
}

/* "12.3 KiB" */
static void put_size(struct buf *out, size_t n)
{
    if (n < 1024)
        buf_printf(out, "%zu bytes", n);
    else if (n < 1024 * 1024)
        buf_printf(out, "%.1f KiB", (double)n / 1024);
    else
        buf_printf(out, "%.1f MiB", (double)n / (1024 * 1024));
}

/* "[image: image/png, 12.3 KiB, saved as shots/image-1.png]" */
static int put_file(struct buf *out, const char *kind, struct span item, struct span raw,
                    const char *dir, struct err *err)
{
    BUF_SCOPED bytes = {0}, type_text = {0}, text = {0}, path = {0};
    struct json_slot mime = json_get(item, "mimeType");
    struct span type = mime.type == JSON_STRING ? json_text(mime.value, &type_text) : SPAN_EMPTY;
    int code = base64_read(&bytes, json_text(raw, &text));

    buf_printf(out, "[%s: ", kind);
    cmd_put_plain(out, type.n ? type : SPAN("of no type"));
    buf_str(out, ", ");
    if (code) {
        buf_str(out, "not valid base64]\n");
        return 0;
    }
    put_size(out, bytes.n);
    code = dir ? save(&path, dir, kind, type, buf_view(&bytes)) : 0;
    if (dir && !code)
        buf_printf(out, ", saved as %s", buf_cstr(&path));
    else if (!dir)
        buf_str(out, "; --save DIR keeps it");
    buf_str(out, "]\n");
    return code ? err_set(err, code, "cannot save a file in %s: %s", dir, strerror(-code)) : 0;
}

/* --- texts --- */

static void put_text(struct buf *out, struct span raw)
{
    json_unescape(out, raw);
    if (out->n && out->p[out->n - 1] != '\n')
        buf_char(out, '\n');
}

static void put_link(struct buf *out, struct span item)
{
    BUF_SCOPED uri = {0}, name = {0};
    struct json_slot label = json_get(item, "name");

    buf_str(out, "[link: ");
    cmd_put_plain(out, json_text(json_get(item, "uri").value, &uri));
    if (label.type == JSON_STRING) {
        buf_str(out, ", ");
        cmd_put_plain(out, json_text(label.value, &name));
    }
    buf_str(out, "]\n");
}

static int put_item(struct buf *out, struct span item, const char *dir, struct err *err)
{
    struct span type = json_get(item, "type").value;
    struct json_slot text = json_get(item, "text"), data = json_get(item, "data");
    struct json_slot resource = json_get(item, "resource");

    if (json_string_is(type, SPAN("text")) && text.type == JSON_STRING) {
        put_text(out, text.value);
        return 0;
    }
    if (json_string_is(type, SPAN("image")) && data.type == JSON_STRING)
        return put_file(out, "image", item, data.value, dir, err);
    if (json_string_is(type, SPAN("audio")) && data.type == JSON_STRING)
        return put_file(out, "audio", item, data.value, dir, err);
    if (json_string_is(type, SPAN("resource")) && resource.type == JSON_OBJECT) {
        struct json_slot blob = json_get(resource.value, "blob");
        text = json_get(resource.value, "text");
        if (blob.type == JSON_STRING)
            return put_file(out, "file", resource.value, blob.value, dir, err);
        if (text.type == JSON_STRING)
            put_text(out, text.value);
        return 0;
    }
    if (json_string_is(type, SPAN("resource_link")) && json_get(item, "uri").type == JSON_STRING) {
        put_link(out, item);
        return 0;
    }
    buf_span(out, item); /* an unknown kind of content */
    buf_char(out, '\n');
    return 0;
}

int payload_put(struct buf *out, struct span result, const char *save_in, struct err *err)
{
    struct json_slot content = json_get(result, "content");
    struct json_slot structured = json_get(result, "structuredContent");
    struct json_iter it = json_iter(content.value);
    size_t n = 0;
    int code = 0;

    for (; content.type == JSON_ARRAY && json_next(&it); n++) {
        if (it.type != JSON_OBJECT)
            continue;
        int failed = put_item(out, it.value, code ? NULL : save_in, err);
        code = failed ? failed : code;
    }
    if (content.type != JSON_ARRAY || (!n && structured.type != JSON_NONE)) {
        buf_span(out, content.type != JSON_ARRAY ? result : structured.value);
        buf_char(out, '\n');
    }
    return code;
}
