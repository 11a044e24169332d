/* Encoding a text as an HTTP header value, in base64 where it must be, and strict decoding. Called
 * by param_headers.c, server/http_post.c, agent/modern_http.c and cmd/daemon.c. */
#include "mcp/header_value.h"

#include "base/ascii.h"
#include "base/utf8.h"

#include <openssl/evp.h>

#define PREFIX "=?base64?"
#define SUFFIX "?="

static bool looks_encoded(struct span s)
{
    return s.n >= strlen(PREFIX) + strlen(SUFFIX) && span_starts(s, SPAN(PREFIX)) &&
           span_eq(span_from(s, s.n - strlen(SUFFIX)), SPAN(SUFFIX));
}

static bool goes_as_it_is(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] > 0x7e)
            return false;
    return span_trim(s).n == s.n && !looks_encoded(s);
}

void header_value_put(struct buf *out, struct span text)
{
    if (goes_as_it_is(text)) {
        buf_span(out, text);
        return;
    }
    buf_str(out, PREFIX);
    char *to = buf_room(out, (text.n + 2) / 3 * 4 + 1);
    int n = EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)text.p, (int)text.n);
    out->n += (size_t)n;
    buf_str(out, SUFFIX);
}

/* OpenSSL forgives blanks and misplaced padding; the protocol does not. */
static bool is_strict_base64(struct span s)
{
    size_t padding = 0;

    if (s.n % 4)
        return false;
    while (padding < 2 && padding < s.n && s.p[s.n - 1 - padding] == '=')
        padding++;
    return ascii_is_words(span_cut(s, 0, s.n - padding), "+/");
}

bool header_value_decode(struct span value, struct buf *out)
{
    if (!looks_encoded(value)) {
        buf_span(out, value);
        return true;
    }
    struct span body = span_cut(value, strlen(PREFIX), value.n - strlen(PREFIX) - strlen(SUFFIX));
    if (!is_strict_base64(body))
        return false;
    if (!body.n)
        return true;
    size_t before = out->n, padding = (body.p[body.n - 1] == '=') + (body.p[body.n - 2] == '=');
    unsigned char *to = (unsigned char *)buf_room(out, body.n / 4 * 3 + 1);
    int n = EVP_DecodeBlock(to, (const unsigned char *)body.p, (int)body.n);
    if (n < 0)
        return false;
    out->n += (size_t)n - padding;
    return utf8_valid(span_of(out->p + before, out->n - before));
}
