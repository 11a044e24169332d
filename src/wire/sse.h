/*
 * sse: Server-Sent Events decoded from a byte stream.
 *
 * The decoder is fed chunks and gives events; it accepts LF, CR and CRLF, a BOM at the start,
 * comments and unknown fields, and bounds the size of an event.
 */
#ifndef RIALTO_WIRE_SSE_H
#define RIALTO_WIRE_SSE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

/* For those who write streams: the head of an event with a message, a comment that says we are
 * here, and headers that keep proxies from holding events back. */
#define SSE_MESSAGE    "event: message\ndata: "
#define SSE_KEEP_ALIVE ": keep-alive\n\n"
#define SSE_HEADERS    "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"

struct sse_event {
    struct span name; /* "message" when the stream gave none */
    struct span data; /* lines joined by LF */
    struct span id;   /* the last id seen, of this or an earlier event; empty when none */
    bool has_data;    /* false for events that carry only id or retry (dispatched too) */
    bool cut;         /* longer than the cap: `data` is only a part of its beginning */
    int64_t retry;    /* ms, or -1 when the event gave none */
};

struct sse_decoder {
    struct buf line, name, data, id;
    size_t cap; /* bytes of one event */
    int64_t retry;
    bool after_cr, started, has_data, has_any, stopped;
    bool skips; /* set by the owner: an event that passes the cap is given cut, and the rest of the
                 * event is skipped */
    bool skipping;
    size_t skipped; /* bytes of the line that is being skipped */
};

typedef void sse_event_fn(void *owner, const struct sse_event *event);

void sse_decoder_init(struct sse_decoder *d, size_t cap);
void sse_decoder_fini(struct sse_decoder *d);
/*
 * 0, or without `skips` ERR_SIZE when an event passes the cap (the decoder cannot be used any more
 * then). The callback may call sse_decoder_stop but not fini.
 */
MUST_CHECK int sse_feed(struct sse_decoder *d, struct span chunk, sse_event_fn *on_event,
                        void *owner);
void sse_decoder_stop(struct sse_decoder *d);

#endif
