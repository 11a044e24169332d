/* Reading and writing NATS: operations, the INFO of a server, and blocks of headers. Called by the
 * NATS engine in bus/. */
#include "wire/nats.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "wire/json.h"

#include <ctype.h>

/* --- reading operations --- */

void nats_reader_init(struct nats_reader *r)
{
    *r = (struct nats_reader){.max_payload = NATS_MAX_PAYLOAD};
}

void nats_reader_fini(struct nats_reader *r)
{
    buf_fini(&r->partial);
}

void nats_reader_stop(struct nats_reader *r)
{
    r->stopped = true;
}

/* The next word of a line. */
static struct span take_word(struct span *line)
{
    *line = span_trim(*line);
    size_t n = 0;
    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
        n++;
    struct span word = span_cut(*line, 0, n);
    *line = span_from(*line, n);
    return word;
}

/* SUBJECT SID [REPLY] [HEADER_BYTES] TOTAL_BYTES, where only HMSG has the bytes of its headers. */
static int read_message_line(struct nats_op *op, struct span line, bool with_headers,
                             size_t *headers, size_t *total)
{
    struct span words[6];
    size_t n = 0, numbers = with_headers ? 2 : 1;
    uint64_t head = 0, all;

    while (n < COUNT_OF(words) && (words[n] = take_word(&line)).n)
        n++;
    if (n != 2 + numbers && n != 3 + numbers)
        return ERR_PROTOCOL;
    op->kind = NATS_MSG;
    op->subject = words[0];
    op->reply = n == 3 + numbers ? words[2] : SPAN_EMPTY;
    if (!ascii_number(words[1], &op->sid) || !ascii_number(words[n - 1], &all) ||
        (with_headers && !ascii_number(words[n - 2], &head)) || head > all)
        return ERR_PROTOCOL;
    *headers = (size_t)head;
    *total = (size_t)all;
    return 0;
}

static const struct {
    const char *word;
    enum nats_kind kind;
} plain_ops[] = {
    {"PING", NATS_PING}, {"PONG", NATS_PONG}, {"+OK", NATS_OK},
    {"INFO", NATS_INFO}, {"-ERR", NATS_ERR},
};

static int read_plain_line(struct nats_op *op, struct span word, struct span rest)
{
    for (size_t i = 0; i < COUNT_OF(plain_ops); i++) {
        if (!span_eq_nocase(word, span_str(plain_ops[i].word)))
            continue;
        op->kind = plain_ops[i].kind;
        op->text = span_trim(rest);
        if (op->kind == NATS_ERR && op->text.n >= 2 && op->text.p[0] == '\'')
            op->text = span_cut(op->text, 1, op->text.n - 2);
        return 0;
    }
    return ERR_PROTOCOL;
}

/*
 * Reads the operation at the start of `in`. Returns 0 with its size in *used; or 0 with *used 0
 * when it is incomplete and at least *need bytes are needed; or a negative code.
 */
static int read_op(const struct nats_reader *r, struct span in, struct nats_op *op, size_t *used,
                   size_t *need)
{
    size_t end = span_find(in, '\n'), headers = 0, total = 0;

    *op = (struct nats_op){0};
    *used = 0;
    *need = in.n + 1;
    if (end > NATS_MAX_LINE)
        return ERR_SIZE;
    if (end == in.n)
        return 0;
    if (!end || in.p[end - 1] != '\r')
        return ERR_PROTOCOL;
    struct span line = span_cut(in, 0, end - 1);
    struct span word = take_word(&line);
    bool with_headers = span_eq_nocase(word, SPAN("HMSG"));
    if (!with_headers && !span_eq_nocase(word, SPAN("MSG"))) {
        *used = end + 1;
        return read_plain_line(op, word, line);
    }
    int code = read_message_line(op, line, with_headers, &headers, &total);
    if (code < 0)
        return code;
    if (total > r->max_payload)
        return ERR_SIZE;
    *need = end + 1 + total + 2;
    if (in.n < *need)
        return 0;
    op->headers = span_cut(in, end + 1, headers);
    op->payload = span_cut(in, end + 1 + headers, total - headers);
    if (memcmp(in.p + *need - 2, "\r\n", 2) != 0)
        return ERR_PROTOCOL;
    *used = *need;
    return 0;
}

/* Hands out the complete operations in `in`; *rest is what is left of `in`. */
static int read_ops(struct nats_reader *r, struct span in, struct span *rest, nats_op_fn *on_op,
                    void *owner)
{
    struct nats_op op;
    int code = 0;
    size_t used = 1;

    while (!r->stopped && in.n && code == 0 && used) {
        code = read_op(r, in, &op, &used, &r->need);
        in = span_from(in, used);
        op.behind = in.n;
        if (code == 0 && used)
            on_op(owner, &op);
    }
    *rest = in;
    return code;
}

int nats_reader_feed(struct nats_reader *r, struct span chunk, nats_op_fn *on_op, void *owner)
{
    struct span in = chunk, rest;

    if (r->stopped)
        return 0;
    if (r->partial.n) {
        buf_span(&r->partial, chunk);
        if (r->partial.n < r->need)
            return 0;
        in = buf_view(&r->partial);
    }
    int code = read_ops(r, in, &rest, on_op, owner);
    if (in.p == r->partial.p)
        buf_drop(&r->partial, in.n - rest.n);
    else if (!r->stopped)
        buf_span(&r->partial, rest);
    if (!r->partial.n)
        buf_reset(&r->partial, NATS_MAX_LINE);
    return code;
}

