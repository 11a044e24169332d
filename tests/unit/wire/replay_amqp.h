/* What comes out of the AMQP reader, as text: see replay.h. `cap` is the size of a frame. */
#ifndef RIALTO_TESTS_REPLAY_AMQP_H
#define RIALTO_TESTS_REPLAY_AMQP_H

#include "replay.h"
#include "wire/amqp.h"

struct replay_amqp {
    struct buf *log;
    struct amqp_reader reader;
};

static inline void replay_amqp_word(struct buf *log, const char *name, struct span text)
{
    if (text.n)
        buf_printf(log, " %s=" SPAN_FMT, name, SPAN_ARG(text));
}

static inline void replay_amqp_method(struct replay_amqp *r, struct span payload)
{
    struct amqp_method m;
    int code = amqp_read_method(payload, &m);
    if (code) {
        buf_printf(r->log, " %s", err_name(code));
        return;
    }
    buf_printf(r->log, " id=%d tag=%llu code=%u", (int)m.id, (unsigned long long)m.tag, m.code);
    replay_amqp_word(r->log, "key", m.routing_key);
    replay_amqp_word(r->log, "text", m.text);
}

static inline void replay_amqp_properties(struct replay_amqp *r, struct span payload)
{
    struct amqp_properties p;
    uint64_t size = 0;
    int code = amqp_read_body_size(payload, &size);
    if (!code)
        code = amqp_read_properties(payload, &p);
    if (code) {
        buf_printf(r->log, " %s", err_name(code));
        return;
    }
    buf_printf(r->log, " size=%llu time=%llu", (unsigned long long)size,
               (unsigned long long)p.timestamp);
    replay_amqp_word(r->log, "content-type", p.content_type);
    replay_amqp_word(r->log, "correlation-id", p.correlation_id);
    replay_amqp_word(r->log, "reply-to", p.reply_to);
    replay_amqp_word(r->log, "message-id", p.message_id);
    replay_amqp_word(r->log, "type", p.type);
    for (size_t i = 0; i < p.n_headers; i++)
        buf_printf(r->log, " " SPAN_FMT ":" SPAN_FMT, SPAN_ARG(p.headers[i].key),
                   SPAN_ARG(p.headers[i].value));
}

static inline void replay_amqp_frame(void *owner, const struct amqp_frame *f)
{
    struct replay_amqp *r = owner;
    buf_printf(r->log, "%d on %u:", (int)f->kind, f->channel);
    switch (f->kind) {
    case AMQP_METHOD:
        replay_amqp_method(r, f->payload);
        break;
    case AMQP_HEADER:
        replay_amqp_properties(r, f->payload);
        break;
    case AMQP_BODY:
        buf_char(r->log, ' ');
        buf_span(r->log, f->payload);
        break;
    case AMQP_BEAT:
        break;
    }
    buf_char(r->log, '\n');
}

static inline void replay_amqp(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    struct replay_amqp r = {.log = log};
    int code = 0;

    amqp_reader_init(&r.reader);
    r.reader.frame_max = cap;
    while (in.n && !code) {
        char *memory;
        struct span piece = cuts_next(&cuts, &in, &memory);
        code = amqp_reader_feed(&r.reader, piece, replay_amqp_frame, &r);
        mem_free(memory);
    }
    if (code)
        buf_printf(log, "%s\n", err_name(code));
    amqp_reader_fini(&r.reader);
}

#endif
