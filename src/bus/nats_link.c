/* The thread that makes libnats' blocking calls, the queue of orders from the loop to that thread,
 * and the news back to the loop. Called by nats.c, nats_pipe.c and nats_sub.c; nats_connect.c posts
 * news. */
#include "bus/nats_link.h"

#include "base/log.h"
#include "bus/nats_inside.h"
#include "bus/nats_stream.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum order_kind { CONNECT, STREAM, CONSUMER, DROP };

struct order {
    struct list node;
    enum order_kind kind;
    uint64_t id;
    char *subject, *group;
    bool ephemeral;
    natsSubscription *sub;
};

/* --- the library: one for the whole process, closed with its last user --- */

static unsigned library_users; /* of the loop's thread */

static void library_enter(void)
{
    if (library_users++ == 0 && nats_Open(-1) != NATS_OK) {
        log_error("nats", "the NATS library does not start");
        abort();
    }
}

static void library_leave(void)
{
    nats_ReleaseThreadMemory();
    if (--library_users == 0)
        nats_CloseAndWait(0);
}

/* --- news --- */

void nats_link_tell(struct nats_link *l, enum nats_news_kind kind, const char *fmt, ...)
{
    struct nats_news *n = MEM_NEW(struct nats_news);
    struct buf text = {0};
    va_list ap;

    n->kind = kind;
    n->fd = -1;
    if (fmt) {
        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        n->text = buf_take(&text);
    }
    mailbox_post(l->box, &n->mail);
}

void nats_news_free(struct nats_news *n)
{
    if (n->kind == NATS_ATTACHED && n->fd >= 0)
        close(n->fd);
    mem_free(n->text);
    mem_free(n);
}

static void answer(struct nats_link *l, enum nats_news_kind kind, uint64_t id, bool ok,
                   struct buf *text)
{
    struct nats_news *n = MEM_NEW(struct nats_news);

    n->kind = kind;
    n->id = id;
    n->ok = ok;
    n->text = buf_take(text);
    mailbox_post(l->box, &n->mail);
}

/* --- the thread --- */

static void do_connect(struct nats_link *l, struct order *o)
{
    (void)o;
    nats_link_join_server(l);
}

static bool find_stream(struct nats_link *l, const struct order *o, struct buf *out)
{
    const struct nats_stream_wish wish = {.connection = l->connection,
                                          .js = l->js,
                                          .prefix = l->o->prefix,
                                          .subject = span_str(o->subject)};
    if (!l->js) {
        buf_str(out, "not connected");
        return false;
    }
    return nats_stream_ensure(&wish, out) == NATS_OK;
}

static void do_stream(struct nats_link *l, struct order *o)
{
    struct buf text = {0};
    bool ok = find_stream(l, o, &text);

    answer(l, NATS_STREAM, o->id, ok, &text);
}

static void do_consumer(struct nats_link *l, struct order *o)
{
    BUF_SCOPED next = {0};
    struct buf text = {0};
    bool ok = find_stream(l, o, &text);

    if (ok) {
        buf_printf(&next, "$JS.API.CONSUMER.MSG.NEXT.%s.", buf_cstr(&text));
        char *stream = buf_take(&text);
        ok = nats_consumer_ensure(l->js, stream, o->group, o->subject, o->ephemeral, &text) ==
             NATS_OK;
        mem_free(stream);
    }
    if (ok) {
        buf_span(&next, buf_view(&text));
        answer(l, NATS_CONSUMER, o->id, true, &next);
    } else {
        answer(l, NATS_CONSUMER, o->id, false, &text);
    }
    buf_fini(&text);
}

static void do_drop(struct nats_link *l, struct order *o)
{
    (void)l;
    natsSubscription_Unsubscribe(o->sub);
    natsSubscription_Destroy(o->sub);
}

static void (*const deeds[])(struct nats_link *l, struct order *o) = {
    [CONNECT] = do_connect, [STREAM] = do_stream, [CONSUMER] = do_consumer, [DROP] = do_drop};

static struct order *next_order(struct nats_link *l)
{
    struct order *o = LIST_FIRST(&l->orders, struct order, node);

    if (o)
        list_remove(&o->node);
    return o;
}

static void *link_main(void *arg)
{
    struct nats_link *l = arg;
    struct order *o;

    pthread_mutex_lock(&l->mutex);
    while ((o = next_order(l)) || !l->stop) {
        if (!o) {
            pthread_cond_wait(&l->changed, &l->mutex);
            continue;
        }
        pthread_mutex_unlock(&l->mutex);
        deeds[o->kind](l, o);
        mem_free(o->subject);
        mem_free(o->group);
        mem_free(o);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    nats_link_leave_server(l);
    nats_ReleaseThreadMemory();
    nats_link_tell(l, NATS_GONE, NULL);
    return NULL;
}

/* --- for the loop --- */

struct nats_link *nats_link_new(const struct nats_link_options *o, struct mailbox *box)
{
    struct nats_link *l = MEM_NEW(struct nats_link);
    sigset_t all, before;

    library_enter();
    l->o = o;
    l->box = box;
    l->home = pthread_self();
    list_init(&l->orders);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    /* Signals are the loop's. libnats' threads are started by this one and inherit that. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&l->thread, NULL, link_main, l) != 0) {
        log_error("nats", "the kernel gives no thread");
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l;
}

void nats_link_join(struct nats_link *l)
{
    pthread_join(l->thread, NULL);
}

void nats_link_free(struct nats_link *l)
{
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->changed);
    mem_free(l);
    library_leave();
}

bool nats_link_is_live(const struct nats_link *l)
{
    return atomic_load(&l->live);
}

uint64_t nats_link_sockets(const struct nats_link *l)
{
    return atomic_load(&l->sockets);
}

bool nats_link_wants_write(const struct nats_link *l)
{
    return atomic_load(&l->wants_write);
}

static void give(struct nats_link *l, const struct order *what)
{
    struct order *o = MEM_NEW(struct order);

    *o = *what;
    pthread_mutex_lock(&l->mutex);
    list_append(&l->orders, &o->node);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

void nats_link_connect(struct nats_link *l)
{
    give(l, &(struct order){.kind = CONNECT});
}

void nats_link_find_stream(struct nats_link *l, uint64_t id, const char *subject)
{
    give(l, &(struct order){.kind = STREAM, .id = id, .subject = mem_str(subject)});
}

void nats_link_find_consumer(struct nats_link *l, uint64_t id, const char *subject,
                             const char *group, bool ephemeral)
{
    give(l, &(struct order){.kind = CONSUMER,
                            .id = id,
                            .subject = mem_str(subject),
                            .group = mem_str(group),
                            .ephemeral = ephemeral});
}

void nats_link_drop(struct nats_link *l, natsSubscription *sub)
{
    give(l, &(struct order){.kind = DROP, .sub = sub});
}

static void set_flag(struct nats_link *l, bool *flag)
{
    pthread_mutex_lock(&l->mutex);
    *flag = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

void nats_link_let_go(struct nats_link *l)
{
    set_flag(l, &l->let_go);
}

void nats_link_stop(struct nats_link *l)
{
    set_flag(l, &l->stop);
}
