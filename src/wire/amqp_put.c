/* The writing half of AMQP: a function for each method that a client sends, and one for a message
 * with its properties. Called by bus/amqp.c, bus/amqp_channel.c and bus/amqp_words.c. */
#include "wire/amqp_put.h"

#include "base/mem.h"

#include <stdlib.h>

enum {
    HEAD = 7, /* of a frame: type, channel, size */
    FRAME_END = 0xce,
    SUCCESS = 200, /* the code of an orderly close */
    PERSISTENT = 2,
    PROPERTIES = 0xb6e0, /* the flags of the properties that put_properties writes */
};

/* The classes of methods. */
enum { CONNECTION = 10, CHANNEL = 20, EXCHANGE = 40, QUEUE = 50, BASIC = 60, CONFIRM = 85 };

/* --- fields --- */

static void put_number(struct buf *out, uint64_t v, size_t bytes)
{
    char *to = buf_room(out, bytes);

    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)(v >> (8 * (bytes - 1 - i)));
    out->n += bytes;
}

/* A short text. The caller must have checked its length. */
static void put_word(struct buf *out, struct span word)
{
    if (word.n > AMQP_WORD)
        abort();
    put_number(out, word.n, 1);
    buf_span(out, word);
}

static void put_text(struct buf *out, struct span text)
{
    put_number(out, text.n, 4);
    buf_span(out, text);
}

/* Leaves four bytes for the length of what is written next; end_counted fills them in. */
static size_t begin_counted(struct buf *out)
{
    put_number(out, 0, 4);
    return out->n - 4;
}

static void end_counted(struct buf *out, size_t at)
{
    size_t n = out->n - at - 4;

    for (size_t i = 0; i < 4; i++)
        out->p[at + i] = (char)(n >> (24 - 8 * i));
}

static void put_no_table(struct buf *out)
{
    put_number(out, 0, 4);
}

static void put_text_entry(struct buf *out, struct span key, struct span text)
{
    put_word(out, key);
    buf_char(out, 'S');
    put_text(out, text);
}

static void put_number_entry(struct buf *out, const char *key, int64_t number)
{
    put_word(out, span_str(key));
    buf_char(out, 'l');
    put_number(out, (uint64_t)number, 8);
}

static void put_yes_entry(struct buf *out, const char *key)
{
    put_word(out, span_str(key));
    buf_char(out, 't');
    put_number(out, 1, 1);
}

/* --- frames --- */

/* Returns where the size of the frame is to be written, for end_frame. */
static size_t begin_frame(struct buf *out, enum amqp_kind kind, uint16_t channel)
{
    put_number(out, kind, 1);
    put_number(out, channel, 2);
    return begin_counted(out);
}

static void end_frame(struct buf *out, size_t at)
{
    end_counted(out, at);
    buf_char(out, (char)FRAME_END);
}

static size_t begin_method(struct buf *out, uint16_t channel, uint16_t class, uint16_t method)
{
    size_t at = begin_frame(out, AMQP_METHOD, channel);

    put_number(out, class, 2);
    put_number(out, method, 2);
    return at;
}

void amqp_put_protocol(struct buf *out)
{
    buf_bytes(out, "AMQP\0\0\x09\x01", 8);
}

void amqp_put_beat(struct buf *out)
{
    end_frame(out, begin_frame(out, AMQP_BEAT, 0));
}

/* --- connection --- */

static void put_about_us(struct buf *out)
{
    static const char *const able[] = {"publisher_confirms", "consumer_cancel_notify",
                                       "connection.blocked", "basic.nack",
                                       "authentication_failure_close"};
    size_t about = begin_counted(out);

    put_text_entry(out, SPAN("product"), SPAN("Rialto"));
    put_text_entry(out, SPAN("version"), span_str(RIALTO_VERSION));
    put_word(out, SPAN("capabilities"));
    buf_char(out, 'F');
    size_t capabilities = begin_counted(out);
    for (size_t i = 0; i < COUNT_OF(able); i++)
        put_yes_entry(out, able[i]);
    end_counted(out, capabilities);
    end_counted(out, about);
}

