/* The store of our own issuer: clients, codes, permits and their tokens. Called by issuer*.c. */
#include "hub/auth/permits.h"

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/auth/pass.h"
#include "hub/auth/permit_file.h"

#include <stdio.h>

enum { CLIENTS_MAX = 200, PERMITS_MAX = 500, CODES_MAX = 100 };

enum { CODE_MS = 60 * 1000, CODE_KEEP_MS = 10 * 60 * 1000, FAMILY_BYTES = 16 };

static const int64_t GRACE_MS = 30 * 1000, DAY_MS = 24 * 3600 * 1000ll, REFRESH_DAYS = 30;

struct permits {
    struct loop *loop;
    struct permit_file *file;
    struct list clients, codes, permits;
    size_t n_clients, n_codes, n_permits;
    void (*revoked)(void *arg, uint64_t mark);
    void *arg;
    struct timer forget; /* texts of refresh tokens */
    bool unsaved;        /* the last write failed */
};

enum { SECRET_BYTES = 32 };

static void put_random(struct buf *out, size_t n)
{
    unsigned char random[SECRET_BYTES];

    id_random_bytes(random, n);
    base64_put_url(out, span_of((const char *)random, n));
}

/* Appends 256 random bits as text, and computes the hash of that text. */
static void new_secret(struct buf *out, unsigned char hash[SHA256_N])
{
    size_t at = out->n;

    put_random(out, SECRET_BYTES);
    sha_256(hash, span_from(buf_view(out), at));
}

/* --- clients --- */

struct registration *permits_client(struct permits *p, struct span id)
{
    LIST_EACH (&p->clients, it) {
        struct registration *r = LIST_ENTRY(it, struct registration, node);
        if (span_is(id, r->id))
            return r;
    }
    return NULL;
}

static void drop_client(struct permits *p, struct registration *r)
{
    list_remove(&r->node);
    p->n_clients--;
    registration_free(r);
}

static bool has_permit(const struct permits *p, const struct registration *r)
{
    for (const struct permit *one = NULL; (one = permits_next(p, one));)
        if (strcmp(one->client, r->id) == 0)
            return true;
    return false;
}

/* Drops the clients that nobody has let in within a day; and, while there are too many, the oldest
 * clients without a grant (they were never let in, or their grant has ended). */
static void drop_unused(struct permits *p)
{
    int64_t now = pass_clock();

    LIST_EACH_SAFE (&p->clients, it) {
        struct registration *r = LIST_ENTRY(it, struct registration, node);
        if ((!r->granted && now - r->created > DAY_MS) ||
            (p->n_clients >= CLIENTS_MAX && !has_permit(p, r)))
            drop_client(p, r);
    }
}

bool permits_add_client(struct permits *p, struct registration *r)
{
    drop_unused(p);
    if (p->n_clients >= CLIENTS_MAX)
        return false;
    list_append(&p->clients, &r->node);
    p->n_clients++;
    return true;
}

/* --- codes --- */

static void drop_code(struct permits *p, struct permit_code *c)
{
    char *texts[] = {c->client, c->name, c->redirect, c->challenge, c->resource, c->scope};

    list_remove(&c->node);
    p->n_codes--;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        mem_free(texts[i]);
    mem_free(c);
}

void permits_add_code(struct permits *p, struct permit_code *from, struct buf *out)
{
    struct permit_code *c = MEM_NEW(struct permit_code);
    uint64_t now = loop_now(p->loop);

    LIST_EACH_SAFE (&p->codes, it) {
        struct permit_code *old = LIST_ENTRY(it, struct permit_code, node);
        if (now > old->expires + CODE_KEEP_MS || p->n_codes >= CODES_MAX)
            drop_code(p, old);
    }
    *c = *from;
    c->expires = now + CODE_MS;
    new_secret(out, c->hash);
    list_append(&p->codes, &c->node);
    p->n_codes++;
}

struct permit_code *permits_code(struct permits *p, struct span code)
{
    unsigned char hash[SHA256_N];

