/* Stops reading the neighbours that write to a full hop, and cuts a hop that reads nothing. Called
 * by hop.c for each write, by conductor.c and component.c when a stream has drained or closed. */
#include "acp/flow.h"

#include "acp/inside.h"
#include "config/units.h"

static struct flow_writer *writer_of(struct flow *f, struct hop *from)
{
    size_t i = 0;

    while (i < f->n_writers && f->writers[i].from != from)
        i++;
    if (i == FLOW_WRITERS)
        return NULL;
    if (i == f->n_writers)
        f->writers[f->n_writers++] = (struct flow_writer){.from = from};
    return &f->writers[i];
}

/* The hops of the chain, then the client's hop. */
static struct hop *hop_at(struct conductor *c, size_t i)
{
    return i < c->n ? c->components[i] : &c->up;
}

/* A full hop because of which `h` is not read; NULL when there is none. */
static struct hop *holder_of(const struct hop *h)
{
    struct conductor *c = h->c;

    for (size_t i = 0; h->flow.held_by && i <= c->n; i++) {
        struct hop *to = hop_at(c, i);
        for (size_t k = 0; k < to->flow.n_writers; k++)
            if (to->flow.writers[k].from == h && to->flow.writers[k].held)
                return to;
    }
    return NULL;
}

/* Is the hop itself not read because of another full hop? Then the other hop is to blame, unless
 * the two wait for each other. */
static bool is_excused(const struct hop *h)
{
    const struct hop *holder = holder_of(h), *last = NULL;

    for (size_t i = 0; holder && i <= h->c->n; i++) {
        last = holder;
        holder = holder_of(last);
    }
    return last && !holder;
}

static void watch(struct hop *h)
{
    h->flow.seen = stream_taken(h->stream);
    timer_set(loop_timers(h->c->loop), &h->flow.stall, h->c->options.stall_timeout);
}

static void on_stall(struct timer *t)
{
    struct hop *h = CONTAINER_OF(t, struct hop, flow.stall);
    BUF_SCOPED reason = {0};

    if (is_excused(h) || stream_taken(h->stream) != h->flow.seen) {
        watch(h);
        return;
    }
    buf_str(&reason, "it has read nothing for ");
    units_put_duration(&reason, h->c->options.stall_timeout);
    stream_close(h->stream, buf_cstr(&reason));
}

void flow_wrote(struct hop *to, struct hop *reading, size_t n)
{
    struct flow_writer *w = reading ? writer_of(&to->flow, reading) : NULL;

    if (!w || w->held)
        return;
    w->bytes += n;
    if (w->bytes <= FLOW_ALLOWANCE)
        return;
    w->held = true;
    if (reading->flow.held_by++ == 0 && reading->stream)
        stream_pause(reading->stream);
    if (to->c->options.stall_timeout && !timer_is_set(&to->flow.stall)) {
        to->flow.stall.fire = on_stall;
        watch(to);
    }
}

void flow_release(struct hop *to)
{
    struct flow *f = &to->flow;

    timer_clear(loop_timers(to->c->loop), &f->stall);
    while (f->n_writers) {
        struct flow_writer *w = &f->writers[--f->n_writers];
        if (w->held && --w->from->flow.held_by == 0 && w->from->stream)
            stream_resume(w->from->stream);
    }
}

void flow_forget(const struct hop *from)
{
    struct conductor *c = from->c;

    for (size_t i = 0; i <= c->n; i++) {
        struct flow *f = &hop_at(c, i)->flow;
        for (size_t k = 0; k < f->n_writers; k++)
            if (f->writers[k].from == from)
                f->writers[k--] = f->writers[--f->n_writers];
    }
}
