/* Files that go with a call: arguments with the bytes of files put in or uploaded, results saved or
 * downloaded. Called by worker_invoke.c and job.c. */
#include "rockbot/enclosures.h"

#include "base/ascii.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "rockbot/attachments.h"
#include "wire/json_out.h"

#include <unistd.h>

enum {
    PIECES_MAX = 16,        /* files of one call */
    INLINE_MAX = 16 << 20,  /* bytes of files that may be put into the arguments */
    ANSWER_MAX = 64 * 1024, /* bytes of the answer to an upload */
    SHOWN_MAX = 100,        /* bytes of that answer that are shown */
    FORGET_MS = 30 * 1000,  /* time limit for deleting a file on the server's host */
};

/* A part of the arguments that is replaced. */
struct enclosure {
    struct span old;  /* in job->arguments */
    struct span path; /* of a file that is to be read; empty: `fresh` is complete */
    struct buf fresh;
};

struct enclosures {
    struct job *job;
    void (*next)(struct job *j);
    enum call_prospect prospect;
    struct enclosure pieces[PIECES_MAX];
    size_t n, at;
    uint64_t inlined;
    struct side_request *request; /* under way, or NULL */
    struct buf id, name, mime;    /* of a download */
};

static struct provider *provider_of(const struct job *j)
{
    return worker_server(j->worker, j->server);
}

static const struct config_attachments *rules_of(const struct job *j)
{
    const struct bus_host *host = j->worker->host;
    struct provider *p = provider_of(j);

    return p ? host->files(host->arg, p) : NULL;
}

static struct enclosures *enclosures_new(struct job *j)
{
    struct enclosures *f = MEM_NEW(struct enclosures);

    f->job = j;
    j->enclosures = f;
    return f;
}

void enclosures_drop(struct job *j)
{
    struct enclosures *f = j->enclosures;

    if (!f)
        return;
    j->enclosures = NULL;
    if (f->request)
        j->worker->host->withdraw(f->request);
    for (size_t i = 0; i < f->n; i++)
        buf_fini(&f->pieces[i].fresh);
    buf_fini(&f->id);
    buf_fini(&f->name);
    buf_fini(&f->mime);
    mem_free(f);
}

static bool is_listed(const struct config_strings *list, struct span name, bool any_case)
{
    for (size_t i = 0; i < list->n; i++)
        if (any_case ? span_eq_nocase(name, span_str(list->items[i]))
                     : span_is(name, list->items[i]))
            return true;
    return false;
}

/* The text of the first of these members that is a text. */
static void get_any(struct buf *out, struct span object, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && !out->n; i++) {
        struct json_slot slot = json_get(object, names[i]);
        if (slot.type == JSON_STRING)
            json_unescape(out, slot.value);
    }
}

/* --- requests to the server's host --- */

/* The value of a parameter of a header, without quotes; empty when there is none. */
static struct span parameter_of(struct span header, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i + n < header.n; i++) {
        if (!span_eq_nocase(span_cut(header, i, n), span_of(name, n)))
            continue;
        struct span value = span_from(header, i + n);
        bool quoted = span_starts(value, SPAN("\""));
        value = span_from(value, quoted);
        return span_cut(value, 0, span_find(value, quoted ? '"' : ';'));
    }
    return SPAN_EMPTY;
}

/* The file name in a Content-Disposition header; `filename*` (percent-encoded UTF-8, RFC 6266) wins
 * over `filename`. */
static void put_told_name(struct buf *out, struct span header)
{
    struct span coded = parameter_of(header, "filename*=UTF-8''");

    for (size_t i = 0; i < coded.n; i++) {
        int high = i + 2 < coded.n && coded.p[i] == '%' ? ascii_hex(coded.p[i + 1]) : -1;
        int low = high >= 0 ? ascii_hex(coded.p[i + 2]) : -1;
        buf_char(out, low >= 0 ? (char)(high << 4 | low) : coded.p[i]);
        i += low >= 0 ? 2 : 0;
    }
    if (!coded.n)
        buf_span(out, parameter_of(header, "filename="));
}

