/* Files of the attachments folder: saving under a name that is free, opening without leaving the
 * folder, and what is known of MIME types. Called by content.c, capture.c and enclosures.c. */
#include "rockbot/attachments.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_LONGEST = 128,   /* bytes of a file's name that are kept */
    MOST_ALIKE = 1000,    /* files of the same name, told apart by a number */
    LOOKED_AT = 8 * 1024, /* bytes of a file that are checked when its type is unknown */
};

/* The first row of a type is the one whose ending is used. */
static const struct known_type {
    const char *mime, *ending;
    bool binary;
} known_types[] = {
    {"image/png", ".png", true},
    {"image/jpeg", ".jpg", true},
    {"image/jpeg", ".jpeg", true},
    {"image/gif", ".gif", true},
    {"image/webp", ".webp", true},
    {"image/bmp", ".bmp", true},
    {"image/vnd.microsoft.icon", ".ico", true},
    {"image/svg+xml", ".svg", false}, /* a text that models can read */
    {"audio/wav", ".wav", true},
    {"audio/mpeg", ".mp3", true},
    {"audio/ogg", ".ogg", true},
    {"video/mp4", ".mp4", true},
    {"video/webm", ".webm", true},
    {"application/pdf", ".pdf", true},
    {"application/zip", ".zip", true},
    {"application/gzip", ".gz", true},
    {"application/octet-stream", ".bin", true},
    {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx", true},
    {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx", true},
    {"application/vnd.openxmlformats-officedocument.presentationml.presentation", ".pptx", true},
    {"application/json", ".json", false},
    {"application/xml", ".xml", false},
    {"application/yaml", ".yaml", false},
    {"application/yaml", ".yml", false},
    {"text/html", ".html", false},
    {"text/html", ".htm", false},
    {"text/markdown", ".md", false},
    {"text/csv", ".csv", false},
    {"text/plain", ".txt", false},
    {"text/plain", ".log", false},
};

/* --- types --- */

static bool is_kind(struct span mime, const char *kind)
{
    return mime.n >= strlen(kind) &&
           span_eq_nocase(span_cut(mime, 0, strlen(kind)), span_str(kind));
}

static const struct known_type *type_of(struct span mime)
{
    struct span bare = span_trim(span_cut(mime, 0, span_find(mime, ';')));

    for (size_t i = 0; i < COUNT_OF(known_types); i++)
        if (span_eq_nocase(bare, span_str(known_types[i].mime)))
            return &known_types[i];
    return NULL;
}

static const char *ending_of(struct span mime)
{
    const struct known_type *t = type_of(mime);

    return t ? t->ending : is_kind(mime, "text/") ? ".txt" : ".bin";
}

const char *attachment_mime(struct span name)
{
    for (size_t i = 0; i < COUNT_OF(known_types); i++) {
        struct span ending = span_str(known_types[i].ending);
        if (name.n > ending.n && span_eq_nocase(span_from(name, name.n - ending.n), ending))
            return known_types[i].mime;
    }
    return NULL;
}

/* The first LOOKED_AT bytes are UTF-8 without NUL; the last character may end behind them. */
static bool is_text(struct span bytes)
{
    const char *p = bytes.p, *end = p + (bytes.n < LOOKED_AT ? bytes.n : LOOKED_AT);

    while (p < end) {
        size_t n = *p ? utf8_length(p, bytes.p + bytes.n) : 0;
        if (!n)
            return false;
        p += n;
    }
    return true;
}

bool attachment_is_binary(struct span mime, struct span bytes)
{
    const struct known_type *t = type_of(mime);

    if (t)
        return t->binary;
    if (is_kind(mime, "image/") || is_kind(mime, "audio/") || is_kind(mime, "video/"))
        return true;
    return !is_kind(mime, "text/") && !is_text(bytes);
}

/* --- saving --- */

/* The last part of a name, with `_` for control characters, <>:"|?* and a dot at its start. */
static void put_name(struct buf *out, struct span wanted)
{
    struct span leaf = wanted;

    for (size_t i = 0; i < wanted.n; i++)
        if (wanted.p[i] == '/' || wanted.p[i] == '\\')
            leaf = span_from(wanted, i + 1);
    size_t n = leaf.n < NAME_LONGEST ? leaf.n : NAME_LONGEST;
    while (n < leaf.n && n && utf8_tail((unsigned char)leaf.p[n]))
        n--;
    for (size_t i = 0; i < n; i++) {
        char c = leaf.p[i];
        bool fine = (unsigned char)c >= 0x20 && c != 0x7f && !strchr("<>:\"|?*", c);
        buf_char(out, fine && (i || c != '.') ? c : '_');
    }
    if (!n)
        buf_str(out, "attachment");
}

/* Creates the first of NAME, NAME-2, NAME-3 ... that is free; the number goes before the
 * extension. */
static int create(struct buf *path, const char *folder, struct span name)
{
    size_t dot = name.n;

    for (size_t i = 1; i < name.n; i++)
        if (name.p[i] == '.')
            dot = i;
    for (unsigned i = 1; i <= MOST_ALIKE; i++) {
        path->n = 0;
        buf_printf(path, "%s/" SPAN_FMT, folder, SPAN_ARG(span_cut(name, 0, dot)));
        if (i > 1)
            buf_printf(path, "-%u", i);
        buf_span(path, span_from(name, dot));
        int fd = open(buf_cstr(path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

int attachment_save(struct attachment *a, const char *folder, struct span text, struct span mime,
                    struct span wanted, struct err *err)
{
    BUF_SCOPED name = {0}, path = {0};
    char random[ID_TOKEN_SIZE];

    *a = (struct attachment){.size = text.n};
    id_token(random);
    if (wanted.n)
        put_name(&name, wanted);
    else
        buf_printf(&name, "%s%s", random, ending_of(mime));
    int fd = create(&path, folder, buf_view(&name));
    int rc = fd < 0 ? fd : file_write_fd(fd, text);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && rc)
        (void)unlink(buf_cstr(&path));
    if (rc)
        return err_set(err, rc, "cannot write to the attachments folder %s: %s", folder,
                       err_name(rc));
    a->path = buf_take(&path);
    a->name = a->path + strlen(folder) + 1;
    return 0;
}

size_t attachment_size(struct span base64)
{
    size_t n = base64.n / 4 * 3;

    for (size_t i = 0; i < 2 && base64.n > i && base64.p[base64.n - 1 - i] == '='; i++)
        n--;
    return n;
}

int attachment_decode(struct buf *out, struct span base64)
{
    BUF_SCOPED dense = {0};

    for (size_t i = 0; i < base64.n; i++)
        if (!strchr(" \t\r\n", base64.p[i]) || !base64.p[i])
            buf_char(&dense, base64.p[i]);
    return base64_read(out, buf_view(&dense));
}

int attachment_save_base64(struct attachment *a, const char *folder, struct span base64,
                           struct span mime, struct err *err)
{
    BUF_SCOPED bytes = {0};
    int rc = base64_read(&bytes, base64);

    if (rc < 0)
        rc = err_set(err, rc, "the server's data is not base64");
    else
        rc = attachment_save(a, folder, buf_view(&bytes), mime, SPAN_EMPTY, err);
    return rc;
}

void attachment_fini(struct attachment *a)
{
    mem_free(a->path);
    a->path = NULL;
}

void attachment_put(struct buf *out, const struct attachment *a, struct span mime)
{
    json_out_str(out, "path", a->path);
    json_out_str(out, "name", a->name);
    json_out_number(out, "size", a->size);
    json_out_text_or_null(out, "mime", mime);
}

/* --- opening --- */

/* The path relative to the folder; empty when the path leads elsewhere. Agents that share the
 * folder's parent write the folder's name first: it is removed. */
static struct span from_folder(const char *folder, struct span path)
{
    struct span whole = span_str(folder), leaf = whole;

    while (whole.n > 1 && whole.p[whole.n - 1] == '/')
        whole.n--;
    for (size_t i = 0; i < whole.n; i++)
        if (whole.p[i] == '/')
            leaf = span_from(whole, i + 1);
    struct span before = span_starts(path, SPAN("/")) ? whole : leaf;
    if (path.n > before.n + 1 && span_starts(path, before) && path.p[before.n] == '/')
        return span_from(path, before.n + 1);
    return span_starts(path, SPAN("/")) ? SPAN_EMPTY : path;
}

/* Opens the path part by part; none of the parts may be a link. */
static int open_inside(const char *folder, struct span rest)
{
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    while (fd >= 0 && rest.n) {
        BUF_SCOPED part = {0};
        buf_span(&part, span_cut(rest, 0, span_find(rest, '/')));
        rest = span_from(rest, part.n + 1);
        bool odd = !part.n || memchr(part.p, '\0', part.n) || span_is(buf_view(&part), "..") ||
                   span_is(buf_view(&part), ".");
        int how = rest.n ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
        int next = odd ? -1 : openat(fd, buf_cstr(&part), how | O_NOFOLLOW | O_CLOEXEC);
        int code = odd ? ENOENT : errno;
        close(fd);
        fd = next;
        errno = code;
    }
    return fd >= 0 ? fd : -errno;
}

int attachment_open(const char *folder, struct span path, uint64_t *size, struct err *err)
{
    struct span rest = from_folder(folder, path), shown = span_cut(path, 0, NAME_LONGEST);
    struct stat st = {0};

    if (!rest.n || rest.p[rest.n - 1] == '/')
        return err_set(err, -EPERM, "'" SPAN_FMT "' is not in the attachments folder %s",
                       SPAN_ARG(shown), folder);
    int fd = open_inside(folder, rest);
    if (fd < 0)
        return err_set(err, fd, "'" SPAN_FMT "' cannot be read from the attachments folder %s: %s",
                       SPAN_ARG(shown), folder, err_name(fd));
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > ATTACHMENT_MAX) {
        close(fd);
        return err_set(err, -EINVAL, "'" SPAN_FMT "' is %s", SPAN_ARG(shown),
                       S_ISREG(st.st_mode) ? "larger than 32 MiB" : "not a file");
    }
    *size = (uint64_t)st.st_size;
    return fd;
}
