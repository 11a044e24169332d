/* Parses NATS URLs, maps topics and patterns to subjects, and makes the names of streams and
 * consumers. Called by nats.c, nats_link.c, nats_sub.c and nats_request.c. */
#include "bus/nats_words.h"

#include "base/ascii.h"
#include "base/mem.h"

/* --- addresses --- */

/* Percent-decoded; a stray percent sign stands for itself. */
static char *decode(struct span text)
{
    struct buf out = {0};

    for (size_t i = 0; i < text.n; i++) {
        int high = text.p[i] == '%' && i + 2 < text.n ? ascii_hex(text.p[i + 1]) : -1;
        int low = high >= 0 ? ascii_hex(text.p[i + 2]) : -1;
        if (low >= 0) {
            buf_char(&out, (char)(high * 16 + low));
            i += 2;
        } else {
            buf_char(&out, text.p[i]);
        }
    }
    return buf_take(&out);
}

/* "user:password@" in front of the host. */
static struct span take_credentials(struct nats_address *a, struct span host)
{
    size_t at = host.n;

    while (at && host.p[at - 1] != '@') /* the last '@': a password may contain '@' */
        at--;
    if (!at)
        return host;
    struct span both = span_cut(host, 0, at - 1);
    size_t colon = span_find(both, ':');
    if (!a->user) {
        a->user = decode(span_cut(both, 0, colon));
        a->password = colon < both.n ? decode(span_from(both, colon + 1)) : NULL;
    }
    return span_from(host, at);
}

char *nats_host_port(struct span host)
{
    if (host.n && host.p[host.n - 1] == '/')
        host.n--;
    if (!host.n || host.p[0] == ':' || !ascii_is_words(host, ".:-_[]"))
        return NULL;
    /* A port is what stands behind the last colon, unless that is inside of an IPv6 address. */
    size_t end = host.n;
    while (end && ascii_is_digit(host.p[end - 1]))
        end--;
    bool port = end < host.n && end && host.p[end - 1] == ':';
    struct buf target = {0};
    buf_printf(&target, SPAN_FMT "%s", SPAN_ARG(host), port ? "" : ":4222");
    return buf_take(&target);
}

static int add_server(struct nats_address *a, struct span server, struct err *err)
{
    if (span_starts(server, SPAN("tls://")))
        a->secure = true;
    else if (a->n == 0 && !span_starts(server, SPAN("nats://")))
        return err_set(err, ERR_CONFIG,
                       "the address of a NATS server begins with nats:// or tls://");
    if (span_starts(server, SPAN("nats://")) || span_starts(server, SPAN("tls://")))
        server = span_from(server, span_find(server, '/') + 2);

    struct span host = take_credentials(a, server);
    if (a->n == NATS_MAX_SERVERS)
        return err_set(err, ERR_CONFIG, "more than %d NATS servers", NATS_MAX_SERVERS);
    char *target = nats_host_port(host);
    if (!target)
        return err_set(err, ERR_CONFIG, "'" SPAN_FMT "' is not the host of a NATS server",
                       SPAN_ARG(host));
    buf_printf(&a->label, "%s%s", a->n ? ", " : "", target);
    a->servers[a->n++] = target;
    return 0;
}

/* "?tls_first" at the end of a tls:// address, the only query that is allowed. */
static struct span take_query(struct nats_address *a, struct span url)
{
    struct span query = SPAN("?tls_first");
    size_t before = url.n - (url.n < query.n ? url.n : query.n);

    a->tls_first = span_starts(url, SPAN("tls://")) && span_eq(span_from(url, before), query);
    return a->tls_first ? span_cut(url, 0, before) : url;
}

int nats_address_parse(struct nats_address *a, const char *url, struct err *err)
{
    int code = 0;

    *a = (struct nats_address){0};
    struct span rest = take_query(a, span_str(url));
    while (code == 0 && (rest.n || a->n == 0)) {
        size_t comma = span_find(rest, ',');
        code = add_server(a, span_cut(rest, 0, comma), err);
        rest = span_from(rest, comma + 1);
    }
    if (code < 0) {
        err_hint(err, "nats://USER:PASSWORD@HOST:PORT; more servers of the cluster behind commas");
        nats_address_fini(a);
    }
    return code;
}

void nats_address_fini(struct nats_address *a)
{
    for (int i = 0; i < a->n; i++)
        mem_free(a->servers[i]);
    mem_free(a->user);
    mem_free(a->password);
    buf_fini(&a->label);
    *a = (struct nats_address){0};
}

