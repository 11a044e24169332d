/* The event loop on libuv: work at the end of a turn, timers, signals, limits of the process.
 * Commands make and run a loop; everything with I/O sets timers and defers work on it. */
#include "io/loop.h"

#include "base/log.h"
#include "io/guard.h"
#include "io/loop_uv.h"
#include "io/tls.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct loop_signal {
    struct list node;
    uv_signal_t handle;
    struct loop *loop;
    void (*fn)(void *arg, int signo);
    void *arg;
};

/* --- work for the end of the turn --- */

static void queue(struct list *head, struct deferred *d, void (*fn)(struct deferred *d))
{
    d->fn = fn;
    if (d->node.next && !list_empty(&d->node))
        return;
    list_append(head, &d->node);
}

void loop_defer(struct loop *l, struct deferred *d, void (*fn)(struct deferred *d))
{
    queue(&l->deferred, d, fn);
}

void loop_flush_later(struct loop *l, struct deferred *d, void (*fn)(struct deferred *d))
{
    queue(&l->flushes, d, fn);
}

void loop_undefer(struct deferred *d)
{
    if (d->node.next)
        list_remove(&d->node);
}

/*
 * Run the work that is queued now, not the work that it queues in turn: work that queues itself
 * again must not keep the loop from its sockets. A marker shows where "now" ends; callbacks may
 * take any node off the list.
 */
static void run_queued(struct loop *l, struct list *head)
{
    if (list_empty(head))
        return;
    list_append(head, &l->marker);
    while (head->next != &l->marker) {
        struct deferred *d = LIST_ENTRY(head->next, struct deferred, node);
        list_remove(&d->node);
        d->fn(d);
    }
    list_remove(&l->marker);
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle; /* does nothing: while this handle is active libuv polls without waiting */
}

static void on_timer(uv_timer_t *handle)
{
    struct loop *l = handle->data;
    l->armed = UINT64_MAX;
    timers_advance(&l->timers, uv_now(&l->uv));
}

/*
 * Only a deadline earlier than the armed one touches libuv's timer; a later one is armed when the
 * earlier goes off with nothing due. So a deadline that is pushed back at each request is cheap.
 */
static void arm_timer(struct loop *l)
{
    uint64_t next = timers_next(&l->timers), now = uv_now(&l->uv);

    if (next == UINT64_MAX) {
        uv_unref((uv_handle_t *)&l->timer);
        return;
    }
    uv_ref((uv_handle_t *)&l->timer);
    if (next < l->armed) {
        l->armed = next;
        uv_timer_start(&l->timer, on_timer, next > now ? next - now : 0, 0);
    }
}

static void end_turn(struct loop *l)
{
    loop_enter(l);
    run_queued(l, &l->deferred);
    run_queued(l, &l->flushes);
    arm_timer(l);
    if (!list_empty(&l->deferred) || !list_empty(&l->flushes))
        uv_idle_start(&l->idle, on_idle);
    else
        uv_idle_stop(&l->idle);
}

static void on_prepare(uv_prepare_t *handle)
{
    end_turn(handle->data);
}

/* --- life --- */

/* Undo inherited settings that an event loop cannot work with. */
static void tidy_process(void)
{
    /* Without the signal, write returns an error when the peer is gone. */
    signal(SIGPIPE, SIG_IGN);
    /* If SIGCHLD were ignored, the kernel would reap our children and drop their exit codes. */
    signal(SIGCHLD, SIG_DFL);
    /* If 0 to 2 were closed, a socket could get one of these numbers, and output meant for people
     * would go into that socket. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            log_error("loop", "cannot open /dev/null");
}

void loop_raise_limit(void)
{
    const rlim_t enough = 65536;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= enough)
        return;
    limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_debug("loop", "the limit of open files stays as it is");
}

void loop_hide_memory(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

struct loop *loop_new(void)
{
    struct loop *l = MEM_NEW(struct loop);

    tidy_process();
    if (uv_loop_init(&l->uv) < 0) {
        log_error("loop", "the kernel gives no event loop (out of file descriptors?)");
        abort();
    }
    uv_prepare_init(&l->uv, &l->prepare);
    uv_idle_init(&l->uv, &l->idle);
    uv_timer_init(&l->uv, &l->timer);
    uv_timer_init(&l->uv, &l->cap);
    l->prepare.data = l->timer.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    /* None of these handles keeps the loop running. */
    uv_unref((uv_handle_t *)&l->prepare);
    uv_unref((uv_handle_t *)&l->timer);
    uv_unref((uv_handle_t *)&l->cap);
    l->armed = UINT64_MAX;
    holdings_init(&l->holdings, &l->timers);
    list_init(&l->deferred);
    list_init(&l->flushes);
    list_init(&l->signals);
    list_init(&l->kin);
    list_init(&l->ended);
    list_init(&l->listeners);
    list_init(&l->inherited_children);
    getrlimit(RLIMIT_CORE, &l->core);
    loop_enter(l);
    return l;
}

