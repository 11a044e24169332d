/* URLs parsed: a reference resolved on the same host, host and port for people, whether a URL leads
 * to this machine. Called by http_client.c, mcp/server/http_*.c, hub/graph/side_request.c and
 * cmd/doctor/. */
#include "io/http_engine.h"

#include "base/library.h"
#include "base/mem.h"

/* NULL when the text is no URL, or cannot be parsed because libcurl is missing. */
static CURLU *parse(const char *url)
{
    struct err missing;

    if (library_load(LIBRARY_CURL, &missing))
        return NULL;
    CURLU *u = curl_url();
    if (curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK)
        return u;
    curl_url_cleanup(u);
    return NULL;
}

static void release(CURLU *u)
{
    if (u)
        curl_url_cleanup(u);
}

static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
    char *text = NULL, *copy;

    if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
        return mem_str("");
    copy = mem_str(text);
    curl_free(text);
    return copy;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *one = part_of(a, part, CURLU_DEFAULT_PORT), *two = part_of(b, part, CURLU_DEFAULT_PORT);
    bool same = span_eq_nocase(span_str(one), span_str(two));

    mem_free(one);
    mem_free(two);
    return same;
}

static bool is_scheme(CURLU *u, const char *wanted)
{
    char *scheme = part_of(u, CURLUPART_SCHEME, 0);
    bool is = strcmp(scheme, wanted) == 0;

    mem_free(scheme);
    return is;
}

/* From http to https the port may change as well: servers redirect to TLS that way. */
static bool may_go(CURLU *from, CURLU *to)
{
    if (!same_part(from, to, CURLUPART_HOST))
        return false;
    if (is_scheme(from, "http") && is_scheme(to, "https"))
        return true;
    return same_part(from, to, CURLUPART_SCHEME) && same_part(from, to, CURLUPART_PORT);
}

char *http_url_resolve(const char *base, struct span reference)
{
    CURLU *from = parse(base), *to = parse(base);
    char *text = mem_span(reference), *found = NULL;

    /* libcurl resolves a relative URL that is set on a handle with an absolute one. */
    if (from && to && !strpbrk(text, "\r\n") &&
        curl_url_set(to, CURLUPART_URL, text, 0) == CURLUE_OK && may_go(from, to))
        found = part_of(to, CURLUPART_URL, 0);
    release(from);
    release(to);
    mem_free(text);
    return found;
}

char *http_url_host(const char *url)
{
    CURLU *u = parse(url);
    struct buf text = {0};

    if (u) {
        char *host = part_of(u, CURLUPART_HOST, 0);
        char *port = part_of(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        buf_printf(&text, "%s:%s", host, port);
        mem_free(host);
        mem_free(port);
    }
    release(u);
    return buf_take(&text);
}

bool http_url_is_local(const char *url)
{
    CURLU *u = parse(url);
    bool local = false;

    if (u) {
        char *host = part_of(u, CURLUPART_HOST, 0);
        struct span name = span_str(host);
        local = span_eq_nocase(name, SPAN("localhost")) || span_is(name, "[::1]") ||
                span_starts(name, SPAN("127."));
        mem_free(host);
    }
    release(u);
    return local;
}