/* Appends why a request failed; false when it did not. */
static bool put_failure(struct buf *out, const struct document_answer *a)
{
    struct span said = content_cut(a->body, SHOWN_MAX);

    if (a->code < 0)
        buf_str(out, a->why);
    else if (a->head.status != 200 && a->head.status != 201)
        buf_printf(out, "HTTP %d%s" SPAN_FMT, a->head.status, said.n ? ": " : "", SPAN_ARG(said));
    return out->n > 0;
}

/* The path of a file on the server's host, or the path for uploads when `id` is empty. */
static void put_path(struct buf *out, const struct config_attachments *rules, struct span id)
{
    buf_str(out, rules->endpoint);
    if (id.n)
        buf_char(out, '/');
    for (size_t i = 0; i < id.n; i++)
        if (ascii_is_word(id.p[i], "-._~"))
            buf_char(out, id.p[i]);
        else
            buf_printf(out, "%%%02X", (unsigned char)id.p[i]);
}

/* --- files that are sent --- */

static void step(struct enclosures *f);

static void fail_file(struct enclosures *f, const char *code, const char *why)
{
    job_fail(f->job, code, false,
             "the files of this call could not be sent to server '" SPAN_FMT "': %s",
             SPAN_ARG(f->job->server), why);
}

/* The item without its path, and with `members`, which the server understands. */
static void put_item(struct buf *out, struct span item, struct span members)
{
    static const char *const gone[] = {"path", "name", "base64Content", "attachmentId"};

    buf_char(out, '{');
    for (struct json_iter it = json_iter(item); json_next(&it);) {
        bool skip = false;
        for (size_t i = 0; i < COUNT_OF(gone); i++)
            skip |= json_string_is(it.key, span_str(gone[i]));
        if (!skip) {
            buf_span(out, it.member);
            buf_char(out, ',');
        }
    }
    buf_span(out, members);
    buf_char(out, '}');
}

static void on_uploaded(void *owner, const struct document_answer *a)
{
    static const char *const names[] = {"attachmentId", "id"};
    struct enclosures *f = owner;
    struct enclosure *piece = &f->pieces[f->at];
    BUF_SCOPED problem = {0}, id = {0}, members = {0};
    enum json_type type;

    f->request = NULL;
    if (put_failure(&problem, a)) {
        fail_file(f, a->head.status == 401 ? "auth_required" : "invalid_arguments",
                  buf_cstr(&problem));
        return;
    }
    if (json_skim(a->body, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
        get_any(&id, a->body, names, COUNT_OF(names));
    if (!id.n) {
        fail_file(f, "invalid_arguments", "its host took the upload, but gave no attachmentId");
        return;
    }
    json_out_text(&members, "attachmentId", buf_view(&id));
    put_item(&piece->fresh, piece->old, buf_view(&members));
    f->at++;
    step(f);
}

static struct span leaf_of(struct span path)
{
    for (size_t i = path.n; i; i--)
        if (path.p[i - 1] == '/')
            return span_from(path, i);
    return path;
}

/* One part of a form, as browsers write it (RFC 7578). */
static void put_form(struct buf *out, struct buf *type, const struct config_attachments *rules,
                     struct span name, int fd, int *code)
{
    const char *mime = attachment_mime(name);
    char boundary[ID_TOKEN_SIZE];

    id_token(boundary);
    buf_printf(type, "multipart/form-data; boundary=%s", boundary);
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"", boundary,
               rules->upload_field);
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '"' || (unsigned char)name.p[i] < 0x20)
            buf_printf(out, "%%%02X", (unsigned char)name.p[i]);
        else
            buf_char(out, name.p[i]);
    buf_printf(out, "\"\r\nContent-Type: %s\r\n\r\n", mime ? mime : "application/octet-stream");
    *code = file_read_fd(out, fd, ATTACHMENT_MAX);
    buf_printf(out, "\r\n--%s--\r\n", boundary);
}