void amqp_put_start_ok(struct buf *out, struct span user, struct span password)
{
    size_t at = begin_method(out, 0, CONNECTION, 11);

    put_about_us(out);
    put_word(out, SPAN("PLAIN"));
    size_t plain = begin_counted(out);
    buf_char(out, '\0');
    buf_span(out, user);
    buf_char(out, '\0');
    buf_span(out, password);
    end_counted(out, plain);
    put_word(out, SPAN("en_US"));
    end_frame(out, at);
}

void amqp_put_tune_ok(struct buf *out, uint16_t channel_max, uint32_t frame_max, uint16_t heartbeat)
{
    size_t at = begin_method(out, 0, CONNECTION, 31);

    put_number(out, channel_max, 2);
    put_number(out, frame_max, 4);
    put_number(out, heartbeat, 2);
    end_frame(out, at);
}

void amqp_put_open(struct buf *out, struct span vhost)
{
    size_t at = begin_method(out, 0, CONNECTION, 40);

    put_word(out, vhost);
    put_number(out, 0, 2); /* reserved: a word and a bit */
    end_frame(out, at);
}

/* Closes a connection or a channel; 0 as class and method: no method caused it. */
static void put_goodbye(struct buf *out, uint16_t channel, uint16_t class, uint16_t method,
                        struct span why)
{
    size_t at = begin_method(out, channel, class, method);

    put_number(out, SUCCESS, 2);
    put_word(out, span_cut(why, 0, AMQP_WORD));
    put_number(out, 0, 4);
    end_frame(out, at);
}

void amqp_put_close(struct buf *out, struct span why)
{
    put_goodbye(out, 0, CONNECTION, 50, why);
}

void amqp_put_close_ok(struct buf *out)
{
    end_frame(out, begin_method(out, 0, CONNECTION, 51));
}

/* --- channels --- */

void amqp_put_channel_open(struct buf *out, uint16_t channel)
{
    size_t at = begin_method(out, channel, CHANNEL, 10);

    put_word(out, SPAN_EMPTY); /* reserved */
    end_frame(out, at);
}

void amqp_put_channel_close(struct buf *out, uint16_t channel)
{
    put_goodbye(out, channel, CHANNEL, 40, SPAN_EMPTY);
}

void amqp_put_channel_close_ok(struct buf *out, uint16_t channel)
{
    end_frame(out, begin_method(out, channel, CHANNEL, 41));
}

void amqp_put_flow_ok(struct buf *out, uint16_t channel, bool active)
{
    size_t at = begin_method(out, channel, CHANNEL, 21);

    put_number(out, active, 1);
    end_frame(out, at);
}

void amqp_put_confirm_select(struct buf *out, uint16_t channel)
{
    size_t at = begin_method(out, channel, CONFIRM, 10);

    put_number(out, 0, 1); /* no-wait is off: the server answers */
    end_frame(out, at);
}

/* --- exchanges and queues. Their first field, a number, is reserved --- */

static size_t begin_on(struct buf *out, uint16_t channel, uint16_t class, uint16_t method,
                       struct span name)
{
    size_t at = begin_method(out, channel, class, method);

    put_number(out, 0, 2);
    put_word(out, name);
    return at;
}

void amqp_put_exchange_declare(struct buf *out, uint16_t channel, struct span name)
{
    size_t at = begin_on(out, channel, EXCHANGE, 10, name);

    put_word(out, SPAN("topic"));
    put_number(out, 2, 1); /* durable */
    put_no_table(out);
    end_frame(out, at);
}

void amqp_put_queue_declare(struct buf *out, uint16_t channel, struct span name, bool passive,
                            const struct amqp_argument *arguments, size_t n)
{
    size_t at = begin_on(out, channel, QUEUE, 10, name);

    put_number(out, 2 | passive, 1); /* durable */
    size_t table = begin_counted(out);
    for (size_t i = 0; i < n && !passive; i++) {
        if (arguments[i].text.p)
            put_text_entry(out, span_str(arguments[i].key), arguments[i].text);
        else
            put_number_entry(out, arguments[i].key, arguments[i].number);
    }
    end_counted(out, table);
    end_frame(out, at);
}

void amqp_put_queue_bind(struct buf *out, uint16_t channel, struct span queue, struct span exchange,
                         struct span key)
{
    size_t at = begin_on(out, channel, QUEUE, 20, queue);

    put_word(out, exchange);
    put_word(out, key);
    put_number(out, 0, 1); /* no-wait is off: the server answers */
    put_no_table(out);
    end_frame(out, at);
}

