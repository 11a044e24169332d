/* Headers of a message, the JSON form of a message, and packed copies that outlive a call. Called
 * by the other files of bus/, by rockbot/, and by bus.c, bus_tail.c and bus_dead.c of cmd/. */
#include "bus/message.h"

#include "base/base64.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* A body that is nested deeper is sent as base64: inside its envelope and a line of the embedded
 * bus it would exceed the reader's depth limit. */
enum { BODY_MAX_DEPTH = JSON_MAX_DEPTH - 4 };

bool message_add_header(struct message *m, const char *key, struct span value)
{
    if (m->n_headers == MESSAGE_MAX_HEADERS)
        return false;
    m->headers[m->n_headers++] = (struct message_header){span_str(key), value};
    return true;
}

struct span message_header(const struct message *m, const char *key)
{
    for (size_t i = 0; i < m->n_headers; i++)
        if (span_is(m->headers[i].key, key))
            return m->headers[i].value;
    return SPAN_EMPTY;
}

/* --- as JSON --- */

enum slot {
    S_ID,
    S_TYPE,
    S_CORRELATION,
    S_REPLY,
    S_SOURCE,
    S_DEST,
    S_TIME,
    S_HEADERS,
    S_BODY,
    S_BODY64,
    SLOTS
};

static const struct json_shape_row rows[] = {
    {"messageId", S_ID, NULL},
    {"messageType", S_TYPE, NULL},
    {"correlationId", S_CORRELATION, NULL},
    {"replyTo", S_REPLY, NULL},
    {"source", S_SOURCE, NULL},
    {"destination", S_DEST, NULL},
    {"timestamp", S_TIME, NULL},
    {"headers", S_HEADERS, NULL},
    {"body", S_BODY, NULL},
    {"bodyBase64", S_BODY64, NULL},
};
static const struct json_shape shape = JSON_SHAPE(rows);

/* The members that are plain words: their slot and their offset in struct message. */
static const struct {
    enum slot slot;
    size_t offset;
} words[] = {
    {S_ID, offsetof(struct message, id)},
    {S_TYPE, offsetof(struct message, type)},
    {S_CORRELATION, offsetof(struct message, correlation)},
    {S_REPLY, offsetof(struct message, reply_to)},
    {S_SOURCE, offsetof(struct message, source)},
    {S_DEST, offsetof(struct message, destination)},
};

static void put_body(struct buf *out, struct span body)
{
    if (json_skim(body, NULL, NULL, NULL, NULL) == 0 && json_depth(body) <= BODY_MAX_DEPTH) {
        json_out(out, "body");
        json_one_line(out, body);
        return;
    }
    json_out_open(out, "bodyBase64", '"');
    base64_put(out, body);
    buf_char(out, '"');
}

void message_put_json(struct buf *out, const struct message *m)
{
    buf_char(out, '{');
    for (size_t i = 0; i < COUNT_OF(words); i++)
        json_out_text_or_null(out, rows[words[i].slot].key,
                              *(const struct span *)((const char *)m + words[i].offset));
    if (m->sent_ms) {
        json_out_open(out, "timestamp", '"');
        stamp_put(out, m->sent_ms);
        buf_char(out, '"');
    } else {
        json_out_raw(out, "timestamp", SPAN("null"));
    }
    json_out_open(out, "headers", '{');
    for (size_t i = 0; i < m->n_headers; i++) {
        json_out_text(out, NULL, m->headers[i].key);
        buf_char(out, ':');
        json_quote(out, m->headers[i].value);
    }
    buf_char(out, '}');
    put_body(out, m->body);
    buf_char(out, '}');
}

static int read_word(struct span *word, const struct json_slot *slot, const char *key,
                     struct buf *scratch, struct err *err)
{
    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return 0;
    if (slot->type != JSON_STRING)
        return err_set(err, ERR_PROTOCOL, "%s must be a text", key);
    *word = json_text(slot->value, scratch);
    if (word->n > MESSAGE_MAX_WORD)
        return err_set(err, ERR_SIZE, "%s is longer than %d bytes", key, MESSAGE_MAX_WORD);
    return 0;
}

/* Values that are not strings are left out, as in RockBot's own reader. */
static int read_headers(struct message *m, const struct json_slot *slot, struct buf *scratch,
                        struct err *err)
{
    struct json_iter it = json_iter(slot->value);

    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return 0;
    if (slot->type != JSON_OBJECT)
        return err_set(err, ERR_PROTOCOL, "headers must be an object");
    while (json_next(&it)) {
        if (it.type != JSON_STRING)
            continue;
        struct span key = json_text(it.key, scratch);
        if (key.n > MESSAGE_MAX_WORD)
            return err_set(err, ERR_SIZE, "a header's name is longer than %d bytes",
                           MESSAGE_MAX_WORD);
        if (m->n_headers == MESSAGE_MAX_HEADERS)
            return err_set(err, ERR_SIZE, "more than %d headers", MESSAGE_MAX_HEADERS);
        m->headers[m->n_headers++] = (struct message_header){key, json_text(it.value, scratch)};
    }
    return 0;
}

