/* Parses amqp:// and amqps:// URLs, and converts messages to and from AMQP properties and headers.
 * Called by amqp.c, and by amqp_channel.c for each message that arrives. */
#include "bus/amqp_inside.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/stamp.h"

#include <stdlib.h>

enum { HEARTBEAT = 30 };

/* --- addresses --- */

/* Percent-decodes a part of a URL; NULL when it is malformed or too long. The caller owns it. */
static char *unescape(struct span part)
{
    BUF_SCOPED out = {0};

    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        if (c == '%') {
            int high = i + 2 < part.n ? ascii_hex(part.p[i + 1]) : -1;
            int low = i + 2 < part.n ? ascii_hex(part.p[i + 2]) : -1;
            c = (char)(high * 16 + low);
            i += 2;
            if (high < 0 || low < 0 || !c)
                return NULL;
        }
        buf_char(&out, c);
    }
    return out.n <= AMQP_WORD ? buf_take(&out) : NULL;
}

static char *unescape_or(struct span part, const char *otherwise)
{
    return part.n ? unescape(part) : mem_str(otherwise);
}

/* "HOST", "HOST:PORT" or "[::1]:PORT" of a broker. */
static int parse_host(struct amqp_address *a, struct span where)
{
    bool bracket = where.n && where.p[0] == '[';
    size_t end = bracket ? span_find(where, ']') + 1 : span_find(where, ':');
    if (end > where.n)
        return ERR_CONFIG;
    struct span host = bracket ? span_cut(where, 1, end - 2) : span_cut(where, 0, end);
    struct span port = span_from(where, end);
    if (port.n && port.p[0] != ':')
        return ERR_CONFIG;
    char *digits = mem_span(port.n > 1 ? span_from(port, 1) : span_str(a->tls ? "5671" : "5672"));
    char *stop;
    unsigned long number = strtoul(digits, &stop, 10);
    struct buf target = {0};

    a->host = mem_span(host.n ? host : SPAN("localhost"));
    buf_printf(&target, strchr(a->host, ':') ? "[%s]:%s" : "%s:%s", a->host, digits);
    a->target = buf_take(&target);
    bool fine = !*stop && ascii_is_digit(digits[0]) && number > 0 && number < 65536;
    mem_free(digits);
    return fine ? 0 : ERR_CONFIG;
}

/* Returns the part of `s` before the first `c`, and removes that part and the `c` from `s`. */
static struct span take_until(struct span *s, char c)
{
    struct span part = span_cut(*s, 0, span_find(*s, c));
    *s = span_from(*s, part.n + 1);
    return part;
}

static int parse_options(struct amqp_address *a, struct span query)
{
    a->heartbeat = HEARTBEAT;
    while (query.n) {
        struct span value = take_until(&query, '&');
        struct span key = take_until(&value, '=');
        if (!span_is(key, "heartbeat"))
            return ERR_CONFIG;
        char *digits = mem_span(value), *stop;
        unsigned long seconds = strtoul(digits, &stop, 10);
        bool fine = value.n && !*stop && seconds >= 1 && seconds <= 3600;
        mem_free(digits);
        if (!fine)
            return ERR_CONFIG;
        a->heartbeat = (uint16_t)seconds;
    }
    return 0;
}

int amqp_address_parse(struct amqp_address *a, const char *url, struct err *err)
{
    struct span rest = span_str(url);
    *a = (struct amqp_address){.tls = span_starts(rest, SPAN("amqps:"))};
    rest = span_from(rest, a->tls ? strlen("amqps://") : strlen("amqp://"));

    struct span place = take_until(&rest, '?');
    struct span authority = take_until(&place, '/');
    struct span login = SPAN_EMPTY;
    for (size_t i = authority.n; i-- > 0;) /* the last '@': people do not escape '@' in passwords */
        if (authority.p[i] == '@') {
            login = span_cut(authority, 0, i);
            authority = span_from(authority, i + 1);
            break;
        }
    struct span user = take_until(&login, ':');
    a->user = unescape_or(user, "guest");
    a->password = user.n ? unescape(login) : mem_str("guest");
    a->vhost = unescape_or(place, "/");
    if (a->password && strcmp(a->password, "guest") != 0) /* RabbitMQ's default, no secret */
        log_add_secret(span_str(a->password));
    int code = parse_host(a, authority);
    if (!code)
        code = parse_options(a, rest);
    if (!code && a->user && a->password && a->vhost)
        return 0;
    amqp_address_fini(a);
    err_set(err, ERR_CONFIG, "the address of the RabbitMQ server is not valid");
    err_hint(err, "amqp://USER:PASSWORD@HOST:5672/VHOST?heartbeat=SECONDS; write %%2F for a slash "
                  "in a name, %%40 for @, %%3A for a colon");
    return ERR_CONFIG;
}

