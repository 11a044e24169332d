/* The table of tokens that were found valid, and their principals. Called by gate.c, which finds
 * passes, and by trust.c, introspection.c and issuer.c, which add and end them. */
#include "hub/auth/pass.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/visible.h"

#include <time.h>

enum {
    PASSES_MAX = 10000,
    BYTES_MAX = 16 * 1024 * 1024, /* of tokens */
    LOOK_AGAIN_MS = 60 * 1000,    /* Unix time may jump: the machine slept, or its clock was set */
};

/* One subject of one issuer, with one view. */
struct owner {
    char *key;
    size_t key_n;
    struct principal *who;
    struct list shown; /* its passes, the newest first */
    size_t passes;
};

struct known_pass {
    struct pass pass;
    struct list node;     /* in the order in which they were added */
    struct list sibling;  /* in the owner's list */
    struct passes *table; /* NULL: the pass is over */
    struct owner *owner;
    const void *judge;
    uint64_t mark;
    unsigned holders;
    size_t token_n;
    char token[];
};

struct passes {
    struct loop *loop;
    struct map by_token;
    struct map owners;
    struct list all;
    size_t n, bytes;
    struct timer expiry;
    struct deferred tell;
    void (*ended)(void *arg);
    void *arg;
};

int64_t pass_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool pass_is_over(const struct pass *p, int64_t now)
{
    return p->expires && p->expires <= now;
}

static struct known_pass *known(const struct pass *p)
{
    return CONTAINER_OF((uintptr_t)p, struct known_pass, pass);
}

static struct span token_of(const struct known_pass *k)
{
    return span_of(k->token, k->token_n);
}

/* --- one pass --- */

const struct pass *pass_hold(const struct pass *p)
{
    known(p)->holders++;
    return p;
}

void pass_release(const struct pass *p)
{
    struct known_pass *k = p ? known(p) : NULL;

    if (!k || --k->holders)
        return;
    principal_release(k->pass.who);
    mem_free(k->pass.view);
    mem_free(k->pass.resource);
    explicit_bzero(k->token, k->token_n);
    mem_free(k);
}

bool pass_is_of(const struct pass *p, struct span token)
{
    const struct known_pass *k = known(p);

    return k->table && span_eq(token_of(k), token) && !pass_is_over(p, pass_clock());
}

bool pass_is_in_use(const struct pass *p)
{
    const struct known_pass *k = known(p);

    /* The table itself has one hold for the owner and one for each of the owner's passes. */
    return k->owner && p->who->holders > 1 + k->owner->passes;
}

/* Puts the owner's newest token and its issuer into the principal, for hub/signin/renewal.c. */
static void show_newest(struct owner *o)
{
    struct known_pass *k = LIST_FIRST(&o->shown, struct known_pass, sibling);

    o->who->token = k ? token_of(k) : SPAN_EMPTY;
    o->who->issuer = k ? span_str(o->key) : SPAN_EMPTY; /* the key begins with the issuer */
}

/* Removes a pass. True: it was the owner's last one, and the principal has ended. */
static bool drop(struct known_pass *k)
{
    struct passes *t = k->table;
    struct owner *o = k->owner;

    map_del(&t->by_token, token_of(k));
    list_remove(&k->node);
    list_remove(&k->sibling);
    show_newest(o);
    t->n--;
    t->bytes -= k->token_n;
    k->table = NULL;
    k->owner = NULL;
    bool last = --o->passes == 0;
    if (last) {
        o->who->ended = true;
        map_del(&t->owners, span_of(o->key, o->key_n));
        principal_release(o->who);
        mem_free(o->key);
        mem_free(o);
    }
    pass_release(&k->pass);
    return last;
}

/* --- expiry --- */

/* Makes sure that the timer goes off in time for this pass. */
static void set_timer(struct passes *t, const struct pass *p, int64_t now)
{
    struct timers *ts = loop_timers(t->loop);
    int64_t left = p->expires ? p->expires - now : LOOK_AGAIN_MS;
    uint64_t wait = left > LOOK_AGAIN_MS ? LOOK_AGAIN_MS : left > 0 ? (uint64_t)left : 0;

    if (!timer_is_set(&t->expiry) || t->expiry.at > ts->now + wait)
        timer_set(ts, &t->expiry, wait);
}

static void on_tell(struct deferred *d)
{
    struct passes *t = CONTAINER_OF(d, struct passes, tell);

    t->ended(t->arg);
}

static void tell_if(struct passes *t, bool any)
{
    if (any)
        loop_defer(t->loop, &t->tell, on_tell);
}