static void upload(struct enclosures *f, const struct config_attachments *rules, struct span name,
                   int fd)
{
    const struct bus_host *host = f->job->worker->host;
    struct provider *p = provider_of(f->job);
    BUF_SCOPED type = {0}, path = {0}, body = {0};
    int code;

    put_form(&body, &type, rules, name, fd, &code);
    put_path(&path, rules, SPAN_EMPTY);
    if (code == 0)
        f->request =
            host->request(host->arg, p,
                          &(struct bus_request){.method = "POST",
                                                .path = buf_cstr(&path),
                                                .type = buf_cstr(&type),
                                                .body = &body,
                                                .max = ANSWER_MAX,
                                                .timeout = f->job->budget + JOB_ENDS_FIRST_MS},
                          on_uploaded, f);
    if (!f->request)
        fail_file(f, "invalid_arguments",
                  code ? "a file cannot be read"
                       : "it is not reached by HTTP, so that large files cannot be uploaded");
}

/* Puts a small file into its item. NULL, or why not. */
static const char *put_inline(struct enclosures *f, int fd, struct span name, uint64_t size)
{
    struct enclosure *piece = &f->pieces[f->at];
    BUF_SCOPED bytes = {0}, members = {0};

    f->inlined += size;
    if (f->inlined > INLINE_MAX)
        return "they have more than 16 MiB";
    if (file_read_fd(&bytes, fd, INLINE_MAX) < 0)
        return "a file cannot be read";
    json_out_text(&members, "name", name);
    json_out(&members, "base64Content");
    buf_char(&members, '"');
    base64_put(&members, buf_view(&bytes));
    buf_char(&members, '"');
    put_item(&piece->fresh, piece->old, buf_view(&members));
    f->at++;
    return NULL;
}

/* Packs the next file. False: the job has failed, or an upload is under way. */
static bool pack_file(struct enclosures *f, const struct config_attachments *rules)
{
    struct span path = f->pieces[f->at].path, name = leaf_of(path);
    struct err err = {0};
    uint64_t size = 0;
    int fd = attachment_open(f->job->worker->content.attachments, path, &size, &err);
    bool large = size >= rules->threshold, uploads = false;
    const char *why = NULL;

    if (fd < 0)
        why = err.text;
    else if (!large)
        why = put_inline(f, fd, name, size);
    else if (f->prospect != PROSPECT_FREE)
        why = "a person must allow the call first, and large files would be uploaded before that";
    else
        uploads = true;
    if (uploads)
        upload(f, rules, name, fd);
    else if (why)
        fail_file(f, "invalid_arguments", why);
    if (fd >= 0)
        close(fd);
    return !uploads && !why;
}

/* The arguments with the pieces in their places. */
static void compose(const struct enclosures *f)
{
    struct job *j = f->job;
    const char *at = j->arguments.p, *end = at + j->arguments.n;

    for (size_t i = 0; i < f->n; i++) {
        const struct enclosure *piece = &f->pieces[i];
        buf_bytes(&j->outgoing, at, (size_t)(piece->old.p - at));
        buf_span(&j->outgoing, buf_view(&piece->fresh));
        at = piece->old.p + piece->old.n;
    }
    buf_bytes(&j->outgoing, at, (size_t)(end - at));
}

static void step(struct enclosures *f)
{
    struct job *j = f->job;
    const struct config_attachments *rules = rules_of(j);

    if (!rules) {
        fail_file(f, "tool_not_found", "the server was removed");
        return;
    }
    while (f->at < f->n) {
        if (!f->pieces[f->at].path.n)
            f->at++;
        else if (!pack_file(f, rules))
            return;
    }
    compose(f);
    void (*next)(struct job * j) = f->next;
    enclosures_drop(j);
    next(j);
}

/* --- which files --- */

static struct enclosure *add_piece(struct enclosures *f, struct span old)
{
    if (f->n == PIECES_MAX)
        return NULL;
    f->pieces[f->n] = (struct enclosure){.old = old};
    return &f->pieces[f->n++];
}

static bool find_items(struct enclosures *f, struct span list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        struct json_slot path =
            it.type == JSON_OBJECT ? json_get(it.value, "path") : (struct json_slot){0};
        if (path.type != JSON_STRING || path.value.n <= 2)
            continue;
        struct enclosure *piece = add_piece(f, it.value);
        if (!piece)
            return false;
        piece->path = job_text(f->job, &path);
    }
    return true;
}

