/* What comes out of the NATS reader, as text: see replay.h. `cap` is the largest payload. */
#ifndef RIALTO_TESTS_REPLAY_NATS_H
#define RIALTO_TESTS_REPLAY_NATS_H

#include "replay.h"
#include "wire/nats.h"

static inline void replay_nats_info(struct buf *log, struct span json)
{
    struct nats_info info;

    if (nats_read_info(&info, json) < 0) {
        buf_str(log, " unreadable");
        return;
    }
    buf_printf(log, " max=%zu%s%s%s%s", info.max_payload, info.tls_required ? " tls" : "",
               info.tls_available ? " may-tls" : "", info.headers ? " headers" : "",
               info.leaving ? " leaving" : "");
    if (info.nonce.n)
        buf_printf(log, " nonce=" SPAN_FMT, SPAN_ARG(info.nonce));
    if (info.urls.n)
        buf_printf(log, " urls=" SPAN_FMT, SPAN_ARG(info.urls));
}

static inline void replay_nats_message(struct buf *log, const struct nats_op *op)
{
    struct nats_headers h = nats_headers_of(op->headers);

    buf_printf(log, " sid=%llu " SPAN_FMT " reply=" SPAN_FMT, (unsigned long long)op->sid,
               SPAN_ARG(op->subject), SPAN_ARG(op->reply));
    if (nats_headers_status(op->headers))
        buf_printf(log, " status=%u", nats_headers_status(op->headers));
    while (nats_headers_next(&h))
        buf_printf(log, " [" SPAN_FMT "=" SPAN_FMT "]", SPAN_ARG(h.key), SPAN_ARG(h.value));
    buf_char(log, ' ');
    buf_span(log, op->payload);
}

static inline void replay_nats_op(void *owner, const struct nats_op *op)
{
    static const char *const names[] = {
        [NATS_INFO] = "INFO", [NATS_MSG] = "MSG", [NATS_PING] = "PING",
        [NATS_PONG] = "PONG", [NATS_OK] = "OK",   [NATS_ERR] = "ERR"};
    struct buf *log = owner;

    buf_str(log, names[op->kind]);
    if (op->kind == NATS_INFO)
        replay_nats_info(log, op->text);
    else if (op->kind == NATS_MSG)
        replay_nats_message(log, op);
    else if (op->text.n)
        buf_printf(log, " " SPAN_FMT, SPAN_ARG(op->text));
    buf_char(log, '\n');
}

static inline void replay_nats(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    struct nats_reader r;
    int code = 0;

    nats_reader_init(&r);
    r.max_payload = cap;
    while (in.n && !code) {
        char *memory;
        struct span piece = cuts_next(&cuts, &in, &memory);
        code = nats_reader_feed(&r, piece, replay_nats_op, log);
        mem_free(memory);
    }
    if (code)
        buf_printf(log, "%s\n", err_name(code));
    nats_reader_fini(&r);
}

#endif