void amqp_put_queue_delete(struct buf *out, uint16_t channel, struct span queue, bool if_unused,
                           bool if_empty)
{
    size_t at = begin_on(out, channel, QUEUE, 40, queue);

    put_number(out, (uint64_t)(if_unused | if_empty << 1), 1);
    end_frame(out, at);
}

/* --- messages --- */

void amqp_put_qos(struct buf *out, uint16_t channel, uint16_t prefetch)
{
    size_t at = begin_method(out, channel, BASIC, 10);

    put_number(out, 0, 4); /* prefetch size: no limit in bytes */
    put_number(out, prefetch, 2);
    put_number(out, 0, 1); /* not global: the limit is for each consumer */
    end_frame(out, at);
}

void amqp_put_consume(struct buf *out, uint16_t channel, struct span queue, struct span consumer)
{
    size_t at = begin_on(out, channel, BASIC, 20, queue);

    put_word(out, consumer);
    put_number(out, 0, 1);
    put_no_table(out);
    end_frame(out, at);
}

void amqp_put_cancel(struct buf *out, uint16_t channel, struct span consumer)
{
    size_t at = begin_method(out, channel, BASIC, 30);

    put_word(out, consumer);
    put_number(out, 0, 1); /* no-wait is off: the server answers */
    end_frame(out, at);
}

void amqp_put_ack(struct buf *out, uint16_t channel, uint64_t tag)
{
    size_t at = begin_method(out, channel, BASIC, 80);

    put_number(out, tag, 8);
    put_number(out, 0, 1); /* not multiple: this message only */
    end_frame(out, at);
}

void amqp_put_nack(struct buf *out, uint16_t channel, uint64_t tag, bool requeue)
{
    size_t at = begin_method(out, channel, BASIC, 120);

    put_number(out, tag, 8);
    put_number(out, (uint64_t)requeue << 1, 1);
    end_frame(out, at);
}

/* --- publishing --- */

/* Writes the properties whose flags are in PROPERTIES, in the order of the flags. */
static void put_properties(struct buf *out, uint16_t channel, const struct amqp_message *m)
{
    size_t at = begin_frame(out, AMQP_HEADER, channel);

    put_number(out, BASIC, 2);
    put_number(out, 0, 2);
    put_number(out, m->body.n, 8);
    put_number(out, PROPERTIES, 2);
    put_word(out, m->content_type);
    size_t headers = begin_counted(out);
    for (size_t i = 0; i < m->n_headers; i++)
        put_text_entry(out, m->headers[i].key, m->headers[i].value);
    end_counted(out, headers);
    put_number(out, PERSISTENT, 1);
    put_word(out, m->correlation_id);
    put_word(out, m->reply_to);
    put_word(out, m->message_id);
    put_number(out, m->timestamp, 8);
    put_word(out, m->type);
    end_frame(out, at);
}

/* Are the message's words short enough, and do its properties fit a frame? */
static bool fits(const struct amqp_message *m, size_t frame_max)
{
    const struct span words[] = {m->exchange, m->routing_key, m->content_type, m->correlation_id,
                                 m->reply_to, m->message_id,  m->type};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (words[i].n > AMQP_WORD)
            return false;
    if (m->n_headers > AMQP_HEADERS)
        return false;
    for (size_t i = 0; i < m->n_headers; i++)
        if (m->headers[i].key.n > AMQP_WORD || m->headers[i].value.n > frame_max)
            return false;
    return true;
}

int amqp_put_publish(struct buf *out, uint16_t channel, size_t frame_max,
                     const struct amqp_message *m)
{
    size_t start = out->n, most = frame_max - HEAD - 1;

    if (!fits(m, frame_max))
        return ERR_SIZE;
    size_t at = begin_on(out, channel, BASIC, 40, m->exchange);
    put_word(out, m->routing_key);
    put_number(out, 0, 1); /* not mandatory: a message that no queue takes is not returned */
    end_frame(out, at);
    size_t properties = out->n;
    put_properties(out, channel, m);
    if (out->n - properties > frame_max) {
        out->n = start;
        return ERR_SIZE;
    }
    for (at = 0; at < m->body.n; at += most) {
        size_t frame = begin_frame(out, AMQP_BODY, channel);
        buf_span(out, span_cut(m->body, at, most));
        end_frame(out, frame);
    }
    return 0;
}
