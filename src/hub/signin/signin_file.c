/* signin.json: read, changed under a lock, written so that a crash loses nothing. Called by
 * signin.c and login.c. */
#include "hub/signin/signin_file.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "hub/places.h"
#include "io/crypt.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 16 * 1024 * 1024 };

static const char use[] = "rialto signin.json 1"; /* what the key is for */

/* The first texts of a record say what it is for: they are its key. */
enum { KEY_TEXTS = SIGNIN_ISSUER + 1 };

static const struct {
    const char *name;
    bool secret;
} texts[SIGNIN_TEXTS] = {
    [SIGNIN_SERVER] = {"server", false},
    [SIGNIN_URL] = {"url", false},
    [SIGNIN_USER] = {"user", false},
    [SIGNIN_ISSUER] = {"issuer", false},
    [SIGNIN_CLIENT] = {"client_id", false},
    [SIGNIN_CLIENT_SECRET] = {"client_secret", true},
    [SIGNIN_METHOD] = {"method", false},
    [SIGNIN_RESOURCE] = {"resource", false},
    [SIGNIN_TOKEN_ENDPOINT] = {"token_endpoint", false},
    [SIGNIN_REVOCATION] = {"revocation_endpoint", false},
    [SIGNIN_REDIRECT] = {"redirect_uri", false},
    [SIGNIN_NEAR] = {"near", false},
    [SIGNIN_SCOPE] = {"scope", false},
    [SIGNIN_ASKED] = {"asked", false},
    [SIGNIN_WANTED] = {"wanted", false},
    [SIGNIN_ACCESS] = {"access_token", true},
    [SIGNIN_REFRESH] = {"refresh_token", true},
};

struct signin_file {
    char *path, *lock_path;
    struct buf secret; /* empty: nothing is encrypted */
    struct list records;
    struct stat seen; /* of the file when it was read; zeroed: there was none */
    int lock_fd;      /* -1 until first needed */
};

/* --- records --- */

void signin_record_set(struct signin_record *r, enum signin_text which, struct span text)
{
    mem_free(r->texts[which]);
    r->texts[which] = text.n ? mem_span(text) : NULL;
    if (texts[which].secret)
        log_add_secret(text);
}

static void free_record(struct signin_record *r)
{
    list_remove(&r->node);
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        mem_free(r->texts[i]);
    mem_free(r);
}

static void clear(struct list *records)
{
    struct signin_record *r;

    while ((r = LIST_FIRST(records, struct signin_record, node)))
        free_record(r);
}

static bool same_text(const char *a, const char *b)
{
    return span_eq(span_str(a), span_str(b));
}

/* A server has one record, whatever its issuer; a registration has one for each issuer. */
static bool is_for_same(const struct signin_record *a, const struct signin_record *b)
{
    for (int i = 0; i < KEY_TEXTS; i++)
        if (!same_text(a->texts[i], b->texts[i]) && !(i == SIGNIN_ISSUER && a->texts[0]))
            return false;
    return true;
}

static struct signin_record *copy_record(const struct signin_record *r)
{
    struct signin_record *copy = MEM_NEW(struct signin_record);

    for (int i = 0; i < SIGNIN_TEXTS; i++)
        copy->texts[i] = mem_str(r->texts[i]);
    copy->since = r->since;
    copy->expires = r->expires;
    return copy;
}

/* --- the text of the file --- */

static void put_record(struct buf *out, const struct signin_record *r)
{
    json_out_open(out, NULL, '{');
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        if (r->texts[i])
            json_out_str(out, texts[i].name, r->texts[i]);
    json_out_number(out, "since", (uint64_t)r->since);
    json_out_number(out, "expires", (uint64_t)r->expires);
    buf_char(out, '}');
}

static int put_file(const struct signin_file *f, struct buf *out, struct err *err)
{
    BUF_SCOPED plain = {0}, sealed = {0};

    buf_char(&plain, '[');
    LIST_EACH (&f->records, it)
        put_record(&plain, LIST_ENTRY(it, struct signin_record, node));
    buf_char(&plain, ']');
    buf_str(out, "{\"version\":1,");
    if (f->secret.n) {
        int code = crypt_seal(&sealed, buf_view(&f->secret), use, buf_view(&plain), err);
        if (code)
            return code;
        buf_str(out, "\"sealed\":\"");
        base64_put(out, buf_view(&sealed));
        buf_str(out, "\"}\n");
    } else {
        buf_str(out, "\"records\":");
        buf_span(out, buf_view(&plain));
        buf_str(out, "}\n");
    }
    return 0;
}