static int read_body(struct message *m, const struct json_slot *slots, struct buf *scratch,
                     struct err *err)
{
    const struct json_slot *plain = &slots[S_BODY], *coded = &slots[S_BODY64];

    if (coded->type == JSON_NONE || coded->type == JSON_NULL) {
        m->body = plain->type == JSON_NONE ? SPAN("null") : plain->value;
        return 0;
    }
    if (plain->type != JSON_NONE || coded->type != JSON_STRING)
        return err_set(err, ERR_PROTOCOL, "either body, or bodyBase64 with a text");
    struct span text = json_text(coded->value, scratch);
    size_t at = scratch->n;
    if (base64_read(scratch, text) < 0)
        return err_set(err, ERR_SYNTAX, "bodyBase64 is not base64");
    m->body = span_of(scratch->p + at, scratch->n - at);
    return 0;
}

int message_from_json(struct message *m, struct span env, struct buf *scratch, struct err *err)
{
    struct json_slot slots[SLOTS] = {0};
    int code = json_skim(env, &shape, slots, NULL, NULL);

    *m = (struct message){0};
    if (code < 0)
        return err_set(err, code, "the envelope: %s", err_name(code));
    /* Unescaping or decoding never makes a text longer, and a base64 text may need both: with this
     * much room `scratch` never moves, and the spans into it stay valid. */
    buf_room(scratch, 2 * env.n);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        code = read_word((struct span *)((char *)m + words[i].offset), &slots[words[i].slot],
                         rows[words[i].slot].key, scratch, err);
        if (code < 0)
            return code;
    }
    if (slots[S_TIME].type == JSON_STRING)
        m->sent_ms = stamp_read(json_text(slots[S_TIME].value, scratch));
    code = read_headers(m, &slots[S_HEADERS], scratch, err);
    return code < 0 ? code : read_body(m, slots, scratch, err);
}

/* --- copies --- */

size_t message_size(const struct message *m)
{
    size_t n = m->id.n + m->type.n + m->correlation.n + m->reply_to.n + m->source.n +
               m->destination.n + m->body.n;

    for (size_t i = 0; i < m->n_headers; i++)
        n += m->headers[i].key.n + m->headers[i].value.n;
    return n;
}

/* `texts` has the message's words, its body, and then the key and the value of each header. */
struct message_pack {
    uint64_t sent_ms;
    size_t n_headers;
    struct span texts[]; /* their bytes follow the last span */
};

enum { BODY_AT = COUNT_OF(words), HEADERS_AT };

size_t message_pack_size(const struct message *m)
{
    return sizeof(struct message_pack) + (HEADERS_AT + 2 * m->n_headers) * sizeof(struct span) +
           message_size(m);
}

static struct span keep(char **at, struct span s)
{
    struct span kept = span_of(*at, s.n);

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

struct message_pack *message_pack_new(const struct message *m)
{
    struct message_pack *p = mem_alloc(message_pack_size(m));
    struct span *headers = p->texts + HEADERS_AT;
    char *at = (char *)(headers + 2 * m->n_headers);

    p->sent_ms = m->sent_ms;
    p->n_headers = m->n_headers;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        p->texts[i] = keep(&at, *(const struct span *)((const char *)m + words[i].offset));
    p->texts[BODY_AT] = keep(&at, m->body);
    for (size_t i = 0; i < m->n_headers; i++) {
        headers[2 * i] = keep(&at, m->headers[i].key);
        headers[2 * i + 1] = keep(&at, m->headers[i].value);
    }
    return p;
}

void message_pack_free(struct message_pack *p)
{
    mem_free(p);
}

void message_pack_read(const struct message_pack *p, struct message *m)
{
    const struct span *headers = p->texts + HEADERS_AT;

    m->sent_ms = p->sent_ms;
    m->n_headers = p->n_headers;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        *(struct span *)((char *)m + words[i].offset) = p->texts[i];
    m->body = p->texts[BODY_AT];
    for (size_t i = 0; i < p->n_headers; i++)
        m->headers[i] = (struct message_header){headers[2 * i], headers[2 * i + 1]};
}

void message_copy(struct message_copy *copy, const struct message *m)
{
    copy->pack = message_pack_new(m);
    message_pack_read(copy->pack, &copy->m);
}

void message_copy_fini(struct message_copy *copy)
{
    message_pack_free(copy->pack);
    copy->pack = NULL;
}