    sha_256(hash, code);
    LIST_EACH (&p->codes, it) {
        struct permit_code *c = LIST_ENTRY(it, struct permit_code, node);
        /* A used code is remembered for longer, to detect that it is used a second time. */
        if (sha_same(c->hash, hash, sizeof hash) && (c->used || loop_now(p->loop) < c->expires))
            return c;
    }
    return NULL;
}

/* --- permits --- */

void permit_free(struct permit *p)
{
    mem_free(p->client);
    mem_free(p->name);
    mem_free(p->scope);
    mem_free(p->resource);
    explicit_bzero(p->current, sizeof p->current);
    mem_free(p);
}

static void drop_permit(struct permits *p, struct permit *permit)
{
    list_remove(&permit->node);
    p->n_permits--;
    permit_free(permit);
}

static void drop_expired(struct permits *p)
{
    int64_t now = pass_clock();

    LIST_EACH_SAFE (&p->permits, it) {
        struct permit *permit = LIST_ENTRY(it, struct permit, node);
        if (permit->expires <= now || p->n_permits >= PERMITS_MAX)
            permits_revoke(p, permit,
                           permit->expires <= now ? "it was not used for 30 days"
                                                  : "there are too many");
    }
}

/* Appends a refresh token of the same family as `spent`; of a new family if `spent` is of none. */
static void new_refresh(struct permit *permit, struct span spent, struct buf *out)
{
    if (spent.n == PERMIT_REFRESH_SIZE - 1)
        buf_span(out, span_cut(spent, 0, PERMIT_FAMILY_N));
    else
        put_random(out, FAMILY_BYTES);
    sha_256(permit->family, buf_view(out));
    put_random(out, SECRET_BYTES);
    sha_256(permit->refresh, buf_view(out)); /* hash of both parts */
}

static bool accepts_before(const struct permit *permit, int64_t now)
{
    return permit->rotated && now - permit->rotated <= GRACE_MS;
}

static void forget_texts(struct timer *t)
{
    struct permits *p = CONTAINER_OF(t, struct permits, forget);
    int64_t now = pass_clock();

    LIST_EACH (&p->permits, it) {
        struct permit *permit = LIST_ENTRY(it, struct permit, node);
        if (!accepts_before(permit, now))
            explicit_bzero(permit->current, sizeof permit->current);
        else if (permit->current[0] && !timer_is_set(t))
            timer_set(loop_timers(p->loop), t, (uint64_t)GRACE_MS);
    }
}

void permits_renew(struct permits *p, struct permit *permit, struct span spent, struct buf *access,
                   struct buf *refresh)
{
    int64_t now = pass_clock();
    size_t oldest = 0;

    for (size_t i = 1; i < PERMIT_ACCESS; i++)
        if (permit->access[i].expires < permit->access[oldest].expires)
            oldest = i;
    new_secret(access, permit->access[oldest].hash);
    permit->access[oldest].expires = now + PERMIT_ACCESS_S * 1000;
    permit->used = now;
    if (!spent.n) {
        buf_str(refresh, permit->current);
        return;
    }
    memcpy(permit->before, permit->refresh, sizeof permit->before);
    permit->rotated = now;
    new_refresh(permit, spent, refresh);
    snprintf(permit->current, sizeof permit->current, "%s", buf_cstr(refresh));
    if (!timer_is_set(&p->forget))
        timer_set(loop_timers(p->loop), &p->forget, (uint64_t)GRACE_MS);
    permit->expires = now + REFRESH_DAYS * DAY_MS;
}

struct permit *permits_redeem(struct permits *p, struct permit_code *code, struct buf *access,
                              struct buf *refresh)
{
    struct permit *permit = MEM_NEW(struct permit);

    drop_expired(p);
    permit->mark = code->used = id_random_u64() | 1;
    snprintf(permit->id, sizeof permit->id, "%016llx", (unsigned long long)id_random_u64());
    permit->client = mem_str(code->client);
    permit->name = mem_str(code->name);
    permit->scope = mem_str(code->scope);
    permit->resource = mem_str(code->resource);
    permit->created = pass_clock();
    permits_renew(p, permit, SPAN("new"), access, refresh);
    permit->rotated = 0;
    list_append(&p->permits, &permit->node);
    p->n_permits++;
    return permit;
}

