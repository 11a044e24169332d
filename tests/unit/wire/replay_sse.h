/* What comes out of the SSE decoder, as text: see replay.h. */
#ifndef RIALTO_TESTS_REPLAY_SSE_H
#define RIALTO_TESTS_REPLAY_SSE_H

#include "replay.h"
#include "wire/sse.h"

static inline void replay_event(void *log, const struct sse_event *event)
{
    replay_put(log, "event", event->name);
    if (event->has_data)
        replay_put(log, "data", event->data);
    if (event->id.n)
        replay_put(log, "id", event->id);
    if (event->retry >= 0)
        buf_printf(log, "retry %lld\n", (long long)event->retry);
}

static inline void replay_sse(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    struct sse_decoder d;
    int rc = 0;

    sse_decoder_init(&d, cap);
    while (in.n && !rc) {
        char *memory;
        struct span piece = cuts_next(&cuts, &in, &memory);
        rc = sse_feed(&d, piece, replay_event, log);
        mem_free(memory);
    }
    if (rc)
        buf_printf(log, "%s\n", err_name(rc));
    sse_decoder_fini(&d);
}

#endif
