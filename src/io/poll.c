/* A libuv poll handle on one descriptor that its owner reads and writes itself. Called by
 * bus/nats_pipe.c for libnats' socket and by cmd/screen.c for the keyboard. */
#include "io/poll.h"

#include "io/loop_uv.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct poll {
    struct loop *loop;
    uv_poll_t handle;
    int fd;
    poll_ready_fn *ready; /* NULL once closed */
    void *owner;
    bool want_write;
};

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct poll *p = CONTAINER_OF(handle, struct poll, handle);

    loop_enter(p->loop);
    p->ready(p->owner, status < 0 || (events & UV_READABLE), events & UV_WRITABLE);
}

static void on_closed(uv_handle_t *handle)
{
    struct poll *p = CONTAINER_OF(handle, struct poll, handle);

    close(p->fd);
    mem_free(p);
}

static void watch(struct poll *p)
{
    uv_poll_start(&p->handle, UV_READABLE | (p->want_write ? UV_WRITABLE : 0), on_ready);
}

struct poll *poll_new(struct loop *l, int fd, poll_ready_fn *ready, void *owner)
{
    struct poll *p = MEM_NEW(struct poll);

    p->loop = l;
    p->fd = fd;
    p->ready = ready;
    p->owner = owner;
    if (uv_poll_init(&l->uv, &p->handle, fd) < 0)
        abort(); /* the descriptor is no socket */
    watch(p);
    return p;
}

void poll_want_write(struct poll *p, bool want)
{
    if (p->want_write == want)
        return;
    p->want_write = want;
    watch(p);
}

void poll_hang_up(struct poll *p)
{
    shutdown(p->fd, SHUT_RDWR);
}

void poll_close(struct poll *p)
{
    uv_poll_stop(&p->handle);
    uv_close((uv_handle_t *)&p->handle, on_closed);
}