void amqp_address_fini(struct amqp_address *a)
{
    mem_free(a->user);
    if (a->password)
        explicit_bzero(a->password, strlen(a->password));
    mem_free(a->password);
    mem_free(a->vhost);
    mem_free(a->host);
    mem_free(a->target);
    *a = (struct amqp_address){0};
}

/* --- messages --- */

/*
 * RockBot puts "rb-" in front of every header's key, and its own keys begin with "rb-" already: on
 * the wire they have the prefix twice. For these keys we also accept the prefix written once.
 */
static const char *const well_known[] = {
    "rb-content-trust", "rb-tool-provider", "rb-timeout-ms",
    "rb-mcp-server",    "rb-mcp-handback",  "rb-auth-claims",
};

int amqp_write_message(struct buf *out, uint16_t channel, size_t frame_max, struct span exchange,
                       struct span topic, const struct message *m)
{
    struct amqp_header headers[MESSAGE_MAX_HEADERS + 2];
    BUF_SCOPED keys = {0};
    size_t n = 0;

    headers[n++] = (struct amqp_header){SPAN("rb-source"), m->source};
    if (m->destination.n)
        headers[n++] = (struct amqp_header){SPAN("rb-destination"), m->destination};
    size_t total = 0;
    for (size_t i = 0; i < m->n_headers; i++)
        total += 3 + m->headers[i].key.n;
    (void)buf_room(&keys, total + 1); /* so that the spans into `keys` stay valid */
    for (size_t i = 0; i < m->n_headers; i++) {
        size_t at = keys.n;
        buf_str(&keys, "rb-");
        buf_span(&keys, m->headers[i].key);
        headers[n++] = (struct amqp_header){span_of(keys.p + at, keys.n - at), m->headers[i].value};
    }
    const struct amqp_message wire = {
        .exchange = exchange,
        .routing_key = topic,
        .content_type = SPAN("application/json"),
        .correlation_id = m->correlation,
        .reply_to = m->reply_to,
        .message_id = m->id,
        .type = m->type,
        .timestamp = m->sent_ms / 1000,
        .headers = headers,
        .n_headers = n,
        .body = m->body,
    };
    return amqp_put_publish(out, channel, frame_max, &wire);
}

static struct span find_header(const struct amqp_properties *p, struct span key)
{
    for (size_t i = 0; i < p->n_headers; i++)
        if (span_eq(p->headers[i].key, key))
            return p->headers[i].value;
    return SPAN_EMPTY;
}

static void add_header(struct message *m, struct span key, struct span value)
{
    if (m->n_headers < MESSAGE_MAX_HEADERS)
        m->headers[m->n_headers++] = (struct message_header){key, value};
}

static void read_headers(const struct amqp_properties *p, struct message *m)
{
    const struct span own = SPAN("rb-");

    for (size_t i = 0; i < p->n_headers; i++) {
        struct span key = p->headers[i].key;
        if (span_is(key, "rb-source"))
            m->source = p->headers[i].value;
        else if (span_is(key, "rb-destination"))
            m->destination = p->headers[i].value;
        else if (span_starts(key, own) && key.n > own.n)
            add_header(m, span_from(key, own.n), p->headers[i].value);
    }
    for (size_t i = 0; i < COUNT_OF(well_known); i++) {
        struct span once = find_header(p, span_str(well_known[i]));
        if (once.n && !message_header(m, well_known[i]).n)
            add_header(m, span_str(well_known[i]), once);
    }
}

int amqp_take_message(struct span payload, struct message *m, char made_id[ID_TOKEN_SIZE])
{
    struct amqp_properties p;
    int code = amqp_read_properties(payload, &p);
    if (code)
        return code;
    *m = (struct message){
        .id = p.message_id,
        .type = p.type.n ? p.type : SPAN("unknown"),
        .correlation = p.correlation_id,
        .reply_to = p.reply_to,
        .sent_ms =
            p.timestamp && p.timestamp < UINT64_MAX / 1000 ? p.timestamp * 1000 : stamp_now(),
    };
    read_headers(&p, m);
    if (!m->source.n)
        m->source = SPAN("unknown");
    if (!m->id.n) {
        id_token(made_id);
        m->id = span_str(made_id);
    }
    return 0;
}
