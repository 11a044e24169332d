/* The client's side of the WebSocket handshake: URL, connecting, TLS, the request and the check of
 * the answer. Called by mcp/server/ws_upstream.c, browser/join.c and cmd/browser_relay.c, and by
 * ws.c while a connection is being made. */
#include "io/ws_conn.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/loop_uv.h"
#include "io/tls.h"

#include <stdio.h>

enum { DIAL_MS = 10 * 1000 };

/* What a client needs only until it is connected. */
struct ws_dial {
    struct connect *connect; /* NULL once there is a stream */
    char *address;
    struct tls_context *tls; /* NULL for ws:// */
    char *host;              /* the name that the certificate must be for */
    struct buf request;
    struct buf answer;
    char key[25];
    char **protocols; /* as offered, NULL-terminated; NULL = none */
};

void ws_dial_free(struct ws_dial *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->protocols && d->protocols[i]; i++)
        mem_free(d->protocols[i]);
    mem_free(d->protocols);
    mem_free(d->address);
    tls_context_free(d->tls);
    mem_free(d->host);
    buf_fini(&d->request);
    buf_fini(&d->answer);
    mem_free(d);
}

static void end_later(struct deferred *d)
{
    ws_finalize(CONTAINER_OF(d, struct ws, later));
}

void ws_dial_cancel(struct ws *w)
{
    w->state = WS_OVER;
    timer_clear(loop_timers(w->loop), &w->timer);
    if (w->stream) {
        stream_close(w->stream, w->reason);
        return;
    }
    stream_connect_cancel(w->dial->connect);
    w->dial->connect = NULL;
    loop_defer(w->loop, &w->later, end_later);
}

/* --- the answer --- */

/* The head of an HTTP answer, parsed line by line. */
struct answer {
    int status;
    bool upgrade, connection;
    struct span accept, protocol;
    bool extensions;
    bool twice; /* a header that must be unique appears twice */
};

static bool lists(struct span list, struct span word)
{
    struct span item;

    while (http_next_item(&list, &item))
        if (span_eq_nocase(item, word))
            return true;
    return false;
}

static void take_once(struct answer *a, struct span *to, struct span value)
{
    a->twice |= to->p != NULL;
    *to = value;
}

static void take_header(struct answer *a, struct span name, struct span value)
{
    if (span_eq_nocase(name, SPAN("upgrade")))
        a->upgrade |= span_eq_nocase(value, SPAN("websocket"));
    else if (span_eq_nocase(name, SPAN("connection")))
        a->connection |= lists(value, SPAN("upgrade"));
    else if (span_eq_nocase(name, SPAN("sec-websocket-accept")))
        take_once(a, &a->accept, value);
    else if (span_eq_nocase(name, SPAN("sec-websocket-protocol")))
        take_once(a, &a->protocol, value);
    else if (span_eq_nocase(name, SPAN("sec-websocket-extensions")))
        a->extensions = true;
}

/* "HTTP/1.1 101 ..."; 0 when the line is no status line. */
static int status_of(struct span line)
{
    uint64_t status;
    bool fine = span_starts(line, SPAN("HTTP/1.")) && line.n >= 12 && line.p[8] == ' ' &&
                ascii_number(span_cut(line, 9, 3), &status) && (line.n == 12 || line.p[12] == ' ');

    return fine ? (int)status : 0;
}

/* `head` is all lines with their CRLF, without the blank line at the end. False: not HTTP. */
static bool read_answer(struct answer *a, struct span head)
{
    for (bool first = true; head.n; first = false) {
        const char *crlf = memmem(head.p, head.n, "\r\n", 2);
        struct span line = span_cut(head, 0, (size_t)(crlf - head.p));
        head = span_from(head, line.n + 2);
        if (first) {
            a->status = status_of(line);
            continue;
        }
        size_t colon = span_find(line, ':');
        if (colon == 0 || colon == line.n || line.p[0] == ' ' || line.p[0] == '\t')
            return false;
        take_header(a, span_cut(line, 0, colon), span_trim(span_from(line, colon + 1)));
    }
    return a->status != 0;
}

static bool was_offered(const struct ws_dial *d, struct span protocol)
{
    for (size_t i = 0; d->protocols && d->protocols[i]; i++)
        if (span_is(protocol, d->protocols[i]))
            return true;
    return false;
}

/* NULL when the answer completes the handshake, else what is wrong with the answer. */
static const char *judge(const struct ws_dial *d, const struct answer *a)
{
    char accept[29];

    ws_key_answer(span_str(d->key), accept);
    if (!a->upgrade || !a->connection)
        return "the answer lacks Upgrade: websocket or Connection: Upgrade";
    if (a->twice || !span_is(a->accept, accept))
        return "the answer does not belong to our handshake (Sec-WebSocket-Accept)";
    if (a->extensions)
        return "the server chose an extension that was not offered";
    if (a->protocol.p && !was_offered(d, a->protocol))
        return "the server chose a subprotocol that was not offered";
    return NULL;
}

static void give_up(struct ws *w, const char *why)
{
    ws_note_end(w, 1006, why);
    ws_dial_cancel(w);
}

static void refused(struct ws *w, int status)
{
    char why[96];

    w->refused_with = status;
    snprintf(why, sizeof why, "the server refused the WebSocket: %d %s", status,
             http_reason(status));
    give_up(w, why);
}

