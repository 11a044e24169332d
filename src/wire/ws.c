/* WebSocket frames decoded and encoded, and the keys of the opening handshake. Called by io/ws.c;
 * the keys by io/ws_accept.c and io/ws_connect.c. */
#include "wire/ws.h"

#include "base/ascii.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/sha.h"
#include "base/utf8.h"

enum {
    KEEP = 2048,       /* a message buffer larger than this is freed after its message */
    MAX_CONTROL = 125, /* payload of a control frame */
    CONTINUATION = 0,
    FIN = 0x80,
    RESERVED = 0x70,
    MASKED = 0x80,
    HEAD_MAX = 14,
    KEY_BYTES = 16,
    KEY_CHARS = 24, /* length of the key in base64, the last two characters padding */
};

void ws_decoder_init(struct ws_decoder *d, enum ws_role role, size_t cap)
{
    *d = (struct ws_decoder){.role = role, .cap = cap};
}

void ws_decoder_fini(struct ws_decoder *d)
{
    buf_fini(&d->head);
    buf_fini(&d->message);
    buf_fini(&d->control);
}

/* The error that goes with a close code; every later feed returns the same error. */
static int failure(uint16_t close_code)
{
    switch (close_code) {
    case 0:
        return 0;
    case 1007:
        return ERR_UTF8;
    case 1009:
        return ERR_SIZE;
    default:
        return ERR_PROTOCOL;
    }
}

static int fail(struct ws_decoder *d, uint16_t close_code)
{
    d->close_code = close_code;
    return failure(close_code);
}

/* Copies and masks or unmasks in one pass; `to` may be `from`. `at` is the offset of the first byte
 * in the masked payload. */
static void mask_copy(char *to, const char *from, size_t n, const uint8_t mask[4], size_t at)
{
    uint8_t key[8];
    uint64_t wide, words[4]; /* four words at a time, which compilers turn into vector code */
    size_t i = 0;

    for (size_t k = 0; k < sizeof key; k++)
        key[k] = mask[(at + k) % 4];
    memcpy(&wide, key, sizeof wide);
    for (; i + sizeof words <= n; i += sizeof words) {
        memcpy(words, from + i, sizeof words);
        for (size_t k = 0; k < 4; k++)
            words[k] ^= wide;
        memcpy(to + i, words, sizeof words);
    }
    for (; i < n; i++)
        to[i] = (char)(from[i] ^ key[i % 8]);
}