static void on_expiry(struct timer *timer)
{
    struct passes *t = CONTAINER_OF(timer, struct passes, expiry);
    int64_t now = pass_clock();
    bool any = false;

    LIST_EACH_SAFE (&t->all, it) {
        struct known_pass *k = LIST_ENTRY(it, struct known_pass, node);
        if (pass_is_over(&k->pass, now))
            any |= drop(k);
        else
            set_timer(t, &k->pass, now);
    }
    tell_if(t, any);
}

/* --- the table --- */

struct passes *passes_new(struct loop *l, void (*ended)(void *arg), void *arg)
{
    struct passes *t = MEM_NEW(struct passes);

    t->loop = l;
    t->ended = ended;
    t->arg = arg;
    t->expiry.fire = on_expiry;
    list_init(&t->all);
    return t;
}

void passes_free(struct passes *t)
{
    LIST_EACH_SAFE (&t->all, it)
        drop(LIST_ENTRY(it, struct known_pass, node));
    timer_clear(loop_timers(t->loop), &t->expiry);
    loop_undefer(&t->tell);
    map_fini(&t->by_token);
    map_fini(&t->owners);
    mem_free(t);
}

const struct pass *passes_find(struct passes *t, struct span token)
{
    struct known_pass *k = t->n ? map_get(&t->by_token, token) : NULL;

    return k && !pass_is_over(&k->pass, pass_clock()) ? &k->pass : NULL;
}

/* "alice (https://idp.example.com)", as people will read it in the log and in lists of calls. */
static struct principal *principal_of(const struct pass_facts *f)
{
    BUF_SCOPED name = {0};

    visible_put(&name, f->subject, 0);
    buf_str(&name, " (");
    visible_put(&name, f->issuer, 0);
    buf_char(&name, ')');
    return principal_new(buf_cstr(&name));
}

static struct owner *owner_of(struct passes *t, const struct pass_facts *f)
{
    BUF_SCOPED key = {0};

    buf_span(&key, f->issuer);
    buf_char(&key, '\0');
    buf_span(&key, f->subject);
    buf_char(&key, '\0');
    buf_str(&key, f->view ? f->view : "");
    struct owner *o = map_get(&t->owners, buf_view(&key));
    if (!o) {
        o = MEM_NEW(struct owner);
        o->key_n = key.n;
        o->who = principal_of(f);
        list_init(&o->shown);
        map_put(&t->owners, buf_view(&key), o);
        o->key = buf_take(&key);
    }
    return o;
}

/* Drops the oldest passes to make room. A token whose pass was dropped is judged again when it is
 * used again. */
static bool make_room(struct passes *t, size_t bytes)
{
    bool any = false;

    while (t->n && (t->n >= PASSES_MAX || t->bytes + bytes > BYTES_MAX))
        any |= drop(LIST_FIRST(&t->all, struct known_pass, node));
    return any;
}

const struct pass *passes_add(struct passes *t, struct span token, const struct pass_facts *f)
{
    struct known_pass *k = mem_zalloc(sizeof *k + token.n), *before;
    bool any = make_room(t, token.n);

    memcpy(k->token, token.p, token.n);
    k->token_n = token.n;
    k->owner = owner_of(t, f);
    k->owner->passes++;
    list_append(k->owner->shown.next, &k->sibling); /* before the first */
    show_newest(k->owner);
    k->owner->who->tokens++;
    k->table = t;
    k->judge = f->judge;
    k->mark = f->mark;
    k->holders = 1;
    k->pass = (struct pass){.who = principal_hold(k->owner->who),
                            .view = f->view ? mem_str(f->view) : NULL,
                            .role = ROLE_AGENT,
                            .expires = f->expires,
                            .resource = f->resource.n ? mem_span(f->resource) : NULL};
    before = map_get(&t->by_token, token);
    if (before)
        any |= drop(before); /* has the same owner, which has the new pass already */
    map_put(&t->by_token, token, k);
    list_append(&t->all, &k->node);
    t->n++;
    t->bytes += token.n;
    set_timer(t, &k->pass, pass_clock());
    tell_if(t, any);
    return &k->pass;
}

void passes_end(struct passes *t, const void *judge, bool (*is_over)(void *arg, uint64_t mark),
                void *arg)
{
    bool any = false;

    LIST_EACH_SAFE (&t->all, it) {
        struct known_pass *k = LIST_ENTRY(it, struct known_pass, node);
        if (k->judge == judge && (!is_over || is_over(arg, k->mark)))
            any |= drop(k);
    }
    tell_if(t, any);
}
