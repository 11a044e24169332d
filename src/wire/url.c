/* URLs of http and https taken apart and compared. Called by oauth.c, by hub/ for addresses
 * that servers name when somebody signs in, and by cmd/host_setup_plan.c. */
#include "wire/url.h"

#include "base/ascii.h"
#include "wire/host.h"

/* The characters that RFC 3986 lets stand in a URL, and no others. */
static bool is_plain(struct span text)
{
    return ascii_is_words(text, "-._~:/?[]@!$&'()*+,;=%");
}

static bool take_scheme(struct url_parts *u, struct span *rest)
{
    struct span scheme = span_cut(*rest, 0, span_find(*rest, ':'));

    u->secure = span_eq_nocase(scheme, SPAN("https"));
    if (!u->secure && !span_eq_nocase(scheme, SPAN("http")))
        return false;
    *rest = span_from(*rest, scheme.n);
    if (!span_starts(*rest, SPAN("://")))
        return false;
    *rest = span_from(*rest, 3);
    return true;
}

static bool is_v6(struct span host)
{
    bool framed = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

    for (size_t i = 1; framed && i + 1 < host.n; i++)
        framed = ascii_hex(host.p[i]) >= 0 || host.p[i] == ':' || host.p[i] == '.';
    return framed;
}

static bool read_authority(struct url_parts *u, struct span authority)
{
    uint64_t port = u->secure ? 443 : 80;

    u->host = host_name(authority);
    struct span rest = span_from(authority, u->host.n);
    if (rest.n && rest.p[0] != ':')
        return false;
    if (rest.n > 1 && (!ascii_number(span_from(rest, 1), &port) || port < 1 || port > 65535))
        return false;
    u->port = (int)port;
    return is_v6(u->host) || (u->host.n && ascii_is_words(u->host, ".-_"));
}

bool url_read(struct url_parts *out, struct span text)
{
    struct span rest = text;
    size_t n = 0;

    *out = (struct url_parts){0};
    if (text.n > URL_MAX || !is_plain(text) || !take_scheme(out, &rest))
        return false;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    if (!read_authority(out, span_cut(rest, 0, n)))
        return false;
    out->origin = span_cut(text, 0, (size_t)(rest.p + n - text.p));
    rest = span_from(rest, n);
    out->path = span_cut(rest, 0, span_find(rest, '?'));
    out->query = span_from(rest, out->path.n);
    return true;
}

bool url_same_origin(const struct url_parts *a, const struct url_parts *b)
{
    return a->secure == b->secure && a->port == b->port && span_eq_nocase(a->host, b->host);
}

bool url_is_safe(const struct url_parts *u)
{
    return u->secure || host_is_loopback(u->host);
}

void url_put_resource(struct buf *out, const struct url_parts *u)
{
    for (size_t i = 0; i < u->origin.n; i++)
        buf_char(out, ascii_to_lower(u->origin.p[i]));
    if (!span_is(u->path, "/"))
        buf_span(out, u->path);
    buf_span(out, u->query);
}