static uint64_t big_endian(const char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

static bool is_control(uint8_t opcode)
{
    return opcode >= WS_CLOSE;
}

/* Move bytes from the chunk until the head has `want` of them; false when the chunk is too short.
 */
static bool gather(struct ws_decoder *d, size_t want, struct span *chunk)
{
    if (d->head.n < want) {
        struct span piece = span_cut(*chunk, 0, want - d->head.n);
        buf_span(&d->head, piece);
        *chunk = span_from(*chunk, piece.n);
    }
    return d->head.n >= want;
}

/* A frame head is complete: is such a frame allowed now? */
static int check_head(struct ws_decoder *d, uint8_t flags)
{
    if ((flags & RESERVED) || d->masked != (d->role == WS_SERVER))
        return fail(d, 1002);
    if (is_control(d->opcode)) {
        bool fits = d->fin && d->left <= MAX_CONTROL && d->opcode <= WS_PONG;
        return fits ? 0 : fail(d, 1002);
    }
    /* A continuation needs an open message, and a new message may not begin inside an open one. */
    if (d->opcode > WS_BINARY || (d->opcode == CONTINUATION) != (d->message_opcode != 0))
        return fail(d, 1002);
    if (d->left >> 63)
        return fail(d, 1002);
    if (d->left > d->cap - d->message.n)
        return fail(d, 1009);
    if (d->opcode != CONTINUATION)
        d->message_opcode = d->opcode;
    return 0;
}

/* 1 when a frame head was completed, 0 when more bytes are needed, or an error. */
static int take_head(struct ws_decoder *d, struct span *chunk)
{
    if (!gather(d, 2, chunk))
        return 0;
    uint8_t flags = (uint8_t)d->head.p[0], size = (uint8_t)d->head.p[1];
    size_t length_n = (size & 0x7f) == 127 ? 8 : (size & 0x7f) == 126 ? 2 : 0;
    size_t mask_n = size & MASKED ? sizeof d->mask : 0;
    if (!gather(d, 2 + length_n + mask_n, chunk))
        return 0;

    d->opcode = flags & 0x0f;
    d->fin = flags & FIN;
    d->masked = size & MASKED;
    d->left = length_n ? big_endian(d->head.p + 2, length_n) : size & 0x7fu;
    memcpy(d->mask, d->head.p + 2 + length_n, mask_n);
    d->mask_at = 0;
    d->head.n = 0;
    d->in_frame = true;
    int rc = check_head(d, flags);
    return rc ? rc : 1;
}

static bool close_code_is_valid(uint16_t code)
{
    if (code >= 3000 && code <= 4999)
        return true;
    /* 1004 is reserved; 1005 and 1006 are for use inside programs and may not be sent. */
    return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

static int check_payload(struct ws_decoder *d, enum ws_opcode op, struct span payload)
{
    if (op == WS_TEXT && !utf8_valid(payload))
        return fail(d, 1007);
    if (op != WS_CLOSE || !payload.n)
        return 0;
    if (payload.n < 2 || !close_code_is_valid(ws_frame_close_code(payload)))
        return fail(d, 1002);
    return utf8_valid(span_from(payload, 2)) ? 0 : fail(d, 1007);
}

/* The frame is complete; `payload` is that of the frame, or of the whole message that the frame
 * ends. */
static int finish_frame(struct ws_decoder *d, struct span payload, ws_frame_fn *on_frame,
                        void *owner)
{
    enum ws_opcode op = is_control(d->opcode) ? d->opcode : d->message_opcode;

    d->in_frame = false;
    if (!d->fin)
        return 0;
    int rc = check_payload(d, op, payload);
    if (rc)
        return rc;
    if (!is_control(d->opcode))
        d->message_opcode = 0;
    if (op == WS_CLOSE)
        d->stopped = true; /* bytes behind a close frame are ignored */
    on_frame(owner, op, payload);
    buf_reset(is_control(d->opcode) ? &d->control : &d->message, KEEP);
    return 0;
}

static int take_payload(struct ws_decoder *d, struct span *chunk, ws_frame_fn *on_frame,
                        void *owner)
{
    struct buf *into = is_control(d->opcode) ? &d->control : &d->message;
    struct span piece = span_cut(*chunk, 0, d->left);

    *chunk = span_from(*chunk, piece.n);
    d->left -= piece.n;
    if (!d->left && d->fin && !d->masked && !into->n)
        return finish_frame(d, piece, on_frame, owner); /* the payload lies whole in the chunk */

    if (d->masked && piece.n) {
        mask_copy(buf_room(into, piece.n), piece.p, piece.n, d->mask, d->mask_at);
        into->n += piece.n;
        d->mask_at = (unsigned)((d->mask_at + piece.n) % sizeof d->mask);
    } else {
        buf_span(into, piece);
    }
    return d->left ? 0 : finish_frame(d, buf_view(into), on_frame, owner);
}

int ws_decoder_feed(struct ws_decoder *d, struct span chunk, ws_frame_fn *on_frame, void *owner)
{
    while (!d->stopped && !d->close_code) {
        if (!d->in_frame) {
            int rc = take_head(d, &chunk);
            if (rc <= 0)
                return rc;
        }
        if (d->left && !chunk.n)
            return 0;
        int rc = take_payload(d, &chunk, on_frame, owner);
        if (rc)
            return rc;
    }
    return failure(d->close_code);
}

/* The head of a frame with `n` bytes of payload; for clients with the masking key. Returns the
 * length of the head. */
static size_t make_head(uint8_t head[HEAD_MAX], enum ws_role role, enum ws_opcode op, size_t n)
{
    size_t at = 2, length_n = n > 0xffff ? 8 : n > MAX_CONTROL ? 2 : 0;
    uint8_t masked = role == WS_CLIENT ? MASKED : 0;

    head[0] = (uint8_t)(FIN | op);
    head[1] = (uint8_t)(masked | (length_n == 8 ? 127 : length_n == 2 ? 126 : n));
    while (length_n)
        head[at++] = (uint8_t)((uint64_t)n >> 8 * --length_n);
    if (masked) {
        id_random_bytes(head + at, 4);
        at += 4;
    }
    return at;
}

void ws_frame_put(struct buf *out, enum ws_role role, enum ws_opcode op, struct span payload)
{
    uint8_t head[HEAD_MAX];
    size_t n = make_head(head, role, op, payload.n);
    char *room = buf_room(out, n + payload.n);

    memcpy(room, head, n);
    if (role == WS_CLIENT)
        mask_copy(room + n, payload.p, payload.n, head + n - 4, 0);
    else if (payload.n)
        memcpy(room + n, payload.p, payload.n);
    out->n += n + payload.n;
}

/* The length of the head that most messages need. */
static size_t usual_head(enum ws_role role)
{
    return role == WS_CLIENT ? 8 : 4;
}

size_t ws_frame_begin(struct buf *out, enum ws_role role)
{
    size_t at = out->n;

    buf_room(out, usual_head(role));
    out->n += usual_head(role);
    return at;
}

void ws_frame_end(struct buf *out, enum ws_role role, enum ws_opcode op, size_t at)
{
    uint8_t head[HEAD_MAX];
    size_t left = usual_head(role), payload_n = out->n - at - left;
    size_t n = make_head(head, role, op, payload_n);

    if (n > left)
        buf_room(out, n - left);
    if (n != left)
        memmove(out->p + at + n, out->p + at + left, payload_n);
    memcpy(out->p + at, head, n);
    out->n = at + n + payload_n;
    if (role == WS_CLIENT)
        mask_copy(out->p + at + n, out->p + at + n, payload_n, head + n - 4, 0);
}

void ws_frame_put_close(struct buf *out, enum ws_role role, uint16_t code, struct span reason)
{
    char payload[MAX_CONTROL] = {(char)(code >> 8), (char)code};
    size_t n = reason.n < MAX_CONTROL - 2 ? reason.n : MAX_CONTROL - 2;

    /* The reason must still be UTF-8 when cut: never cut between the bytes of a character. */
    while (n && n < reason.n && ((uint8_t)reason.p[n] & 0xc0) == 0x80)
        n--;
    if (n)
        memcpy(payload + 2, reason.p, n);
    ws_frame_put(out, role, WS_CLOSE, span_of(payload, code == 1005 ? 0 : 2 + n));
}

uint16_t ws_frame_close_code(struct span payload)
{
    return payload.n < 2 ? 1005 : (uint16_t)big_endian(payload.p, 2);
}

static void put_base64(char *out, const uint8_t *bytes, size_t n)
{
    BUF_SCOPED text = {0};

    base64_put(&text, span_of((const char *)bytes, n));
    memcpy(out, buf_cstr(&text), text.n + 1);
}

void ws_key_new(char out[25])
{
    uint8_t key[KEY_BYTES];

    id_random_bytes(key, sizeof key);
    put_base64(out, key, sizeof key);
}

bool ws_key_is_valid(struct span key)
{
    return key.n == KEY_CHARS && span_is(span_from(key, KEY_CHARS - 2), "==") &&
           ascii_is_words(span_cut(key, 0, KEY_CHARS - 2), "+/");
}

void ws_key_answer(struct span key, char out[29])
{
    static const struct span guid = {"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", 36};
    BUF_SCOPED text = {0};
    uint8_t digest[SHA1_N];

    buf_span(&text, key);
    buf_span(&text, guid);
    sha_1(digest, buf_view(&text));
    put_base64(out, digest, sizeof digest);
}
