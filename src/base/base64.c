/* Base64 written and read strictly. Called by base/log_secrets.c, wire/ws.c, config/credentials.c,
 * bus/message.c, bus/nats_login.c, mcp/header_value.c, mcp/agent/seal.c and rockbot/attachments.c.
 */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, struct span bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    char *to = buf_room(out, (bytes.n + 2) / 3 * 4);

    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t left = bytes.n - i;
        unsigned b = left > 1 ? p[i + 1] : 0, c = left > 2 ? p[i + 2] : 0;
        *to++ = digits[p[i] >> 2];
        *to++ = digits[(p[i] & 3u) << 4 | b >> 4];
        *to++ = left > 1 ? digits[(b & 15u) << 2 | c >> 6] : '=';
        *to++ = left > 2 ? digits[c & 63u] : '=';
    }
    out->n += (bytes.n + 2) / 3 * 4;
}

static int value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Decodes one group of four digits; returns the number of bytes, or a negative code. */
static int read_group(const char *p, bool last, char *to)
{
    int pad = !last || p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;
    unsigned bits = 0;

    for (int i = 0; i < 4; i++) {
        int v = i >= 4 - pad ? 0 : value_of(p[i]);
        if (v < 0)
            return ERR_SYNTAX;
        bits = bits << 6 | (unsigned)v;
    }
    if ((pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
        return ERR_SYNTAX;
    for (int i = 0; i < 3 - pad; i++)
        to[i] = (char)(bits >> (16 - 8 * i) & 0xff);
    return 3 - pad;
}

int base64_read(struct buf *out, struct span text)
{
    if (text.n % 4)
        return ERR_SYNTAX;
    char *to = buf_room(out, text.n / 4 * 3);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i += 4) {
        int got = read_group(text.p + i, i + 4 == text.n, to + n);
        if (got < 0)
            return got;
        n += (size_t)got;
    }
    out->n += n;
    return 0;
}
