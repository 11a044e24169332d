/* Names and addresses that connections made for agents may go to. Called by the HTTP client and by
 * stream_connect, before they connect, and by hub/bus_host.c when an agent registers a server. */
#include "io/reach.h"

#include "base/library.h"
#include "base/mem.h"
#include "io/address.h"

#include <curl/curl.h>
#include <stdlib.h>

/* An address as 16 bytes, IPv4 in its IPv6 form. */
struct ip {
    unsigned char bytes[16];
    int port;
};

enum { V4_AT = 12 };

struct network {
    unsigned char bytes[16];
    unsigned bits;
};

#define V4(a, b, bits)                                                                             \
    {                                                                                              \
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b}, 96 + (bits)                              \
    }

static const struct network v4_in_v6 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};

static const struct network loopback[] = {
    V4(127, 0, 8),
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128},
};

/* Addresses of this machine, of private networks, multicast, and reserved ones. */
static const struct network private[] = {
    V4(0, 0, 8),      V4(10, 0, 8),
    V4(100, 64, 10),                    /* carrier-grade NAT */
    V4(127, 0, 8),    V4(169, 254, 16), /* link-local: where clouds keep their metadata */
    V4(172, 16, 12),  V4(192, 0, 24),
    V4(192, 168, 16), V4(198, 18, 15),
    V4(224, 0, 3),                                       /* multicast and all above */
    {{0}, 96},                                           /* ::, ::1, and IPv4-compatible */
    {{0xfc}, 7},      {{0xfe, 0x80}, 9},                 /* link-local and the old site-local */
    {{0xff}, 8},      {{0, 0x64, 0xff, 0x9b, 0, 1}, 48}, /* translated to local IPv4 */
};

/* IPv6 ranges that embed an IPv4 address, which starts at byte `at`. */
static const struct {
    struct network range;
    size_t at;
} translated[] = {
    {{{0, 0x64, 0xff, 0x9b}, 96}, V4_AT},
    {{{0x20, 0x02}, 16}, 2},
};

static bool in_range(const struct ip *p, const struct network *range)
{
    size_t whole = range->bits / 8, rest = range->bits % 8;

    return memcmp(p->bytes, range->bytes, whole) == 0 &&
           (!rest || (p->bytes[whole] ^ range->bytes[whole]) >> (8 - rest) == 0);
}

static bool in_any(const struct ip *p, const struct network *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (in_range(p, &ranges[i]))
            return true;
    return false;
}

static void set_v4(struct ip *p, const void *four)
{
    unsigned char bytes[4];

    memcpy(bytes, four, sizeof bytes); /* `four` may point into *p */
    memcpy(p->bytes, v4_in_v6.bytes, sizeof p->bytes);
    memcpy(p->bytes + V4_AT, bytes, sizeof bytes);
}

static bool is_public(struct ip p)
{
    for (size_t i = 0; i < COUNT_OF(translated); i++) {
        if (in_range(&p, &translated[i].range)) {
            set_v4(&p, p.bytes + translated[i].at);
            break;
        }
    }
    return !in_any(&p, private, COUNT_OF(private));
}

static bool place_of_text(struct ip *p, const char *ip, int port)
{
    unsigned char four[4];

    p->port = port;
    if (uv_inet_pton(AF_INET, ip, four) == 0) {
        set_v4(p, four);
        return true;
    }
    return uv_inet_pton(AF_INET6, ip, p->bytes) == 0;
}

/* --- entries --- */

struct allowed {
    struct span host; /* without brackets */
    struct span port; /* empty: any */
};

static struct allowed entry_of(const char *text)
{
    struct span whole = span_str(text);
    bool v6 = whole.p[0] == '[';
    size_t colon = v6 ? span_find(whole, ']') + 1 : span_find(whole, ':');

    return (struct allowed){
        .host = v6 ? span_cut(whole, 1, colon - 2) : span_cut(whole, 0, colon),
        .port = colon < whole.n ? span_from(whole, colon + 1) : SPAN_EMPTY,
    };
}

static bool has_port(const struct allowed *e, int port)
{
    int n = 0;

    for (size_t i = 0; i < e->port.n && n <= UINT16_MAX; i++)
        n = n * 10 + (e->port.p[i] - '0');
    return !e->port.n || n == port;
}

static bool names(const struct allowed *e, struct span host)
{
    if (!span_starts(e->host, SPAN("*.")))
        return span_eq_nocase(e->host, host);
    struct span domain = span_from(e->host, 1); /* with its dot */
    return host.n > domain.n && span_eq_nocase(domain, span_from(host, host.n - domain.n));
}

/* Does the operator's entry name exactly this address? */
static bool is_written(const struct allowed *e, const struct ip *p)
{
    struct ip own;
    char ip[64] = "";

    if (span_eq_nocase(e->host, SPAN("localhost")))
        return in_any(p, loopback, COUNT_OF(loopback));
    if (e->host.n < sizeof ip)
        memcpy(ip, e->host.p, e->host.n);
    return place_of_text(&own, ip, p->port) && memcmp(own.bytes, p->bytes, sizeof own.bytes) == 0;
}

bool reach_has_host(const struct reach *r, struct span host, int port)
{
    if (host.n >= 2 && host.p[0] == '[')
        host = span_cut(host, 1, host.n - 2);
    if (r->everywhere)
        return true;
    for (size_t i = 0; i < r->n; i++) {
        struct allowed e = entry_of(r->hosts[i]);
        if (has_port(&e, port) && names(&e, host))
            return true;
    }
    return false;
}

static bool has_place(const struct reach *r, const struct ip *p)
{
    if (r->near || is_public(*p))
        return true;
    for (size_t i = 0; i < r->n; i++) {
        struct allowed e = entry_of(r->hosts[i]);
        if (has_port(&e, p->port) && is_written(&e, p))
            return true;
    }
    return false;
}

bool reach_has_ip(const struct reach *r, const char *ip, int port)
{
    struct ip p;

    return place_of_text(&p, ip, port) && has_place(r, &p);
}

bool reach_has_address(const struct reach *r, const struct sockaddr *sa)
{
    struct ip p = {.port = address_port((const struct sockaddr_storage *)sa)};

    if (sa->sa_family == AF_INET)
        set_v4(&p, &((const struct sockaddr_in *)sa)->sin_addr);
    else if (sa->sa_family == AF_INET6)
        memcpy(p.bytes, &((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof p.bytes);
    else
        return false;
    return has_place(r, &p);
}

bool reach_has_url(const struct reach *r, const char *url)
{
    struct err missing;

    if (library_load(LIBRARY_CURL, &missing))
        return false; /* a URL that cannot be parsed is not allowed */
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    bool has = false;

    if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
        bool secure = span_is(span_str(scheme), "https") || span_is(span_str(scheme), "wss");
        int n = secure ? 443 : 80;
        if (curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK)
            n = (int)strtol(port, NULL, 10); /* libcurl has checked the number */
        has = reach_has_host(r, span_str(host), n);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return has;
}
