/* A successor that only says whether it would start: its process, its output, its time limit.
 * Called by upgrade.c. */
#include "hub/rehearsal.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/child.h"
#include "io/successor.h"

enum { REASON_MAX = 2000 };

struct rehearsal {
    struct loop *loop;
    struct child *child;
    struct buf said, reason; /* on its standard output; on its standard error */
    struct timer patience;
    uint64_t ms;
    bool late;
    void (*done)(void *arg, const char *why); /* NULL: nobody wants to know any more */
    void *arg;
};

static void on_data(void *owner, struct span chunk)
{
    struct rehearsal *r = owner;

    if (r->said.n < REASON_MAX)
        buf_span(&r->said, chunk);
}

static void on_closed(void *owner, const char *reason)
{
    (void)owner, (void)reason;
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_closed};

static void on_line(void *owner, struct span line)
{
    struct rehearsal *r = owner;

    if (r->reason.n + line.n > REASON_MAX)
        return;
    if (r->reason.n)
        buf_str(&r->reason, "; ");
    log_redact(&r->reason, line);
}

/* Append why the program cannot take over; nothing if it can. */
static void put_obstacle(struct buf *out, const struct rehearsal *r, int status, const char *how)
{
    if (status == 0 && !r->late && span_is(buf_view(&r->said), SUCCESSOR_READY))
        return;
    if (r->late)
        buf_printf(out, "it was not ready within %d s", (int)(r->ms / 1000));
    else if (status == 0)
        buf_str(out, "it is not a Rialto that can take over");
    else
        buf_printf(out, "it cannot start with this configuration: it %s", how);
    if (r->reason.n)
        buf_printf(out, ": " SPAN_FMT, SPAN_ARG(buf_view(&r->reason)));
}

static void on_end(void *owner, int status, const char *how)
{
    struct rehearsal *r = owner;
    BUF_SCOPED why = {0};

    timer_clear(loop_timers(r->loop), &r->patience);
    put_obstacle(&why, r, status, how);
    if (r->done)
        r->done(r->arg, why.n ? buf_cstr(&why) : NULL);
    buf_fini(&r->said);
    buf_fini(&r->reason);
    mem_free(r);
}

static const struct child_events child_events = {.exited = on_end, .stderr_line = on_line};

static void on_late(struct timer *t)
{
    struct rehearsal *r = CONTAINER_OF(t, struct rehearsal, patience);

    r->late = true;
    child_stop(r->child, 1);
}

struct rehearsal *rehearsal_start(struct loop *loop, const char *const *words, uint64_t ms,
                                  void (*done)(void *arg, const char *why), void *arg,
                                  struct err *err)
{
    static const char *const env[] = {SUCCESSOR_REHEARSE, NULL};
    const struct child_spec spec = {
        .name = "upgrade", .argv = words, .env = env, .inherit_env = true};
    struct rehearsal *r = MEM_NEW(struct rehearsal);

    *r = (struct rehearsal){
        .loop = loop, .ms = ms, .patience = {.fire = on_late}, .done = done, .arg = arg};
    r->child = child_spawn(loop, &spec, &child_events, r, err);
    if (!r->child) {
        mem_free(r);
        return NULL;
    }
    stream_start(child_stream(r->child), &stream_events, r);
    timer_set(loop_timers(loop), &r->patience, ms);
    return r;
}

void rehearsal_free(struct rehearsal *r)
{
    if (!r)
        return;
    r->done = NULL;
    child_stop(r->child, 1);
}