static int64_t number_of(struct span record, const char *name)
{
    int64_t n = 0;

    return json_int(json_get(record, name).value, &n) && n > 0 ? n : 0;
}

static void read_record(struct signin_file *f, struct span text)
{
    struct signin_record *r = MEM_NEW(struct signin_record);

    for (int i = 0; i < SIGNIN_TEXTS; i++) {
        BUF_SCOPED scratch = {0};
        struct json_slot slot = json_get(text, texts[i].name);
        if (slot.type == JSON_STRING)
            signin_record_set(r, (enum signin_text)i, json_text(slot.value, &scratch));
    }
    r->since = number_of(text, "since");
    r->expires = number_of(text, "expires");
    list_append(&f->records, &r->node);
}

/* The records as text, decrypted into `plain` if need be. */
static int open_records(const struct signin_file *f, struct span text, struct buf *plain,
                        struct span *records, struct err *err)
{
    BUF_SCOPED sealed = {0};
    struct json_slot closed = json_get(text, "sealed"), open = json_get(text, "records");

    *records = open.value;
    if (open.type == JSON_ARRAY)
        return 0;
    if (closed.type != JSON_STRING ||
        base64_read(&sealed, span_cut(closed.value, 1, closed.value.n - 2)))
        return err_set(err, ERR_SYNTAX, "%s is damaged", f->path);
    if (!f->secret.n) {
        err_hint(err, "rialto-token-key is looked up like any secret (secrets.directory, systemd's "
                      "credentials, secrets.command)");
        return err_set(err, ERR_CONFIG,
                       "%s is encrypted, and the secret rialto-token-key is not there", f->path);
    }
    struct err why;
    int code = crypt_open(plain, buf_view(&f->secret), use, buf_view(&sealed), &why);
    if (code)
        return err_set(err, code, "%s cannot be decrypted: %s", f->path, why.text);
    *records = buf_view(plain);
    return 0;
}

