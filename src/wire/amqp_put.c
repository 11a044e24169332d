/* The writing half of AMQP: a function for each method that a client sends, and one for a message
 * with its properties. Called by bus/amqp.c, bus/amqp_channel.c and bus/amqp_words.c. */
#include "wire/amqp_put.h"

#include "base/mem.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <stdlib.h>

enum {
    HEAD = 7,
    PROPERTIES_HEAD = 12,
    METHOD_ROOM = 4 * 1024, /* more than any method of ours with words of 255 bytes */
};

static amqp_bytes_t bytes_of(struct span s)
{
    return (amqp_bytes_t){.len = s.n, .bytes = (void *)(uintptr_t)s.p};
}

static amqp_bytes_t bytes_at(void *p, size_t n)
{
    return (amqp_bytes_t){.len = n, .bytes = p};
}

static void set16(char *p, uint16_t v)
{
    p[0] = (char)(v >> 8);
    p[1] = (char)v;
}

static void set32(char *p, uint32_t v)
{
    set16(p, (uint16_t)(v >> 16));
    set16(p + 2, (uint16_t)v);
}

/* The frame whose payload of `n` bytes was written HEAD bytes behind the end of `out`. */
static void seal_frame(struct buf *out, enum amqp_kind kind, uint16_t channel, size_t n)
{
    char *frame = out->p + out->n;
    frame[0] = (char)kind;
    set16(frame + 1, channel);
    set32(frame + 3, (uint32_t)n);
    frame[HEAD + n] = (char)AMQP_FRAME_END;
    out->n += HEAD + n + 1;
}

static int put_method(struct buf *out, uint16_t channel, amqp_method_number_t number, void *decoded)
{
    char *payload = buf_room(out, HEAD + METHOD_ROOM + 1) + HEAD;
    set32(payload, number);
    int n = amqp_encode_method(number, decoded, bytes_at(payload + 4, METHOD_ROOM - 4));
    if (n < 0)
        return ERR_SIZE;
    seal_frame(out, AMQP_METHOD, channel, 4 + (size_t)n);
    return 0;
}

/* Only a word that nobody checked makes this fail. */
static void put(struct buf *out, uint16_t channel, amqp_method_number_t number, void *decoded)
{
    if (put_method(out, channel, number, decoded))
        abort();
}

void amqp_put_protocol(struct buf *out)
{
    buf_bytes(out, "AMQP\0\0\x09\x01", 8);
}

void amqp_put_beat(struct buf *out)
{
    (void)buf_room(out, HEAD + 1);
    seal_frame(out, AMQP_BEAT, 0, 0);
}

static amqp_table_entry_t text_entry(const char *key, struct span text)
{
    amqp_table_entry_t e = {.key = amqp_cstring_bytes(key)};
    e.value.kind = AMQP_FIELD_KIND_UTF8;
    e.value.value.bytes = bytes_of(text);
    return e;
}

static amqp_table_entry_t yes_entry(const char *key)
{
    amqp_table_entry_t e = {.key = amqp_cstring_bytes(key)};
    e.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    e.value.value.boolean = 1;
    return e;
}

void amqp_put_start_ok(struct buf *out, struct span user, struct span password)
{
    struct buf plain = {0};
    buf_char(&plain, '\0');
    buf_span(&plain, user);
    buf_char(&plain, '\0');
    buf_span(&plain, password);

    amqp_table_entry_t able[] = {
        yes_entry("publisher_confirms"),           yes_entry("consumer_cancel_notify"),
        yes_entry("connection.blocked"),           yes_entry("basic.nack"),
        yes_entry("authentication_failure_close"),
    };
    amqp_table_entry_t about[] = {
        text_entry("product", SPAN("Rialto")),
        text_entry("version", span_str(RIALTO_VERSION)),
        {.key = amqp_cstring_bytes("capabilities")},
    };
    about[2].value.kind = AMQP_FIELD_KIND_TABLE;
    about[2].value.value.table = (amqp_table_t){COUNT_OF(able), able};
    amqp_connection_start_ok_t d = {
        .client_properties = {COUNT_OF(about), about},
        .mechanism = amqp_cstring_bytes("PLAIN"),
        .response = bytes_of(buf_view(&plain)),
        .locale = amqp_cstring_bytes("en_US"),
    };
    put(out, 0, AMQP_CONNECTION_START_OK_METHOD, &d);
    explicit_bzero(plain.p, plain.n);
    buf_fini(&plain);
}