/* The head of the answer is complete; `rest` is the bytes behind the head. */
static void on_answer(struct ws *w, struct span head, struct span rest)
{
    struct answer a = {0};
    struct ws_dial *d = w->dial;

    if (!read_answer(&a, head)) {
        give_up(w, "the server's answer is not HTTP");
        return;
    }
    if (a.status != 101) {
        refused(w, a.status);
        return;
    }
    const char *wrong = judge(d, &a);
    if (wrong) {
        give_up(w, wrong);
        return;
    }
    ws_open(w, rest);
    w->dial = NULL;
    ws_dial_free(d);
    if (w->on->opened)
        w->on->opened(w->owner);
}

void ws_dial_data(struct ws *w, struct span chunk)
{
    struct buf *answer = &w->dial->answer;

    buf_span(answer, chunk);
    const char *end = memmem(answer->p, answer->n, "\r\n\r\n", 4);
    if (end) {
        size_t n = (size_t)(end - answer->p) + 2;
        on_answer(w, span_of(answer->p, n), span_from(buf_view(answer), n + 2));
    } else if (answer->n > HTTP_MAX_HEAD) {
        give_up(w, "the server's answer has no end");
    }
}

/* --- connecting --- */

static void on_connected(void *owner, struct stream *s, int code)
{
    struct ws *w = owner;
    struct ws_dial *d = w->dial;

    d->connect = NULL;
    if (code < 0) {
        char why[300];
        snprintf(why, sizeof why, "cannot connect to %s: %s", d->address, err_name(code));
        ws_note_end(w, 1006, why);
        ws_finalize(w);
        return;
    }
    w->stream = s;
    if (d->tls)
        stream_secure(s, d->tls, d->host, NULL, DIAL_MS);
    stream_start(s, &ws_stream_events, w);
    stream_write(s, buf_view(&d->request));
}

struct url {
    struct span authority, target;
    bool secure, has_port;
};

static bool has_strange_bytes(struct span url)
{
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f || url.p[i] == '#')
            return true;
    return false;
}

static int parse_url(struct url *u, const char *text, struct err *err)
{
    struct span url = span_str(text);
    bool plain = span_eq_nocase(span_cut(url, 0, 5), SPAN("ws://"));

    u->secure = span_eq_nocase(span_cut(url, 0, 6), SPAN("wss://"));
    struct span rest = span_from(url, u->secure ? 6 : 5);
    size_t slash = span_find(rest, '/'), mark = span_find(rest, '?');

    u->authority = span_cut(rest, 0, slash < mark ? slash : mark);
    u->target = span_from(rest, u->authority.n);
    /* A colon starts the port, unless it stands inside of [an IPv6 address]. */
    struct span behind = span_from(u->authority, span_find(u->authority, ']'));
    if (!behind.n)
        behind = u->authority;
    u->has_port = span_find(behind, ':') < behind.n;

    bool user = span_find(u->authority, '@') < u->authority.n;
    if ((plain || u->secure) && u->authority.n && !user && !has_strange_bytes(url))
        return 0;
    err_set(err, ERR_CONFIG, "not the URL of a WebSocket: %s", text);
    err_hint(err, "write ws://HOST:PORT/PATH or wss://HOST:PORT/PATH");
    return ERR_CONFIG;
}

static void write_request(struct ws_dial *d, const struct url *u, struct span headers)
{
    struct buf *out = &d->request;

    buf_str(out, "GET ");
    if (!u->target.n || u->target.p[0] != '/')
        buf_char(out, '/');
    buf_span(out, u->target);
    buf_str(out, " HTTP/1.1\r\n");
    http_put_header(out, "Host", u->authority);
    buf_str(out, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
    http_put_header(out, "Sec-WebSocket-Key", span_str(d->key));
    for (size_t i = 0; d->protocols && d->protocols[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "Sec-WebSocket-Protocol: ", d->protocols[i]);
    if (d->protocols && d->protocols[0])
        buf_str(out, "\r\n");
    buf_span(out, headers);
    buf_str(out, "\r\n");
}

static char **copy_list(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    char **copy = MEM_ARRAY(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = mem_str(list[i]);
    return copy;
}

/* The authorities to trust. Reading the system's list blocks the loop for 20 ms: it is read once
 * for all connections. */
static struct tls_context *find_trust(struct loop *l, const char *ca, struct err *err)
{
    if (ca)
        return tls_context_client(ca, err);
    if (!l->trust)
        l->trust = tls_context_client(NULL, err);
    return l->trust ? tls_context_hold(l->trust) : NULL;
}

struct ws *ws_connect(struct loop *l, const struct ws_target *target,
                      const struct ws_options *options, const struct ws_events *on, void *owner,
                      struct err *err)
{
    struct url u;
    struct address a;
    BUF_SCOPED address = {0};
    struct tls_context *tls = NULL;

    if (parse_url(&u, target->url, err) < 0)
        return NULL;
    buf_span(&address, u.authority);
    if (!u.has_port)
        buf_str(&address, u.secure ? ":443" : ":80");
    if (address_parse(&a, buf_cstr(&address), err) < 0 ||
        (u.secure && !(tls = find_trust(l, target->ca, err))))
        return NULL;
    struct ws *w = ws_new(l, WS_CLIENT, options, on, owner);
    struct ws_dial *d = w->dial = MEM_NEW(struct ws_dial);
    d->address = target->address ? mem_str(target->address) : buf_take(&address);
    d->tls = tls;
    d->host = mem_str(a.host);
    d->protocols = copy_list(target->protocols);
    ws_key_new(d->key);
    write_request(d, &u, target->headers);
    timer_set(loop_timers(l), &w->timer, target->timeout ? target->timeout : DIAL_MS);
    d->connect = stream_connect_within(l, target->reach, d->address, on_connected, w);
    return w;
}