/* How the server is to answer: with the bytes if the size hint is small, else with an id. */
static const char *mode_of(const struct job *j, const struct config_attachments *rules)
{
    struct json_slot hint = json_get(j->arguments, "sizeHint");
    BUF_SCOPED text = {0};
    uint64_t size;

    if (hint.type == JSON_STRING)
        json_unescape(&text, hint.value);
    else if (hint.type == JSON_NUMBER)
        buf_span(&text, hint.value);
    return ascii_number(buf_view(&text), &size) && size < rules->threshold ? "\"inline\""
                                                                           : "\"stash\"";
}

static bool is_save(const struct json_iter *it)
{
    BUF_SCOPED text = {0};

    if (it->type == JSON_STRING)
        json_unescape(&text, it->value);
    return span_eq_nocase(buf_view(&text), SPAN("save"));
}

/* False when there are too many. */
static bool find_pieces(struct enclosures *f, const struct config_attachments *rules)
{
    struct job *j = f->job;
    bool saves = is_listed(&rules->inbound, j->tool, true);
    BUF_SCOPED key = {0};

    for (struct json_iter it = json_iter(j->arguments); json_next(&it);) {
        key.n = 0;
        json_unescape(&key, it.key);
        if (it.type == JSON_ARRAY && is_listed(&rules->outbound, buf_view(&key), false) &&
            !find_items(f, it.value))
            return false;
        if (!saves || !span_is(buf_view(&key), "mode") || !is_save(&it))
            continue;
        struct enclosure *piece = add_piece(f, it.value);
        if (!piece)
            return false;
        buf_str(&piece->fresh, mode_of(j, rules));
        j->saves = true;
    }
    return true;
}

/* A rule has a person asked about the call as it came, but not about the call with the files in it:
 * the rule would be bypassed. */
static bool is_let_past(const struct job *j, struct view *v, const struct request *request)
{
    return j->packed && j->asks &&
           call_foresee(j->worker->host->router, v, request) == PROSPECT_FREE;
}

bool enclosures_pack(struct job *j, struct view *v, const struct request *request,
                     void (*next)(struct job *j))
{
    const struct config_attachments *rules = j->packed ? NULL : rules_of(j);

    if (is_let_past(j, v, request)) {
        job_fail(j, "invalid_arguments", false,
                 "a rule has a person asked about the paths of the files, and server '" SPAN_FMT
                 "' gets no paths. Its operator can have the tool approved instead (approve)",
                 SPAN_ARG(j->server));
        return false;
    }
    if (!rules || (!rules->outbound.n && !rules->inbound.n))
        return true;
    struct enclosures *f = enclosures_new(j);
    f->next = next;
    f->prospect = call_foresee(j->worker->host->router, v, request);
    bool fits = find_pieces(f, rules);
    j->packed = true;
    j->asks = f->prospect == PROSPECT_ASKED;
    /* A call that a rule denies is opened as it came: the rule denies it then. */
    if (fits && (!f->n || f->prospect == PROSPECT_DENIED)) {
        enclosures_drop(j);
        return true;
    }
    if (!fits)
        fail_file(f, "invalid_arguments", "there are more than 16");
    else if (!j->worker->content.attachments)
        fail_file(f, "invalid_arguments",
                  "this bridge has no attachments folder; its operator can set one "
                  "(bus.attachments)");
    else
        step(f);
    return false;
}

/* --- files that are received --- */

static void fail_saving(struct job *j, const char *why)
{
    BUF_SCOPED raw = {0}, text = {0};

    buf_printf(&raw, "The file was not saved: %s", why);
    content_put_line(&text, buf_view(&raw));
    worker_reply_result(j, buf_view(&text), SPAN_EMPTY, true);
}

/* True when the file is saved and its path is sent to the agent. */
static bool save(struct job *j, struct span bytes, struct span mime, struct span name)
{
    struct attachment file;
    struct err err = {0};
    BUF_SCOPED text = {0};

    if (attachment_save(&file, j->worker->content.attachments, bytes, mime, name, &err) < 0) {
        log_warn("bus", "%s", err.text);
        fail_saving(j, err.text);
        return false;
    }
    buf_char(&text, '{');
    attachment_put(&text, &file, mime);
    buf_char(&text, '}');
    attachment_fini(&file);
    worker_reply_result(j, buf_view(&text), SPAN_EMPTY, false);
    return true;
}