static void on_signal_closed(uv_handle_t *handle)
{
    mem_free(CONTAINER_OF(handle, struct loop_signal, handle));
}

struct handle_count {
    int open, closing;
};

static void count_handle(uv_handle_t *handle, void *arg)
{
    struct handle_count *count = arg;
    if (uv_is_closing(handle))
        count->closing++;
    else
        count->open++;
}

static struct handle_count count_handles(struct loop *l)
{
    struct handle_count count = {0};
    uv_walk(&l->uv, count_handle, &count);
    return count;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    /* Closed handles get their last callbacks, which may still defer work and close others. */
    do {
        end_turn(l);
        uv_run(&l->uv, UV_RUN_NOWAIT);
    } while (count_handles(l).closing || !list_empty(&l->deferred) || !list_empty(&l->flushes));

    LIST_EACH_SAFE (&l->signals, it) {
        struct loop_signal *s = LIST_ENTRY(it, struct loop_signal, node);
        list_remove(&s->node);
        uv_close((uv_handle_t *)&s->handle, on_signal_closed);
    }
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_close((uv_handle_t *)&l->cap, NULL);

    assert(count_handles(l).open == 0 && "loop_free: something on the loop is still open");
    uv_run(&l->uv, UV_RUN_DEFAULT);
    int busy = uv_loop_close(&l->uv);
    assert(busy == 0);
    (void)busy;
    guard_dismiss(l);
    timers_fini(&l->timers);
    tls_context_free(l->trust);
    buf_fini(&l->spare);
    mem_free(l);
}

/* --- running --- */

static bool has_work(const struct loop *l)
{
    return l->timers.n || !list_empty(&l->deferred) || !list_empty(&l->flushes) ||
           uv_loop_alive(&l->uv);
}

void loop_run(struct loop *l)
{
    l->running = true;
    uv_update_time(&l->uv);
    /* Work deferred outside of a turn (before the first one, or in the last close callback) has no
     * libuv handle that would keep uv_run going: hence this loop around uv_run. */
    do {
        end_turn(l);
        uv_run(&l->uv, UV_RUN_DEFAULT);
    } while (!l->stopping && has_work(l));
    end_turn(l);
    l->stopping = false;
    l->running = false;
}

void loop_stop(struct loop *l)
{
    l->stopping = true;
    uv_stop(&l->uv);
}

/* Ends the wait of loop_step, even before the wait has begun: libuv fires timers also before it
 * sleeps, and slow work of this turn may have used up the time by then. */
static void on_cap(uv_timer_t *handle)
{
    uv_stop(handle->loop);
}

void loop_step(struct loop *l, uint64_t wait_ms)
{
    l->running = true;
    uv_update_time(&l->uv);
    end_turn(l);
    if (wait_ms)
        uv_timer_start(&l->cap, on_cap, wait_ms, 0);
    uv_run(&l->uv, wait_ms ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    uv_timer_stop(&l->cap);
    end_turn(l);
    l->running = false;
}

struct timers *loop_timers(struct loop *l)
{
    if (!l->running) {
        uv_update_time(&l->uv);
        loop_enter(l);
    }
    return &l->timers;
}

/* uv_loop_fork replaces libuv's internal pipes. A signal that was caught, but still in the old
 * pipe, would be lost, and closing its handle would wait for it for ever. So it is raised again. */
int loop_forked(struct loop *l)
{
    int code = uv_loop_fork(&l->uv);

    LIST_EACH (&l->signals, it) {
        uv_signal_t *s = &LIST_ENTRY(it, struct loop_signal, node)->handle;
        if (s->caught_signals == s->dispatched_signals)
            continue;
        s->dispatched_signals = s->caught_signals;
        raise(s->signum);
    }
    return code;
}

bool loop_has_threads(const struct loop *l)
{
    return l->threads > 0;
}

struct holdings *loop_holdings(struct loop *l)
{
    return &l->holdings;
}

uint64_t loop_now(const struct loop *l)
{
    return uv_now(&l->uv);
}

/* --- signals --- */

static void on_signal(uv_signal_t *handle, int signo)
{
    struct loop_signal *s = CONTAINER_OF(handle, struct loop_signal, handle);
    loop_enter(s->loop);
    s->fn(s->arg, signo);
}

int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg)
{
    LIST_EACH (&l->signals, it) {
        struct loop_signal *s = LIST_ENTRY(it, struct loop_signal, node);
        if (s->handle.signum == signo) {
            s->fn = fn;
            s->arg = arg;
            return 0;
        }
    }
    struct loop_signal *s = MEM_NEW(struct loop_signal);
    s->loop = l;
    s->fn = fn;
    s->arg = arg;
    uv_signal_init(&l->uv, &s->handle);
    uv_unref((uv_handle_t *)&s->handle);
    int code = uv_signal_start(&s->handle, on_signal, signo);
    if (code < 0) {
        uv_close((uv_handle_t *)&s->handle, on_signal_closed);
        return code;
    }
    list_append(&l->signals, &s->node);
    return 0;
}