/* --- subjects --- */

bool nats_prefix_is_valid(const char *prefix)
{
    if (!prefix)
        return true;
    struct span p = span_str(prefix);
    bool dot = true; /* no segment may be empty */
    for (size_t i = 0; i < p.n; i++) {
        if (p.p[i] == '.' ? dot : !ascii_is_word(p.p[i], "_-"))
            return false;
        dot = p.p[i] == '.';
    }
    return !dot;
}

void nats_put_subject(struct buf *out, const char *prefix, struct span topic)
{
    if (prefix) {
        buf_str(out, prefix);
        buf_char(out, '.');
    }
    buf_span(out, topic);
}

struct span nats_topic(const char *prefix, struct span subject)
{
    if (!prefix)
        return subject;
    struct span p = span_str(prefix);
    if (!span_starts(subject, p) || subject.n <= p.n || subject.p[p.n] != '.')
        return SPAN_EMPTY;
    return span_from(subject, p.n + 1);
}

static char *subject_of(const char *prefix, struct span topic)
{
    struct buf out = {0};
    nats_put_subject(&out, prefix, topic);
    return buf_take(&out);
}

void nats_plan_init(struct nats_plan *p, const char *prefix, struct span pattern)
{
    size_t hash = 0; /* where the first segment `#` begins */

    *p = (struct nats_plan){0};
    p->rootless = pattern.n && (pattern.p[0] == '*' || pattern.p[0] == '#');
    while (hash < pattern.n && pattern.p[hash] != '#')
        hash += span_find(span_from(pattern, hash), '.') + 1;
    if (hash >= pattern.n) {
        p->subjects[p->n++] = subject_of(prefix, pattern);
        return;
    }
    p->wider = hash + 1 < pattern.n;
    BUF_SCOPED wide = {0};
    buf_span(&wide, span_cut(pattern, 0, hash));
    buf_char(&wide, '>');
    p->subjects[p->n++] = subject_of(prefix, buf_view(&wide));
    /* `#` also matches no segment: `a.#` includes `a`. After a `#` in the middle at least one
     * segment follows. */
    if (!p->wider && hash)
        p->subjects[p->n++] = subject_of(prefix, span_cut(pattern, 0, hash - 1));
}

void nats_plan_fini(struct nats_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        mem_free(p->subjects[i]);
    *p = (struct nats_plan){0};
}

bool nats_is_internal(struct span subject)
{
    return span_starts(subject, SPAN("$")) || span_starts(subject, SPAN("_INBOX."));
}

/* --- JetStream's names --- */

struct span nats_root(const char *prefix, struct span subject)
{
    size_t before = prefix ? strlen(prefix) + 1 : 0;
    size_t first = span_find(span_from(subject, before), '.');
    return span_cut(subject, 0, before + first);
}

static void put_plain(struct buf *out, struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        buf_char(out, ascii_is_word(text.p[i], "-") ? text.p[i] : '_');
}

void nats_put_stream_name(struct buf *out, struct span root)
{
    buf_str(out, "rialto_");
    put_plain(out, root);
}

/* FNV-1a: names must be the same in every process and release, unlike the hashes of base/map. */
static uint32_t hash_on(uint32_t h, const char *text)
{
    for (const char *p = text; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h * 16777619u;
}

void nats_put_consumer_name(struct buf *out, const char *group, const char *subject)
{
    put_plain(out, span_cut(span_str(group), 0, 100));
    buf_printf(out, "_%08x", hash_on(hash_on(2166136261u, group), subject));
}

/*
 * $JS.ACK.STREAM.CONSUMER.DELIVERED.… has nine segments; with a domain and an account behind "ACK"
 * there are eleven or more.
 */
uint64_t nats_delivery_count(struct span ack)
{
    size_t segments = 1;

    if (!span_starts(ack, SPAN("$JS.ACK.")))
        return 0;
    for (size_t i = 0; i < ack.n; i++)
        segments += ack.p[i] == '.';
    size_t skip = segments == 9 ? 4 : segments >= 11 ? 6 : SIZE_MAX;
    if (skip == SIZE_MAX)
        return 0;
    while (skip--)
        ack = span_from(ack, span_find(ack, '.') + 1);
    uint64_t n = 0;
    for (size_t i = 0; i < ack.n && ascii_is_digit(ack.p[i]) && n < 1000000000; i++)
        n = n * 10 + (uint64_t)(ack.p[i] - '0');
    return n;
}