struct permit *permits_by_access(struct permits *p, struct span token, int64_t *expires)
{
    unsigned char hash[SHA256_N];

    if (token.n != PERMIT_TOKEN_SIZE - 1)
        return NULL;
    sha_256(hash, token);
    LIST_EACH (&p->permits, it) {
        struct permit *permit = LIST_ENTRY(it, struct permit, node);
        for (size_t i = 0; i < PERMIT_ACCESS; i++) {
            if (permit->access[i].expires && sha_same(permit->access[i].hash, hash, sizeof hash)) {
                *expires = permit->access[i].expires;
                return permit;
            }
        }
    }
    return NULL;
}

struct permit *permits_by_refresh(struct permits *p, struct span token, enum permit_refresh *what)
{
    unsigned char hash[SHA256_N], family[SHA256_N];
    int64_t now = pass_clock();

    sha_256(hash, token);
    sha_256(family, span_cut(token, 0, PERMIT_FAMILY_N));
    LIST_EACH (&p->permits, it) {
        struct permit *permit = LIST_ENTRY(it, struct permit, node);
        bool current = sha_same(permit->refresh, hash, sizeof hash);
        bool last = permit->rotated && sha_same(permit->before, hash, sizeof hash);
        if (!current && !last && !sha_same(permit->family, family, sizeof family))
            continue;
        *what = current                               ? PERMIT_CURRENT
                : last && accepts_before(permit, now) ? PERMIT_JUST_BEFORE
                                                      : PERMIT_REPLAYED;
        return permit->expires > now ? permit : NULL;
    }
    return NULL;
}

struct permit *permits_by_mark(struct permits *p, uint64_t mark)
{
    LIST_EACH (&p->permits, it)
        if (LIST_ENTRY(it, struct permit, node)->mark == mark)
            return LIST_ENTRY(it, struct permit, node);
    return NULL;
}

void permits_revoke(struct permits *p, struct permit *permit, const char *why)
{
    uint64_t mark = permit->mark;

    log_info("auth", "the grant %s of '%s' has ended: %s", permit->id, permit->name, why);
    drop_permit(p, permit);
    p->revoked(p->arg, mark);
}

struct permit *permits_next(const struct permits *p, const struct permit *before)
{
    const struct list *at = before ? before->node.next : p->permits.next;

    return at == &p->permits ? NULL : LIST_ENTRY((uintptr_t)at, struct permit, node);
}

/* --- life --- */

int permits_save(struct permits *p)
{
    int code = permit_file_write(p->file, &p->clients, &p->permits);

    p->unsaved = code != 0;
    return code;
}

bool permits_is_unsaved(const struct permits *p)
{
    return p->unsaved;
}

struct permits *permits_open(struct loop *l, void (*revoked)(void *arg, uint64_t mark), void *arg)
{
    struct permits *p = MEM_NEW(struct permits);

    p->loop = l;
    p->revoked = revoked;
    p->arg = arg;
    p->forget.fire = forget_texts;
    list_init(&p->clients);
    list_init(&p->codes);
    list_init(&p->permits);
    p->file = permit_file_open();
    permit_file_read(p->file, &p->clients, &p->n_clients, &p->permits, &p->n_permits);
    return p;
}

void permits_close(struct permits *p)
{
    LIST_EACH_SAFE (&p->codes, it)
        drop_code(p, LIST_ENTRY(it, struct permit_code, node));
    LIST_EACH_SAFE (&p->permits, it)
        drop_permit(p, LIST_ENTRY(it, struct permit, node));
    LIST_EACH_SAFE (&p->clients, it)
        drop_client(p, LIST_ENTRY(it, struct registration, node));
    permit_file_close(p->file);
    timer_clear(loop_timers(p->loop), &p->forget);
    mem_free(p);
}
