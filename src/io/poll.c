/* A libuv poll handle on one descriptor that its owner reads. Called by commands for the keyboard,
 * and by browser/launch.c and hub/graph/profile.c for the programs that they start. */
#include "io/poll.h"

#include "io/loop_uv.h"

#include <stdlib.h>
#include <unistd.h>

struct poll {
    struct loop *loop;
    uv_poll_t handle;
    int fd;
    poll_ready_fn *ready;
    void *owner;
};

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct poll *p = CONTAINER_OF(handle, struct poll, handle);

    loop_enter(p->loop);
    (void)status;
    (void)events;
    p->ready(p->owner);
}

static void on_closed(uv_handle_t *handle)
{
    struct poll *p = CONTAINER_OF(handle, struct poll, handle);

    close(p->fd);
    mem_free(p);
}

struct poll *poll_new(struct loop *l, int fd, poll_ready_fn *ready, void *owner)
{
    struct poll *p = MEM_NEW(struct poll);

    p->loop = l;
    p->fd = fd;
    p->ready = ready;
    p->owner = owner;
    if (uv_poll_init(&l->uv, &p->handle, fd) < 0)
        abort(); /* a descriptor that the kernel cannot poll */
    uv_poll_start(&p->handle, UV_READABLE, on_ready);
    return p;
}

void poll_close(struct poll *p)
{
    uv_poll_stop(&p->handle);
    uv_close((uv_handle_t *)&p->handle, on_closed);
}
