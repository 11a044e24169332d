/* Bytes carried between two streams; the slower one holds up the other. Called by http_conn.c for
 * connections with TLS that another process serves. */
#include "io/pump.h"

#include "base/mem.h"

enum { LAST_MS = 2000 };

struct pump_end {
    struct pump_end *other;
    struct stream *stream; /* NULL once closed */
    bool ended;            /* its peer has sent EOF */
};

struct pump {
    struct pump_end ends[2];
    void (*gone)(void *arg);
    void *arg;
};

static void on_data(void *owner, struct span chunk)
{
    struct pump_end *e = owner;

    if (!e->other->stream)
        return;
    stream_write(e->other->stream, chunk);
    if (stream_is_high(e->other->stream))
        stream_pause(e->stream);
}

static void on_drained(void *owner)
{
    struct pump_end *e = owner;

    if (e->other->stream)
        stream_resume(e->other->stream);
}

static void on_eof(void *owner)
{
    struct pump_end *e = owner;

    e->ended = true;
    if (e->other->stream)
        stream_shutdown(e->other->stream);
    if (e->other->ended || !e->other->stream)
        stream_finish(e->stream, "both ends have closed", LAST_MS); /* on_closed ends the other */
}

static void on_closed(void *owner, const char *reason)
{
    struct pump_end *e = owner;
    struct pump *p = (struct pump *)(e < e->other ? e : e->other);

    e->stream = NULL;
    if (e->other->stream) {
        stream_finish(e->other->stream, reason, LAST_MS);
        return;
    }
    p->gone(p->arg);
    mem_free(p);
}

static const struct stream_events events = {
    .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

void pump_start(struct stream *a, struct stream *b, void (*gone)(void *arg), void *arg)
{
    struct pump *p = MEM_NEW(struct pump);

    p->ends[0] = (struct pump_end){&p->ends[1], a};
    p->ends[1] = (struct pump_end){&p->ends[0], b};
    p->gone = gone;
    p->arg = arg;
    stream_rebind(a, &events, &p->ends[0]);
    stream_start(b, &events, &p->ends[1]);
}