void amqp_put_tune_ok(struct buf *out, uint16_t channel_max, uint32_t frame_max, uint16_t heartbeat)
{
    amqp_connection_tune_ok_t d = {channel_max, frame_max, heartbeat};
    put(out, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &d);
}

void amqp_put_open(struct buf *out, struct span vhost)
{
    amqp_connection_open_t d = {.virtual_host = bytes_of(vhost)};
    put(out, 0, AMQP_CONNECTION_OPEN_METHOD, &d);
}

void amqp_put_close(struct buf *out, struct span why)
{
    amqp_connection_close_t d = {.reply_code = AMQP_REPLY_SUCCESS,
                                 .reply_text = bytes_of(span_cut(why, 0, AMQP_WORD))};
    put(out, 0, AMQP_CONNECTION_CLOSE_METHOD, &d);
}

void amqp_put_close_ok(struct buf *out)
{
    amqp_connection_close_ok_t d = {0};
    put(out, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &d);
}

void amqp_put_channel_open(struct buf *out, uint16_t channel)
{
    amqp_channel_open_t d = {.out_of_band = amqp_empty_bytes};
    put(out, channel, AMQP_CHANNEL_OPEN_METHOD, &d);
}

void amqp_put_channel_close(struct buf *out, uint16_t channel)
{
    amqp_channel_close_t d = {.reply_code = AMQP_REPLY_SUCCESS};
    put(out, channel, AMQP_CHANNEL_CLOSE_METHOD, &d);
}

void amqp_put_channel_close_ok(struct buf *out, uint16_t channel)
{
    amqp_channel_close_ok_t d = {0};
    put(out, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &d);
}

void amqp_put_flow_ok(struct buf *out, uint16_t channel, bool active)
{
    amqp_channel_flow_ok_t d = {.active = active};
    put(out, channel, AMQP_CHANNEL_FLOW_OK_METHOD, &d);
}

void amqp_put_confirm_select(struct buf *out, uint16_t channel)
{
    amqp_confirm_select_t d = {0};
    put(out, channel, AMQP_CONFIRM_SELECT_METHOD, &d);
}

void amqp_put_exchange_declare(struct buf *out, uint16_t channel, struct span name)
{
    amqp_exchange_declare_t d = {
        .exchange = bytes_of(name), .type = amqp_cstring_bytes("topic"), .durable = 1};
    put(out, channel, AMQP_EXCHANGE_DECLARE_METHOD, &d);
}

void amqp_put_queue_declare(struct buf *out, uint16_t channel, struct span name, bool passive,
                            const struct amqp_argument *arguments, size_t n)
{
    enum { MOST = 8 };
    amqp_table_entry_t entries[MOST];
    if (n > MOST)
        abort();
    for (size_t i = 0; i < n; i++) {
        entries[i] = text_entry(arguments[i].key, arguments[i].text);
        if (!arguments[i].text.p) {
            entries[i].value.kind = AMQP_FIELD_KIND_I64;
            entries[i].value.value.i64 = arguments[i].number;
        }
    }
    amqp_queue_declare_t d = {.queue = bytes_of(name),
                              .passive = passive,
                              .durable = 1,
                              .arguments = {passive ? 0 : (int)n, entries}};
    put(out, channel, AMQP_QUEUE_DECLARE_METHOD, &d);
}

void amqp_put_queue_bind(struct buf *out, uint16_t channel, struct span queue, struct span exchange,
                         struct span key)
{
    amqp_queue_bind_t d = {
        .queue = bytes_of(queue), .exchange = bytes_of(exchange), .routing_key = bytes_of(key)};
    put(out, channel, AMQP_QUEUE_BIND_METHOD, &d);
}

void amqp_put_queue_delete(struct buf *out, uint16_t channel, struct span queue, bool if_unused,
                           bool if_empty)
{
    amqp_queue_delete_t d = {
        .queue = bytes_of(queue), .if_unused = if_unused, .if_empty = if_empty};
    put(out, channel, AMQP_QUEUE_DELETE_METHOD, &d);
}

void amqp_put_qos(struct buf *out, uint16_t channel, uint16_t prefetch)
{
    amqp_basic_qos_t d = {.prefetch_count = prefetch};
    put(out, channel, AMQP_BASIC_QOS_METHOD, &d);
}

