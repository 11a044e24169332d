/* A locked queue that other threads post to, and the handle that wakes the loop to deliver it.
 * Owned by bus/nats.c; bus/nats_connect.c and bus/nats_link.c post to it. */
#include "io/mailbox.h"

#include "base/log.h"
#include "io/loop_uv.h"

#include <assert.h>
#include <stdlib.h>

struct mailbox {
    struct loop *loop;
    const struct mailbox_events *on;
    void *owner;
    uv_async_t wake;
    uv_mutex_t mutex;
    struct list posted; /* under the mutex */
    struct list taken;  /* the loop's: out of the threads' reach, to be delivered next */
    bool closed;
};

/* All of `from` behind what `to` holds. */
static void move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/*
 * What was posted by now is delivered; what is posted meanwhile wakes us again, so that a busy
 * sender cannot keep the loop from its sockets.
 */
static void on_wake(uv_async_t *wake)
{
    struct mailbox *b = CONTAINER_OF(wake, struct mailbox, wake);

    loop_enter(b->loop);
    uv_mutex_lock(&b->mutex);
    move_all(&b->taken, &b->posted);
    uv_mutex_unlock(&b->mutex);

    /* `b` outlives a close from inside: its memory goes when libuv lets go of the handle. */
    while (!b->closed && !list_empty(&b->taken)) {
        struct mail *m = LIST_FIRST(&b->taken, struct mail, node);
        list_remove(&m->node);
        b->on->deliver(b->owner, m);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct mailbox *b = CONTAINER_OF(handle, struct mailbox, wake);

    uv_mutex_destroy(&b->mutex);
    mem_free(b);
}

struct mailbox *mailbox_new(struct loop *l, const struct mailbox_events *on, void *owner)
{
    struct mailbox *b = MEM_NEW(struct mailbox);

    b->loop = l;
    b->on = on;
    b->owner = owner;
    list_init(&b->posted);
    list_init(&b->taken);
    if (uv_mutex_init(&b->mutex) < 0 || uv_async_init(&l->uv, &b->wake, on_wake) < 0) {
        log_error("loop", "the kernel gives no mailbox (out of file descriptors?)");
        abort();
    }
    return b;
}

void mailbox_post(struct mailbox *b, struct mail *m)
{
    uv_mutex_lock(&b->mutex);
    /* All but the first find the loop awake already. Woken under the mutex: once the loop has the
     * mail it may close the mailbox. */
    if (list_empty(&b->posted))
        uv_async_send(&b->wake);
    list_append(&b->posted, &m->node);
    uv_mutex_unlock(&b->mutex);
}

void mailbox_close(struct mailbox *b)
{
    assert(!b->closed);
    b->closed = true;
    uv_mutex_lock(&b->mutex);
    move_all(&b->taken, &b->posted);
    uv_mutex_unlock(&b->mutex);
    while (!list_empty(&b->taken)) {
        struct mail *m = LIST_FIRST(&b->taken, struct mail, node);
        list_remove(&m->node);
        b->on->discard(b->owner, m);
    }
    uv_close((uv_handle_t *)&b->wake, on_closed);
}