/* Takes the type and the name of the file from the answer's headers. */
static void read_head(struct enclosures *f, const struct http_head *head)
{
    struct span type = http_head_value(head, "Content-Type");
    BUF_SCOPED name = {0};

    if (!f->mime.n)
        buf_span(&f->mime, span_trim(span_cut(type, 0, span_find(type, ';'))));
    put_told_name(&name, http_head_value(head, "Content-Disposition"));
    if (name.n) {
        f->name.n = 0;
        buf_span(&f->name, buf_view(&name));
    }
}

static void on_downloaded(void *owner, const struct document_answer *a)
{
    struct enclosures *f = owner;
    struct job *j = f->job;
    const struct bus_host *host = j->worker->host;
    const struct config_attachments *rules = rules_of(j);
    struct provider *p = provider_of(j);
    BUF_SCOPED problem = {0}, path = {0};

    f->request = NULL;
    if (put_failure(&problem, a)) {
        fail_saving(j, buf_cstr(&problem));
        return;
    }
    read_head(f, &a->head);
    if (rules)
        put_path(&path, rules, buf_view(&f->id));
    if (save(j, a->body, buf_view(&f->mime), buf_view(&f->name)) && rules)
        (void)host->request(host->arg, p,
                            &(struct bus_request){.method = "DELETE",
                                                  .path = buf_cstr(&path),
                                                  .max = ANSWER_MAX,
                                                  .timeout = FORGET_MS},
                            NULL, NULL);
}

/* The first text of the result that is a JSON object; false when there is none. */
static bool find_payload(struct buf *out, struct span result)
{
    struct json_slot list = json_get(result, "content");
    enum json_type type;

    for (struct json_iter it = json_iter(list.type == JSON_ARRAY ? list.value : SPAN("[]"));
         json_next(&it);) {
        struct json_slot text =
            it.type == JSON_OBJECT ? json_get(it.value, "text") : (struct json_slot){0};
        out->n = 0;
        if (text.type == JSON_STRING)
            json_unescape(out, text.value);
        if (out->n && json_skim(buf_view(out), NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
            return true;
    }
    return false;
}

static void download(struct enclosures *f, const struct config_attachments *rules)
{
    const struct bus_host *host = f->job->worker->host;
    BUF_SCOPED path = {0};

    put_path(&path, rules, buf_view(&f->id));
    f->request = host->request(host->arg, provider_of(f->job),
                               &(struct bus_request){.method = "GET",
                                                     .path = buf_cstr(&path),
                                                     .max = ATTACHMENT_MAX,
                                                     .timeout = f->job->budget + JOB_ENDS_FIRST_MS},
                               on_downloaded, f);
    if (!f->request)
        fail_saving(f->job, "the server is not reached by HTTP");
}

bool enclosures_unpack(struct job *j, struct span result)
{
    static const char *const data[] = {"base64Content", "base64", "data"};
    static const char *const ids[] = {"attachmentId", "id"};
    static const char *const names[] = {"name"}, *const types[] = {"mime", "mimeType",
                                                                   "contentType"};
    const struct config_attachments *rules = j->saves ? rules_of(j) : NULL;
    BUF_SCOPED payload = {0}, base64 = {0}, bytes = {0};

    if (!rules || !find_payload(&payload, result))
        return false;
    struct span object = buf_view(&payload);
    struct enclosures *f = enclosures_new(j);
    get_any(&f->name, object, names, COUNT_OF(names));
    get_any(&f->mime, object, types, COUNT_OF(types));
    get_any(&base64, object, data, COUNT_OF(data));
    if (!base64.n)
        get_any(&f->id, object, ids, COUNT_OF(ids));
    if (span_is(buf_view(&f->id), ".") || span_is(buf_view(&f->id), ".."))
        f->id.n = 0; /* it would lead to another path of the host */
    if (f->id.n && !f->name.n)
        buf_span(&f->name, buf_view(&f->id));
    if (f->id.n)
        download(f, rules);
    else if (base64.n && attachment_decode(&bytes, buf_view(&base64)) == 0)
        (void)save(j, buf_view(&bytes), buf_view(&f->mime),
                   f->name.n ? buf_view(&f->name) : SPAN("attachment"));
    else
        fail_saving(j, base64.n ? "the server's data is not base64"
                                : "the server gave neither its bytes nor an attachmentId");
    return true;
}
