/* Encoding a text as an HTTP header value, in base64 where it must be, and strict decoding. Called
 * by param_headers.c, server/http_post.c, agent/modern_http.c and cmd/daemon.c. */
#include "mcp/header_value.h"

#include "base/base64.h"
#include "base/utf8.h"

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
    base64_put(out, text);
    buf_str(out, SUFFIX);
}

bool header_value_decode(struct span value, struct buf *out)
{
    if (!looks_encoded(value)) {
        buf_span(out, value);
        return true;
    }
    struct span body = span_cut(value, strlen(PREFIX), value.n - strlen(PREFIX) - strlen(SUFFIX));
    size_t before = out->n;
    if (base64_read(out, body))
        return false;
    return utf8_valid(span_of(out->p + before, out->n - before));
}
