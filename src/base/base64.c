/* Base64 written and read strictly. Called by base/log_secrets.c, wire/ws.c, config/credentials.c,
 * cmd/payload.c, and parts of bus/, mcp/ and rockbot/; for JWTs, OAuth and passwords by wire/jwt.c
 * and parts of io/ and hub/. */
#include "base/base64.h"

struct alphabet {
    const char *digits;
    bool padded;
};
static const struct alphabet standard = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true};
static const struct alphabet for_urls = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false};

static void encode(struct buf *out, const struct alphabet *a, struct span bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    char *to = buf_room(out, (bytes.n + 2) / 3 * 4), *start = to;

    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t left = bytes.n - i;
        unsigned b = left > 1 ? p[i + 1] : 0, c = left > 2 ? p[i + 2] : 0;
        *to++ = a->digits[p[i] >> 2];
        *to++ = a->digits[(p[i] & 3u) << 4 | b >> 4];
        if (left > 1 || a->padded)
            *to++ = left > 1 ? a->digits[(b & 15u) << 2 | c >> 6] : '=';
        if (left > 2 || a->padded)
            *to++ = left > 2 ? a->digits[c & 63u] : '=';
    }
    out->n += (size_t)(to - start);
}

void base64_put(struct buf *out, struct span bytes)
{
    encode(out, &standard, bytes);
}

void base64_put_url(struct buf *out, struct span bytes)
{
    encode(out, &for_urls, bytes);
}

/* Decodes one group of 2 to 4 digits, without padding; returns the number of bytes, or a negative
 * code. */
static int read_group(const struct alphabet *a, struct span group, char *to)
{
    unsigned bits = 0;

    if (group.n < 2)
        return ERR_SYNTAX;
    for (size_t i = 0; i < 4; i++) {
        const char *at = i < group.n && group.p[i] ? strchr(a->digits, group.p[i]) : a->digits;
        if (!at || (i < group.n && !group.p[i]))
            return ERR_SYNTAX;
        bits = bits << 6 | (unsigned)(at - a->digits);
    }
    if (bits & ((1u << (8 * (4 - group.n))) - 1)) /* stray bits */
        return ERR_SYNTAX;
    for (size_t i = 0; i + 1 < group.n; i++)
        to[i] = (char)(bits >> (16 - 8 * i) & 0xff);
    return (int)group.n - 1;
}

static int decode(struct buf *out, const struct alphabet *a, struct span text)
{
    char *to = buf_room(out, text.n / 4 * 3 + 3);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i += 4) {
        int got = read_group(a, span_cut(text, i, 4), to + n);
        if (got < 0)
            return got;
        n += (size_t)got;
    }
    out->n += n;
    return 0;
}

int base64_read(struct buf *out, struct span text)
{
    if (text.n % 4)
        return ERR_SYNTAX;
    for (int pad = 0; pad < 2 && text.n && text.p[text.n - 1] == '='; pad++)
        text.n--;
    return decode(out, &standard, text);
}

int base64_read_url(struct buf *out, struct span text)
{
    return decode(out, &for_urls, text);
}
