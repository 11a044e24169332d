/* Parsing of "HOST:PORT" and "unix:PATH"; socket addresses compared and written as text. Called by
 * listen.c, reach.c, service.c, ws_connect.c and the stream_*.c files that deal with sockets. */
#include "io/address.h"

#include "base/ascii.h"
#include "base/span.h"

#include <errno.h>
#include <stdio.h>
#include <sys/un.h>

static int parse_port(struct address *a, struct span digits)
{
    uint64_t port;

    if (digits.n >= sizeof a->digits || !ascii_number(digits, &port) || port > 65535)
        return -EINVAL;
    a->port = (int)port;
    memcpy(a->digits, digits.p, digits.n);
    return 0;
}

static int parse_path(struct address *a, const char *path, struct err *err)
{
    struct sockaddr_un room;

    if (!*path || strlen(path) >= sizeof room.sun_path)
        return err_set(err, -EINVAL, "the path of a Unix socket has 1 to %zu characters: unix:%s",
                       sizeof room.sun_path - 1, path);
    a->path = path;
    return 0;
}

int address_parse(struct address *a, const char *text, struct err *err)
{
    *a = (struct address){0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_path(a, text + 5, err);

    const char *colon = strrchr(text, ':');
    struct span host = {text, colon ? (size_t)(colon - text) : 0};
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = span_cut(host, 1, host.n - 2);
    else if (colon && span_find(host, ':') != host.n)
        colon = NULL; /* an IPv6 address without brackets: where the port begins is unclear */
    if (colon && host.n == 0)
        host = SPAN("127.0.0.1");

    if (!colon || host.n >= sizeof a->host || parse_port(a, span_str(colon + 1)) < 0) {
        err_set(err, -EINVAL, "not an address: %s", text);
        err_hint(err, "write HOST:PORT, [IPV6]:PORT, :PORT or unix:PATH");
        return -EINVAL;
    }
    memcpy(a->host, host.p, host.n);
    return 0;
}

int address_numeric(const struct address *a, struct sockaddr_storage *sa)
{
    if (uv_ip4_addr(a->host, a->port, (struct sockaddr_in *)sa) == 0)
        return 0;
    return uv_ip6_addr(a->host, a->port, (struct sockaddr_in6 *)sa);
}

int address_read(struct sockaddr_storage *sa, const char *text)
{
    struct address parsed;
    struct err err;
    int code = address_parse(&parsed, text, &err);

    return code ? code : address_numeric(&parsed, sa);
}

/* An IPv4 address as an IPv4-mapped IPv6 address (::ffff:0:0/96). */
static void widen(const void *v4, struct in6_addr *out)
{
    *out = (struct in6_addr){.s6_addr[10] = 0xff, .s6_addr[11] = 0xff};
    memcpy(&out->s6_addr[12], v4, sizeof(struct in_addr));
}

bool address_is(const struct sockaddr_storage *sa, struct span host)
{
    struct in6_addr own = ((const struct sockaddr_in6 *)sa)->sin6_addr, given;
    struct in_addr v4;
    char text[INET6_ADDRSTRLEN] = "";
    bool v6 = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

    if (v6)
        host = span_cut(host, 1, host.n - 2);
    if (host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    if (sa->ss_family == AF_INET)
        widen(&((const struct sockaddr_in *)sa)->sin_addr, &own);
    if (v6 ? uv_inet_pton(AF_INET6, text, &given) : uv_inet_pton(AF_INET, text, &v4))
        return false;
    if (!v6)
        widen(&v4, &given);
    return memcmp(&own, &given, sizeof own) == 0;
}

int address_port(const struct sockaddr_storage *sa)
{
    if (sa->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)sa)->sin_port);
    if (sa->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
    return 0;
}

void address_format(const struct sockaddr_storage *sa, char out[ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool v6 = sa->ss_family == AF_INET6;

    if (v6)
        uv_ip6_name((const struct sockaddr_in6 *)sa, host, sizeof host);
    else if (sa->ss_family == AF_INET)
        uv_ip4_name((const struct sockaddr_in *)sa, host, sizeof host);
    snprintf(out, ADDRESS_TEXT_SIZE, v6 ? "[%s]:%d" : "%s:%d", host, address_port(sa));
}
