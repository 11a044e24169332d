/* A message of the bus as the headers and the payload of a NATS message, and back. Called by nats.c
 * for messages that are published, and by nats_sub.c for those that arrive and for dead letters. */
#include "bus/nats_inside.h"

#include "base/ascii.h"
#include "bus/stamp.h"

/* The fields that are plain words. */
static const struct {
    const char *key;
    size_t offset;
} words[] = {
    {"rb-message-id", offsetof(struct message, id)},
    {"rb-message-type", offsetof(struct message, type)},
    {"rb-correlation-id", offsetof(struct message, correlation)},
    {"rb-reply-to", offsetof(struct message, reply_to)},
    {"rb-source", offsetof(struct message, source)},
    {"rb-destination", offsetof(struct message, destination)},
};
static const char time_key[] = "rb-timestamp";

/* --- writing --- */

void nats_message_put(struct buf *headers, const struct message *m, struct span once)
{
    BUF_SCOPED time = {0};

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct span word = *(const struct span *)((const char *)m + words[i].offset);
        if (word.n)
            nats_write_header(headers, span_str(words[i].key), word);
    }
    if (m->sent_ms) {
        buf_u64(&time, m->sent_ms);
        nats_write_header(headers, span_str(time_key), buf_view(&time));
    }
    for (size_t i = 0; i < m->n_headers; i++)
        nats_write_header(headers, m->headers[i].key, m->headers[i].value);
    if (once.n)
        nats_write_header(headers, SPAN("Nats-Msg-Id"), once);
    nats_headers_end(headers);
}

/* --- reading --- */

static struct span *word_of(struct message *m, struct span key)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_eq_nocase(key, span_str(words[i].key)))
            return (struct span *)((char *)m + words[i].offset);
    return NULL;
}

/* Milliseconds, or the ISO 8601 text that other engines use. */
static uint64_t read_time(struct span text)
{
    uint64_t ms;

    if (text.n > 15)
        return stamp_read(text);
    return ascii_number(text, &ms) ? ms : 0;
}

static bool has_header(const struct message *m, struct span key)
{
    for (size_t i = 0; i < m->n_headers; i++)
        if (span_eq(m->headers[i].key, key))
            return true;
    return false;
}

/* Of a repeated header the first value counts (of the timestamp the last); headers beyond
 * MESSAGE_MAX_HEADERS are left out. */
static int read_header(struct message *m, struct span key, struct span value, struct err *err)
{
    struct span *word = word_of(m, key);

    if (word && value.n > MESSAGE_MAX_WORD)
        return err_set(err, ERR_SIZE, SPAN_FMT " is longer than %d bytes", SPAN_ARG(key),
                       MESSAGE_MAX_WORD);
    if (key.n > MESSAGE_MAX_WORD)
        return err_set(err, ERR_SIZE, "the name of a header is longer than %d bytes",
                       MESSAGE_MAX_WORD);
    if (word)
        *word = word->n ? *word : value;
    else if (span_eq_nocase(key, span_str(time_key)))
        m->sent_ms = read_time(value);
    else if (!span_eq_nocase(span_cut(key, 0, 5), SPAN("Nats-")) && !has_header(m, key) &&
             m->n_headers < MESSAGE_MAX_HEADERS)
        m->headers[m->n_headers++] = (struct message_header){key, value};
    return 0;
}

static void fill_in(struct message *m, char made_id[ID_TOKEN_SIZE])
{
    if (!m->id.n) {
        id_token(made_id);
        m->id = span_str(made_id);
    }
    if (!m->type.n)
        m->type = SPAN("unknown");
    if (!m->source.n)
        m->source = SPAN("unknown");
    if (!m->sent_ms)
        m->sent_ms = stamp_now();
}

int nats_message_read(struct message *m, struct span headers, struct span payload,
                      char made_id[ID_TOKEN_SIZE], struct err *err)
{
    struct nats_headers h = nats_headers_of(headers);
    int code = 0;

    *m = (struct message){.body = payload};
    while (code == 0 && nats_headers_next(&h))
        code = read_header(m, h.key, h.value, err);
    fill_in(m, made_id);
    return code;
}
