/* Saves a text or decoded base64 as a file in the attachments folder, with an extension by MIME
 * type. Called by content.c. */
#include "rockbot/attachments.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"

static const char *ending_of(struct span mime)
{
    static const struct {
        const char *mime, *ending;
    } rows[] = {
        {"image/png", ".png"},         {"image/jpeg", ".jpg"},      {"image/gif", ".gif"},
        {"image/webp", ".webp"},       {"image/svg+xml", ".svg"},   {"audio/wav", ".wav"},
        {"audio/mpeg", ".mp3"},        {"audio/ogg", ".ogg"},       {"application/pdf", ".pdf"},
        {"application/json", ".json"}, {"application/zip", ".zip"}, {"text/html", ".html"},
        {"text/markdown", ".md"},      {"text/csv", ".csv"},
    };
    struct span bare = span_trim(span_cut(mime, 0, span_find(mime, ';')));

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (span_eq_nocase(bare, span_str(rows[i].mime)))
            return rows[i].ending;
    return bare.n >= 5 && span_eq_nocase(span_cut(bare, 0, 5), SPAN("text/")) ? ".txt" : ".bin";
}

int attachment_save(struct attachment *a, const char *folder, struct span text, struct span mime,
                    struct err *err)
{
    char name[ID_TOKEN_SIZE];
    struct buf path = {0};

    *a = (struct attachment){.size = text.n};
    id_token(name);
    buf_printf(&path, "%s/%s%s", folder, name, ending_of(mime));
    int rc = file_replace(buf_cstr(&path), text);
    if (rc) {
        buf_fini(&path);
        return err_set(err, rc, "cannot write to the attachments folder %s: %s", folder,
                       err_name(rc));
    }
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

int attachment_save_base64(struct attachment *a, const char *folder, struct span base64,
                           struct span mime, struct err *err)
{
    BUF_SCOPED bytes = {0};
    int rc = base64_read(&bytes, base64);

    if (rc < 0)
        rc = err_set(err, rc, "the server's data is no base64");
    else
        rc = attachment_save(a, folder, buf_view(&bytes), mime, err);
    return rc;
}

void attachment_fini(struct attachment *a)
{
    mem_free(a->path);
    a->path = NULL;
}