static int load(struct signin_file *f, struct span text, struct err *err)
{
    BUF_SCOPED plain = {0};
    enum json_type type;
    struct span records;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return err_set(err, ERR_SYNTAX, "%s is damaged: it is not a JSON object", f->path);
    int code = open_records(f, text, &plain, &records, err);
    if (code)
        return code;
    if (json_skim(records, NULL, NULL, &type, NULL) || type != JSON_ARRAY)
        return err_set(err, ERR_SYNTAX, "%s is damaged", f->path);
    clear(&f->records);
    for (struct json_iter it = json_iter(records); json_next(&it);)
        if (it.type == JSON_OBJECT)
            read_record(f, it.value);
    return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int signin_file_read(struct signin_file *f, struct err *err)
{
    struct stat now = {0};
    BUF_SCOPED text = {0};

    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return err_set(err, -errno, "cannot read %s: %s", f->path, err_name(-errno));
    if (fd < 0) {
        clear(&f->records);
        f->seen = now;
        return 0;
    }
    int code = fstat(fd, &now) ? -errno : 0;
    bool same = !code && is_same_file(&now, &f->seen);
    if (!code && !same)
        code = file_read_fd(&text, fd, FILE_MAX);
    close(fd);
    if (code)
        return err_set(err, code, "cannot read %s: %s", f->path, err_name(code));
    if (!same)
        code = load(f, buf_view(&text), err);
    if (!code)
        f->seen = now;
    return code;
}

/* --- locks --- */

/* All locks are bytes of one file: byte 0 is for changes, each other byte for the tokens whose hash
 * is its offset. A lock ends with the process that holds it. */
static bool set_lock(struct signin_file *f, short type, off_t at, bool waits)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    if (f->lock_fd < 0)
        f->lock_fd = open(f->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (f->lock_fd >= 0 && fcntl(f->lock_fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &range))
        if (errno != EINTR)
            return errno != EAGAIN && errno != EACCES; /* a file system without locks: go on */
    return true;
}

static off_t place_of(const struct signin_record *r)
{
    unsigned char digest[SHA256_N];
    BUF_SCOPED key = {0};

    for (int i = 0; i < SIGNIN_ISSUER; i++)
        buf_printf(&key, "%s\n", r->texts[i] ? r->texts[i] : "");
    sha_256(digest, buf_view(&key));
    return 1 + ((off_t)digest[0] << 16 | (off_t)digest[1] << 8 | digest[2]);
}

bool signin_file_claim(struct signin_file *f, const struct signin_record *r)
{
    return set_lock(f, F_WRLCK, place_of(r), false);
}

void signin_file_unclaim(struct signin_file *f, const struct signin_record *r)
{
    (void)set_lock(f, F_UNLCK, place_of(r), false);
}

/* --- changes --- */

/* Reads the file, removes the record with the key of `r`, adds `r` if `keep` is set, and writes the
 * file. */
static int change(struct signin_file *f, const struct signin_record *r, bool keep, struct err *err)
{
    BUF_SCOPED text = {0};

    int code = signin_file_read(f, err);
    if (code)
        return code;
    LIST_EACH_SAFE (&f->records, it) {
        struct signin_record *before = LIST_ENTRY(it, struct signin_record, node);
        if (is_for_same(r, before))
            free_record(before);
    }
    if (keep) {
        struct signin_record *copy = copy_record(r);
        list_append(&f->records, &copy->node);
    }
    code = put_file(f, &text, err);
    if (code)
        return code;
    code = file_replace_synced(f->path, buf_view(&text));
    if (code)
        return err_set(err, code, "cannot write %s: %s", f->path, err_name(code));
    return stat(f->path, &f->seen) ? err_set(err, -errno, "cannot read %s", f->path) : 0;
}

static int change_locked(struct signin_file *f, const struct signin_record *r, bool keep,
                         struct err *err)
{
    struct signin_record *copy = copy_record(r); /* `r` may be in the list that is read again */

    (void)set_lock(f, F_WRLCK, 0, true);
    int code = change(f, copy, keep, err);
    (void)set_lock(f, F_UNLCK, 0, false);
    list_init(&copy->node);
    free_record(copy);
    return code;
}

int signin_file_put(struct signin_file *f, const struct signin_record *r, struct err *err)
{
    return change_locked(f, r, true, err);
}

int signin_file_drop(struct signin_file *f, const struct signin_record *r, struct err *err)
{
    return change_locked(f, r, false, err);
}

/* --- finding --- */

static const struct signin_record *find(const struct signin_file *f,
                                        const char *const wanted[KEY_TEXTS])
{
    LIST_EACH (&f->records, it) {
        const struct signin_record *r = LIST_ENTRY(it, struct signin_record, node);
        bool same = true;
        for (int i = 0; i < KEY_TEXTS; i++)
            same &= same_text(r->texts[i], wanted[i]) || (i == SIGNIN_ISSUER && !wanted[i]);
        if (same)
            return r;
    }
    return NULL;
}

const struct signin_record *signin_file_find(const struct signin_file *f, const char *server,
                                             const char *url, const char *user)
{
    return find(f, (const char *const[KEY_TEXTS]){
                       [SIGNIN_SERVER] = server, [SIGNIN_URL] = url, [SIGNIN_USER] = user});
}

const struct signin_record *signin_file_client(const struct signin_file *f, const char *issuer,
                                               const char *redirect_uri)
{
    return find(
        f, (const char *const[KEY_TEXTS]){[SIGNIN_URL] = redirect_uri, [SIGNIN_ISSUER] = issuer});
}

/* --- life --- */

struct signin_file *signin_file_new(struct span secret)
{
    char *path = place_path(PLACE_STATE, "signin.json");

    if (!path)
        return NULL;
    struct signin_file *f = MEM_NEW(struct signin_file);
    f->path = path;
    f->lock_path = place_path(PLACE_STATE, "signin.lock");
    f->lock_fd = -1;
    buf_span(&f->secret, secret);
    list_init(&f->records);
    return f;
}

void signin_file_free(struct signin_file *f)
{
    if (!f)
        return;
    clear(&f->records);
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    buf_fini(&f->secret);
    mem_free(f->lock_path);
    mem_free(f->path);
    mem_free(f);
}

const char *signin_file_path(const struct signin_file *f)
{
    return f->path;
}