void amqp_put_consume(struct buf *out, uint16_t channel, struct span queue, struct span consumer)
{
    amqp_basic_consume_t d = {.queue = bytes_of(queue), .consumer_tag = bytes_of(consumer)};
    put(out, channel, AMQP_BASIC_CONSUME_METHOD, &d);
}

void amqp_put_cancel(struct buf *out, uint16_t channel, struct span consumer)
{
    amqp_basic_cancel_t d = {.consumer_tag = bytes_of(consumer)};
    put(out, channel, AMQP_BASIC_CANCEL_METHOD, &d);
}

void amqp_put_ack(struct buf *out, uint16_t channel, uint64_t tag)
{
    amqp_basic_ack_t d = {.delivery_tag = tag};
    put(out, channel, AMQP_BASIC_ACK_METHOD, &d);
}

void amqp_put_nack(struct buf *out, uint16_t channel, uint64_t tag, bool requeue)
{
    amqp_basic_nack_t d = {.delivery_tag = tag, .requeue = requeue};
    put(out, channel, AMQP_BASIC_NACK_METHOD, &d);
}

/* --- publishing --- */

static int put_properties(struct buf *out, uint16_t channel, size_t frame_max,
                          const struct amqp_message *m)
{
    amqp_table_entry_t entries[AMQP_HEADERS];
    if (m->n_headers > AMQP_HEADERS)
        return ERR_SIZE;
    for (size_t i = 0; i < m->n_headers; i++) {
        if (m->headers[i].key.n > AMQP_WORD)
            return ERR_SIZE;
        entries[i] = text_entry("", m->headers[i].value);
        entries[i].key = bytes_of(m->headers[i].key);
    }
    amqp_basic_properties_t d = {
        ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                  AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_REPLY_TO_FLAG |
                  AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_HEADERS_FLAG,
        .content_type = bytes_of(m->content_type),
        .headers = {(int)m->n_headers, entries},
        .delivery_mode = AMQP_DELIVERY_PERSISTENT,
        .correlation_id = bytes_of(m->correlation_id),
        .reply_to = bytes_of(m->reply_to),
        .message_id = bytes_of(m->message_id),
        .timestamp = m->timestamp,
        .type = bytes_of(m->type),
    };
    size_t room = 8 * (AMQP_WORD + 1);
    for (size_t i = 0; i < m->n_headers; i++)
        room += m->headers[i].key.n + m->headers[i].value.n + 8;
    if (room > frame_max - HEAD - 1 - PROPERTIES_HEAD)
        room = frame_max - HEAD - 1 - PROPERTIES_HEAD;

    char *payload = buf_room(out, HEAD + PROPERTIES_HEAD + room + 1) + HEAD;
    set16(payload, AMQP_BASIC_CLASS);
    set16(payload + 2, 0);
    set32(payload + 4, (uint32_t)((uint64_t)m->body.n >> 32));
    set32(payload + 8, (uint32_t)m->body.n);
    int n = amqp_encode_properties(AMQP_BASIC_CLASS, &d, bytes_at(payload + PROPERTIES_HEAD, room));
    if (n < 0)
        return ERR_SIZE;
    seal_frame(out, AMQP_HEADER, channel, PROPERTIES_HEAD + (size_t)n);
    return 0;
}

int amqp_put_publish(struct buf *out, uint16_t channel, size_t frame_max,
                     const struct amqp_message *m)
{
    const struct span words[] = {m->exchange, m->routing_key, m->content_type, m->correlation_id,
                                 m->reply_to, m->message_id,  m->type};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (words[i].n > AMQP_WORD)
            return ERR_SIZE;

    size_t start = out->n, most = frame_max - HEAD - 1;
    amqp_basic_publish_t d = {.exchange = bytes_of(m->exchange),
                              .routing_key = bytes_of(m->routing_key)};
    put(out, channel, AMQP_BASIC_PUBLISH_METHOD, &d);
    int code = put_properties(out, channel, frame_max, m);
    if (code) {
        out->n = start;
        return code;
    }
    for (size_t at = 0; at < m->body.n; at += most) {
        struct span piece = span_cut(m->body, at, most);
        memcpy(buf_room(out, HEAD + piece.n + 1) + HEAD, piece.p, piece.n);
        seal_frame(out, AMQP_BODY, channel, piece.n);
    }
    return 0;
}
