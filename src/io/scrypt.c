/* Passwords hashed by scrypt, and checked by a thread of libuv's pool. Called by hub/auth/pairing.c
 * and cmd/pair.c. */
#include "io/scrypt.h"

#include "base/ascii.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/library.h"
#include "base/mem.h"
#include "base/sha.h"
#include "io/loop_uv.h"

#include <openssl/evp.h>

enum {
    LOG_N = 15,
    BLOCKS = 8, /* "r" */
    LANES = 1,  /* "p" */
    LOG_N_MAX = 17,
    SALT_N = 16,
    HASH_N = 32,
    PASSWORD_MAX = 1024,
};

struct cost {
    uint64_t log_n, r, p;
};

struct scrypt {
    uv_work_t work;
    struct loop *loop;
    struct cost cost;
    struct buf salt, wanted, password;
    bool same;
    bool cancelled;
    void (*done)(void *owner, bool same);
    void *owner;
};

static bool hash(unsigned char out[HASH_N], const struct cost *c, struct span salt,
                 struct span password)
{
    uint64_t n = (uint64_t)1 << c->log_n;

    return EVP_PBE_scrypt(password.p ? password.p : "", password.n, (const unsigned char *)salt.p,
                          salt.n, n, c->r, c->p, 256 * n * c->r, out, HASH_N) == 1;
}

int scrypt_put(struct buf *out, struct span password, struct err *err)
{
    const struct cost cost = {LOG_N, BLOCKS, LANES};
    unsigned char salt[SALT_N], made[HASH_N];
    int code = library_load(LIBRARY_TLS, err);

    if (code)
        return code;
    id_random_bytes(salt, sizeof salt);
    if (password.n > PASSWORD_MAX || !hash(made, &cost, span_of((char *)salt, SALT_N), password))
        return err_set(err, ERR_SIZE, "the password is too long, or memory ran out");
    buf_printf(out, "scrypt:%d:%d:%d:", LOG_N, BLOCKS, LANES);
    base64_put_url(out, span_of((char *)salt, SALT_N));
    buf_char(out, ':');
    base64_put_url(out, span_of((char *)made, HASH_N));
    return 0;
}

/* --- checking --- */

static struct span next_part(struct span *rest)
{
    struct span part = span_cut(*rest, 0, span_find(*rest, ':'));

    *rest = span_from(*rest, part.n + 1);
    return part;
}

/* The numbers are limited: they come from a file, and decide how long a check takes. */
static bool read_kept(struct scrypt *s, const char *kept)
{
    struct span rest = span_str(kept);

    return span_is(next_part(&rest), "scrypt") && ascii_number(next_part(&rest), &s->cost.log_n) &&
           s->cost.log_n >= 10 && s->cost.log_n <= LOG_N_MAX &&
           ascii_number(next_part(&rest), &s->cost.r) && s->cost.r >= 1 && s->cost.r <= 16 &&
           ascii_number(next_part(&rest), &s->cost.p) && s->cost.p >= 1 && s->cost.p <= 4 &&
           base64_read_url(&s->salt, next_part(&rest)) == 0 && s->salt.n >= 8 &&
           base64_read_url(&s->wanted, rest) == 0 && s->wanted.n == HASH_N;
}

static void scrypt_free(struct scrypt *s)
{
    if (s->password.n)
        explicit_bzero(s->password.p, s->password.n);
    buf_fini(&s->password);
    buf_fini(&s->salt);
    buf_fini(&s->wanted);
    mem_free(s);
}

/* Runs in the thread. */
static void on_work(uv_work_t *work)
{
    struct scrypt *s = CONTAINER_OF(work, struct scrypt, work);
    unsigned char made[HASH_N];

    s->same = hash(made, &s->cost, buf_view(&s->salt), buf_view(&s->password)) &&
              sha_same(made, (const unsigned char *)s->wanted.p, HASH_N);
}

static void on_worked(uv_work_t *work, int status)
{
    struct scrypt *s = CONTAINER_OF(work, struct scrypt, work);

    loop_enter(s->loop);
    s->loop->threads--;
    if (!s->cancelled)
        s->done(s->owner, status == 0 && s->same);
    scrypt_free(s);
}

struct scrypt *scrypt_check(struct loop *l, const char *kept, struct span password,
                            void (*done)(void *owner, bool same), void *owner, struct err *err)
{
    if (library_load(LIBRARY_TLS, err))
        return NULL;
    struct scrypt *s = MEM_NEW(struct scrypt);
    s->loop = l;
    s->done = done;
    s->owner = owner;
    buf_span(&s->password, span_cut(password, 0, PASSWORD_MAX));
    if (!read_kept(s, kept) || uv_queue_work(&l->uv, &s->work, on_work, on_worked)) {
        err_set(err, ERR_CONFIG, "the stored form of the password is not valid");
        scrypt_free(s);
        return NULL;
    }
    l->threads++;
    return s;
}

void scrypt_cancel(struct scrypt *s)
{
    s->cancelled = true;
}