/* --- INFO --- */

int nats_read_info(struct nats_info *info, struct span json)
{
    enum { MAX_PAYLOAD, TLS_REQUIRED, TLS_AVAILABLE, HEADERS, LEAVING, NONCE, URLS, SLOTS };
    static const struct json_shape_row rows[] = {
        {"max_payload", MAX_PAYLOAD, NULL},
        {"tls_required", TLS_REQUIRED, NULL},
        {"tls_available", TLS_AVAILABLE, NULL},
        {"headers", HEADERS, NULL},
        {"ldm", LEAVING, NULL},
        {"nonce", NONCE, NULL},
        {"connect_urls", URLS, NULL},
    };
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot slots[SLOTS] = {0};
    int64_t most = 0;

    *info = (struct nats_info){0};
    if (json_skim(json, &shape, slots, NULL, NULL) < 0 ||
        !json_int(slots[MAX_PAYLOAD].value, &most) || most <= 0)
        return ERR_PROTOCOL;
    info->max_payload = most < NATS_MAX_PAYLOAD ? (size_t)most : NATS_MAX_PAYLOAD;
    info->tls_required = slots[TLS_REQUIRED].type == JSON_TRUE;
    info->tls_available = slots[TLS_AVAILABLE].type == JSON_TRUE;
    info->headers = slots[HEADERS].type == JSON_TRUE;
    info->leaving = slots[LEAVING].type == JSON_TRUE;
    if (slots[NONCE].type == JSON_STRING) /* base64 text has no escapes */
        info->nonce = span_cut(slots[NONCE].value, 1, slots[NONCE].value.n - 2);
    if (slots[URLS].type == JSON_ARRAY)
        info->urls = slots[URLS].value;
    return 0;
}

/* --- reading headers --- */

static const struct span version = {"NATS/1.0", 8};

static struct span take_line(struct span *rest)
{
    size_t end = span_find(*rest, '\n');
    struct span line = span_cut(*rest, 0, end);

    *rest = span_from(*rest, end + 1);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

struct nats_headers nats_headers_of(struct span block)
{
    struct nats_headers h = {.rest = block};

    if (!span_starts(take_line(&h.rest), version))
        h.rest = SPAN_EMPTY;
    return h;
}

bool nats_headers_next(struct nats_headers *h)
{
    while (h->rest.n) {
        struct span line = take_line(&h->rest);
        size_t colon = span_find(line, ':');
        h->key = span_cut(line, 0, colon);
        h->value = span_trim(span_from(line, colon + 1));
        if (colon < line.n && h->key.n)
            return true;
    }
    return false;
}

unsigned nats_headers_status(struct span block)
{
    struct span line = take_line(&block);
    uint64_t status = 0;

    if (!span_starts(line, version))
        return 0;
    line = span_from(line, version.n);
    return ascii_number(span_cut(take_word(&line), 0, 3), &status) ? (unsigned)status : 0;
}

/* --- writing --- */

static void put_end(struct buf *out)
{
    buf_bytes(out, "\r\n", 2);
}

void nats_write_connect(struct buf *out, struct span json)
{
    buf_str(out, "CONNECT ");
    buf_span(out, json);
    put_end(out);
}

void nats_write_sub(struct buf *out, struct span subject, struct span group, uint64_t sid)
{
    buf_str(out, "SUB ");
    buf_span(out, subject);
    buf_char(out, ' ');
    for (size_t i = 0; i < group.n; i++) /* a blank would end the group's name */
        buf_char(out, (unsigned char)group.p[i] <= ' ' ? '_' : group.p[i]);
    if (group.n)
        buf_char(out, ' ');
    buf_u64(out, sid);
    put_end(out);
}

void nats_write_unsub(struct buf *out, uint64_t sid)
{
    buf_str(out, "UNSUB ");
    buf_u64(out, sid);
    put_end(out);
}

void nats_write_pub(struct buf *out, struct span subject, struct span reply, struct span headers,
                    struct span payload)
{
    buf_str(out, headers.n ? "HPUB " : "PUB ");
    buf_span(out, subject);
    buf_char(out, ' ');
    buf_span(out, reply);
    if (reply.n)
        buf_char(out, ' ');
    if (headers.n) {
        buf_u64(out, headers.n);
        buf_char(out, ' ');
    }
    buf_u64(out, headers.n + payload.n);
    put_end(out);
    buf_span(out, headers);
    buf_span(out, payload);
    put_end(out);
}

void nats_write_ping(struct buf *out)
{
    buf_str(out, "PING\r\n");
}

void nats_write_pong(struct buf *out)
{
    buf_str(out, "PONG\r\n");
}

void nats_write_header(struct buf *block, struct span key, struct span value)
{
    if (!key.n || !ascii_is_words(key, "!#$%&'*+-.^_`|~"))
        return;
    if (!block->n) {
        buf_span(block, version);
        put_end(block);
    }
    buf_span(block, key);
    buf_bytes(block, ": ", 2);
    size_t at = block->n;
    buf_span(block, value);
    for (; at < block->n; at++)
        if (iscntrl((unsigned char)block->p[at]))
            block->p[at] = ' ';
    put_end(block);
}

void nats_headers_end(struct buf *block)
{
    if (block->n)
        put_end(block);
}
