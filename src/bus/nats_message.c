/* Converts a message of the bus to a natsMsg with headers, and back. Called by nats.c for messages
 * that are published, and by nats_sub.c for those that arrive and for dead letters. */
#include "bus/nats_message.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/mem.h"
#include "bus/stamp.h"

#include <ctype.h>
#include <stdlib.h>

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

/* A line break in a value would begin another header, so control characters become blanks. */
static void put_header(natsMsg *msg, struct span key, struct span value, struct buf *scratch)
{
    if (!key.n || !ascii_is_words(key, "!#$%&'*+-.^_`|~"))
        return;
    scratch->n = 0;
    buf_span(scratch, key);
    buf_char(scratch, '\0');
    size_t at = scratch->n;
    buf_span(scratch, value);
    buf_char(scratch, '\0');
    for (size_t i = at; i + 1 < scratch->n; i++)
        if (iscntrl((unsigned char)scratch->p[i]))
            scratch->p[i] = ' ';
    /* Fails for want of memory only. */
    if (natsMsgHeader_Set(msg, scratch->p, scratch->p + at) != NATS_OK)
        abort();
}

natsMsg *nats_message_new(const char *subject, const char *reply, const struct message *m,
                          const char *once)
{
    natsMsg *msg = NULL;
    BUF_SCOPED scratch = {0}, time = {0};

    if (natsMsg_Create(&msg, subject, reply, m->body.p, (int)m->body.n) != NATS_OK)
        abort();
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct span word = *(const struct span *)((const char *)m + words[i].offset);
        if (word.n)
            put_header(msg, span_str(words[i].key), word, &scratch);
    }
    if (m->sent_ms) {
        buf_u64(&time, m->sent_ms);
        put_header(msg, span_str(time_key), buf_view(&time), &scratch);
    }
    for (size_t i = 0; i < m->n_headers; i++)
        put_header(msg, m->headers[i].key, m->headers[i].value, &scratch);
    if (once)
        put_header(msg, SPAN("Nats-Msg-Id"), span_str(once), &scratch);
    return msg;
}

/* --- reading --- */

static struct span *word_of(struct message *m, struct span key)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_eq_nocase(key, span_str(words[i].key)))
            return (struct span *)((char *)m + words[i].offset);
    return NULL;
}

/* Milliseconds, or the text that other engines carry. */
static uint64_t read_time(struct span text)
{
    uint64_t ms;

    if (text.n > 15)
        return stamp_read(text);
    return ascii_number(text, &ms) ? ms : 0;
}

static int read_header(struct message *m, const char *key, const char *value, struct err *err)
{
    struct span k = span_str(key), v = span_str(value);
    struct span *word = word_of(m, k);

    if (word) {
        if (v.n > MESSAGE_MAX_WORD)
            return err_set(err, ERR_SIZE, "%s is longer than %d bytes", key, MESSAGE_MAX_WORD);
        *word = v;
    } else if (span_eq_nocase(k, span_str(time_key))) {
        m->sent_ms = read_time(v);
    } else if (k.n > MESSAGE_MAX_WORD) {
        return err_set(err, ERR_SIZE, "the name of a header is longer than %d bytes",
                       MESSAGE_MAX_WORD);
    } else if (!span_eq_nocase(span_cut(k, 0, 5), SPAN("Nats-"))) {
        (void)message_add_header(m, key, v); /* more than there is room for are left out */
    }
    return 0;
}

static void fill_in(struct message *m, struct buf *scratch)
{
    char id[ID_TOKEN_SIZE];

    if (!m->id.n) {
        id_token(id);
        scratch->n = 0;
        buf_str(scratch, id);
        m->id = buf_view(scratch);
    }
    if (!m->type.n)
        m->type = SPAN("unknown");
    if (!m->source.n)
        m->source = SPAN("unknown");
    if (!m->sent_ms)
        m->sent_ms = stamp_now();
}

int nats_message_read(struct message *m, natsMsg *msg, struct buf *scratch, struct err *err)
{
    const char **keys = NULL;
    int n = 0, code = 0;

    *m = (struct message){0};
    if (natsMsgHeader_Keys(msg, &keys, &n) != NATS_OK)
        n = 0; /* there are none */
    for (int i = 0; i < n && code == 0; i++) {
        const char *value = NULL;
        if (natsMsgHeader_Get(msg, keys[i], &value) == NATS_OK && value)
            code = read_header(m, keys[i], value, err);
    }
    free((void *)keys);
    m->body = span_of(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg));
    fill_in(m, scratch);
    return code;
}
