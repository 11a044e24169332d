#include "io/ws.h"

#include "io_test.h"

/* One end of a WebSocket that records its events. */
struct end {
    struct ws *ws;
    struct buf got; /* messages, each "t:" or "b:" and its length, then the bytes */
    int n_messages, n_opened, n_closed;
    uint16_t code;
    int refused_with;
    char reason[160];
    void (*on_message)(struct end *e, enum ws_opcode op, struct span payload);
};

static void end_opened(void *owner)
{
    struct end *e = owner;
    e->n_opened++;
}

static void end_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct end *e = owner;
    e->n_messages++;
    buf_printf(&e->got, "%c:%zu:", op == WS_TEXT ? 't' : 'b', payload.n);
    buf_span(&e->got, payload);
    if (e->on_message)
        e->on_message(e, op, payload);
}

static void end_closed(void *owner, uint16_t code, const char *reason)
{
    struct end *e = owner;
    e->n_closed++;
    e->code = code;
    e->refused_with = ws_refused_with(e->ws);
    snprintf(e->reason, sizeof e->reason, "%s", reason);
    e->ws = NULL;
}

static const struct ws_events end_events = {end_opened, end_message, end_closed};

static void echo(struct end *e, enum ws_opcode op, struct span payload)
{
    ws_send(e->ws, op, payload);
}

/* A server that accepts WebSockets at every path; the newest one is `end`. */
struct site {
    struct loop *loop;
    struct http_server *server;
    char address[64], url[96];
    const char *const *protocols;
    struct ws_options options;
    struct end end;
    bool closed;
};

static void handler(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct site *site = owner;

    buf_fini(&site->end.got);
    site->end = (struct end){.on_message = site->end.on_message};
    site->end.ws =
        ws_accept(site->loop, x, req, site->protocols, &site->options, &end_events, &site->end);
}

static void site_open(struct site *site)
{
    static const struct http_server_options options = {.max_body = 1000,
                                                       .head_timeout = 5000,
                                                       .body_timeout = 5000,
                                                       .idle_timeout = 5000,
                                                       .max_connections = 100};
    struct err err;
    *site = (struct site){
        .loop = loop_new(), .options = {.max_message = 4000000}, .end.on_message = echo};
    site->server = http_server_new(site->loop, &options, handler, site);
    assert_int_equal(http_server_listen(site->server, "127.0.0.1:0", &err), 0);
    snprintf(site->address, sizeof site->address, "%s", http_server_address(site->server, 0));
    snprintf(site->url, sizeof site->url, "ws://%s/some/path?x=1", site->address);
}

static void on_site_closed(void *arg)
{
    ((struct site *)arg)->closed = true;
}

static void site_close(struct site *site)
{
    if (site->end.ws)
        ws_abort(site->end.ws, "test over");
    http_server_close(site->server, on_site_closed, site);
    WAIT(site->loop, site->closed && !site->end.ws);
    buf_fini(&site->end.got);
    loop_free(site->loop);
}

static void dial(struct end *e, struct loop *l, const char *url, const char *const *protocols)
{
    struct err err;
    *e = (struct end){0};
    e->ws = ws_connect(l, &(struct ws_target){.url = url, .protocols = protocols, .timeout = 2000},
                       &(struct ws_options){.max_message = 4000000}, &end_events, e, &err);
    assert_non_null(e->ws);
}

static void end_connect(struct end *e, struct site *site)
{
    dial(e, site->loop, site->url, NULL);
    WAIT(site->loop, e->n_opened == 1 && site->end.ws);
}

static void end_leave(struct end *e, struct loop *l)
{
    if (e->ws)
        ws_abort(e->ws, "test over");
    WAIT(l, !e->ws);
    buf_fini(&e->got);
}

#define HEAD_LINES                                                                                 \
    "Host: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"                         \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define HANDSHAKE "GET / HTTP/1.1\r\n" HEAD_LINES "\r\n"

/* A client whose frames the test writes byte by byte. */
static void raw_connect(struct party *c, struct site *site)
{
    party_connect(c, site->loop, site->address);
    stream_write(c->stream, SPAN(HANDSHAKE));
    WAIT(site->loop, party_has(c, "\r\n\r\n") && site->end.ws);
    c->got.n = 0;
}

static void raw_frame(struct party *c, enum ws_opcode op, struct span payload)
{
    ws_frame_put(stream_out(c->stream), WS_CLIENT, op, payload);
    stream_wrote(c->stream);
}

static const size_t sizes[] = {0, 1, 125, 126, 1000, 65535, 65536, 3000000};

static struct span filler(struct buf *b, size_t n)
{
    b->n = 0;
    if (n)
        memset(buf_room(b, n), 'x', n);
    b->n = n;
    return buf_view(b);
}

static void test_messages_of_every_size_come_back(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    struct buf big = {0};
    site_open(&site);
    end_connect(&c, &site);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        enum ws_opcode op = i % 2 ? WS_BINARY : WS_TEXT;
        int before = c.n_messages;
        c.got.n = 0;
        ws_send(c.ws, op, filler(&big, sizes[i]));
        WAIT(site.loop, c.n_messages == before + 1);
        assert_int_equal(c.got.p[0], op == WS_TEXT ? 't' : 'b');
        assert_true(c.got.n > sizes[i]);
        assert_int_equal(atoi(c.got.p + 2), (int)sizes[i]);
        if (sizes[i])
            assert_memory_equal(c.got.p + c.got.n - sizes[i], big.p, sizes[i]);
    }
    buf_fini(&big);
    end_leave(&c, site.loop);
    site_close(&site);
}

static void reply_in_place(struct end *e, enum ws_opcode op, struct span payload)
{
    buf_span(ws_begin(e->ws), payload);
    ws_end(e->ws, op);
}

/* Messages written directly into the output buffer, by a client (masked) and by a server; several
 * in one turn. */
static void test_messages_written_in_place(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    struct buf big = {0}, expected = {0};
    site_open(&site);
    site.end.on_message = reply_in_place;
    end_connect(&c, &site);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct span payload = filler(&big, sizes[i]);
        buf_printf(&expected, "t:%zu:", payload.n);
        buf_span(&expected, payload);
        buf_span(ws_begin(c.ws), payload);
        ws_end(c.ws, WS_TEXT);
    }
    WAIT(site.loop, c.n_messages == (int)COUNT_OF(sizes));
    assert_int_equal(c.got.n, expected.n);
    assert_memory_equal(c.got.p, expected.p, expected.n);
    buf_fini(&expected);
    buf_fini(&big);
    end_leave(&c, site.loop);
    site_close(&site);
}

static void test_handshake_by_the_book(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    stream_write(c.stream, SPAN(HANDSHAKE));
    WAIT(site.loop, party_has(&c, "\r\n\r\n"));
    assert_true(party_has(&c, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_true(party_has(&c, "\r\nUpgrade: websocket\r\n"));
    assert_true(party_has(&c, "\r\nConnection: Upgrade\r\n"));
    /* The example of RFC 6455. */
    assert_true(party_has(&c, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_false(party_has(&c, "Sec-WebSocket-Protocol"));
    party_leave(&c, site.loop);
    WAIT(site.loop, site.end.n_closed == 1);
    assert_int_equal(site.end.code, 1006);
    site_close(&site);
}

static void test_bytes_behind_the_handshake_are_not_lost(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    stream_write(c.stream, SPAN(HANDSHAKE));
    raw_frame(&c, WS_TEXT, SPAN("early bird"));
    raw_frame(&c, WS_PING, SPAN("are you there"));
    WAIT(site.loop, party_has(&c, "\x81\x0a"
                                  "early bird\x8a\x0d"
                                  "are you there"));
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_handshakes_that_are_refused(void **state)
{
    (void)state;
    static const char *const protocols[] = {"one", "two", NULL};
    static const struct {
        const char *request, *answer, *says;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: t\r\n\r\n", "HTTP/1.1 426 ", "Upgrade: websocket\r\n"},
        {"GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 426 ", "hint"},
        {"GET / HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
         "HTTP/1.1 426 ", "hint"},
        {"POST / HTTP/1.1\r\nContent-Length: 0\r\n" HEAD_LINES "\r\n", "HTTP/1.1 426 ", "GET"},
        {"GET / HTTP/1.0\r\n" HEAD_LINES "\r\n", "HTTP/1.1 426 ", "HTTP/1.1"},
        {"GET / HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
         "HTTP/1.1 426 ", "\r\nSec-WebSocket-Version: 13\r\n"},
        {"GET / HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\n\r\n",
         "HTTP/1.1 400 ", "Sec-WebSocket-Key"},
        {"GET / HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcnQ=\r\n\r\n",
         "HTTP/1.1 400 ", "Sec-WebSocket-Key"},
        {"GET / HTTP/1.1\r\nSec-WebSocket-Protocol: three, onetwo\r\n" HEAD_LINES "\r\n",
         "HTTP/1.1 400 ", "one two"},
    };
    struct site site;
    site_open(&site);
    site.protocols = protocols;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct party c;
        party_connect(&c, site.loop, site.address);
        stream_write(c.stream, span_str(rows[i].request));
        WAIT(site.loop, party_has(&c, "}\n"));
        assert_true(party_has(&c, rows[i].answer));
        assert_true(party_has(&c, rows[i].says));
        assert_null(site.end.ws);
        party_leave(&c, site.loop);
    }
    site_close(&site);
}

static void test_subprotocols(void **state)
{
    (void)state;
    static const char *const ours[] = {"new", "old", NULL};
    static const struct {
        const char *offer, *answer;
    } rows[] = {
        {"Sec-WebSocket-Protocol: old, new\r\n", "Sec-WebSocket-Protocol: new\r\n"},
        {"Sec-WebSocket-Protocol: x, old, y\r\n", "Sec-WebSocket-Protocol: old\r\n"},
        {"", "HTTP/1.1 101 "},
    };
    struct site site;
    site_open(&site);
    site.protocols = ours;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct party raw;
        party_connect(&raw, site.loop, site.address);
        buf_printf(stream_out(raw.stream), "GET / HTTP/1.1\r\n%s" HEAD_LINES "\r\n", rows[i].offer);
        stream_wrote(raw.stream);
        WAIT(site.loop, party_has(&raw, "\r\n\r\n"));
        assert_true(party_has(&raw, rows[i].answer));
        assert_int_equal(party_has(&raw, "Sec-WebSocket-Protocol"), *rows[i].offer != '\0');
        party_leave(&raw, site.loop);
        WAIT(site.loop, !site.end.ws);
    }
    struct end c;
    dial(&c, site.loop, site.url, (const char *const[]){"old", "new", NULL});
    WAIT(site.loop, c.n_opened);
    end_leave(&c, site.loop);
    dial(&c, site.loop, site.url, (const char *const[]){"other", NULL});
    WAIT(site.loop, c.n_closed);
    assert_int_equal(c.refused_with, 400);
    assert_int_equal(c.n_opened, 0);
    /* Without a list every offer is accepted and none is chosen; our client accepts that. */
    site.protocols = NULL;
    dial(&c, site.loop, site.url, (const char *const[]){"other", NULL});
    WAIT(site.loop, c.n_opened);
    end_leave(&c, site.loop);
    site_close(&site);
}

static void test_the_client_closes(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    site_open(&site);
    end_connect(&c, &site);
    ws_send(c.ws, WS_TEXT, SPAN("last words"));
    ws_close(c.ws, 4001, "enough");
    ws_close(c.ws, 4002, "twice");
    ws_send(c.ws, WS_TEXT, SPAN("too late"));
    assert_int_equal(c.n_closed, 0); /* the callback comes from the loop */
    WAIT_MS(site.loop, c.n_closed && site.end.n_closed, 2000);
    assert_int_equal(site.end.n_messages, 1);
    assert_int_equal(site.end.code, 4001);
    assert_string_equal(site.end.reason, "enough");
    assert_int_equal(c.code, 4001);
    assert_int_equal(c.n_messages, 0); /* the echo arrived after our close */
    end_leave(&c, site.loop);
    site_close(&site);
}

static void test_the_server_closes(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    site_open(&site);
    end_connect(&c, &site);
    ws_send(site.end.ws, WS_TEXT, SPAN("bye"));
    ws_close(site.end.ws, 1001, "going away");
    WAIT_MS(site.loop, c.n_closed && site.end.n_closed, 2000);
    assert_int_equal(c.n_messages, 1);
    assert_int_equal(c.code, 1001);
    assert_string_equal(c.reason, "going away");
    assert_int_equal(site.end.code, 1001);
    end_leave(&c, site.loop);
    site_close(&site);
}

static void test_a_close_without_code(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    raw_connect(&c, &site);
    raw_frame(&c, WS_CLOSE, SPAN_EMPTY);
    WAIT_MS(site.loop, site.end.n_closed && c.n_eof, 2000);
    assert_int_equal(site.end.code, 1005);
    assert_int_equal(c.got.n, 2);
    assert_memory_equal(c.got.p, "\x88\x00", 2);
    party_leave(&c, site.loop);
    site_close(&site);
}

/* We do not wait for ever for a peer that does not answer our close frame. */
static void test_a_peer_that_ignores_the_close(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    raw_connect(&c, &site);
    ws_close(site.end.ws, 1000, "done");
    WAIT(site.loop, party_has(&c, "\x88\x06\x03\xe8"
                                  "done"));
    raw_frame(&c, WS_TEXT, SPAN("but I am not"));
    run_for(site.loop, 200);
    assert_int_equal(site.end.n_closed, 0);
    WAIT_MS(site.loop, site.end.n_closed, 5000);
    assert_int_equal(site.end.n_messages, 0);
    assert_int_equal(site.end.code, 1000);
    party_leave(&c, site.loop);
    site_close(&site);
}

/*
 * The close frame must be readable although the peer is still sending: a socket closed with unread
 * bytes resets the connection, and the peer would never learn why.
 */
static void test_broken_rules_are_told(void **state)
{
    (void)state;
    struct buf big = {0};
    struct buf huge = {0};
    filler(&big, 1000000);
    ws_frame_put(&huge, WS_CLIENT, WS_TEXT, buf_view(&big));
    const struct {
        struct span bytes;
        const char *answer;
        int code;
    } rows[] = {
        {buf_view(&huge),
         "\x88\x13\x03\xf1"
         "message too large",
         1009},
        {SPAN("\x81\x82"
              "abcd"
              "\x9e\x9d"),
         "\x88\x18\x03\xef"
         "text that is not UTF-8",
         1007},
        {SPAN("\x81\x02"
              "hi"),
         "\x88\x0e\x03\xea"
         "broken frame",
         1002},
        {SPAN("\x83\x80"
              "abcd"),
         "\x88\x0e\x03\xea"
         "broken frame",
         1002},
    };
    struct site site;
    site_open(&site);
    site.options.max_message = 1000;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct party c;
        raw_connect(&c, &site);
        stream_write(c.stream, rows[i].bytes);
        WAIT_MS(site.loop, c.n_eof, 2000);
        assert_int_equal(c.got.n, strlen(rows[i].answer));
        assert_memory_equal(c.got.p, rows[i].answer, c.got.n);
        assert_int_equal(site.end.n_closed, 0);
        party_leave(&c, site.loop);
        WAIT(site.loop, site.end.n_closed);
        assert_int_equal(site.end.code, rows[i].code);
        assert_int_equal(site.end.n_messages, 0);
    }
    buf_fini(&huge);
    buf_fini(&big);
    site_close(&site);
}

static void test_silent_peers_are_given_up(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    site.options.ping_every = 100;
    raw_connect(&c, &site);
    WAIT_MS(site.loop, party_count(&c, "\x89") == 1, 1000);
    assert_memory_equal(c.got.p, "\x89\x00", 2);
    raw_frame(&c, WS_PONG, SPAN_EMPTY); /* resets the count of unanswered pings */
    WAIT_MS(site.loop, party_count(&c, "\x89") == 3, 1000);
    assert_int_equal(site.end.n_closed, 0);
    WAIT_MS(site.loop, site.end.n_closed, 1000);
    assert_int_equal(party_count(&c, "\x89"), 3);
    assert_int_equal(site.end.code, 1006);
    assert_string_equal(site.end.reason, "no answer to pings");
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_pings_are_answered(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    site_open(&site);
    site.options.ping_every = 30;
    end_connect(&c, &site);
    run_for(site.loop, 300);
    assert_int_equal(c.n_closed, 0);
    assert_int_equal(site.end.n_closed, 0);
    end_leave(&c, site.loop);
    site_close(&site);
}

static void test_slow_readers_are_cut(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    struct buf big = {0};
    site_open(&site);
    site.options.queue_limit = 500000;
    raw_connect(&c, &site);
    stream_pause(c.stream);
    filler(&big, 100000);
    for (int i = 0; i < 1000 && !site.end.n_closed; i++) {
        ws_send(site.end.ws, WS_BINARY, buf_view(&big));
        loop_step(site.loop, 0);
    }
    WAIT(site.loop, site.end.n_closed);
    assert_int_equal(site.end.code, 1006);
    assert_string_equal(site.end.reason, "reader too slow");
    buf_fini(&big);
    party_leave(&c, site.loop);
    site_close(&site);
}

static void close_at_once(struct end *e, enum ws_opcode op, struct span payload)
{
    (void)op;
    ws_close(e->ws, 1008, span_is(payload, "bad") ? "bad word" : "no reason");
}

static void abort_at_once(struct end *e, enum ws_opcode op, struct span payload)
{
    (void)op, (void)payload;
    ws_abort(e->ws, "go away");
}

static void test_closing_inside_the_callback(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    site_open(&site);
    site.end.on_message = close_at_once;
    end_connect(&c, &site);
    ws_send(c.ws, WS_TEXT, SPAN("bad"));
    ws_send(c.ws, WS_TEXT, SPAN("more"));
    WAIT(site.loop, c.n_closed && site.end.n_closed);
    assert_int_equal(c.code, 1008);
    assert_string_equal(c.reason, "bad word");
    assert_int_equal(site.end.n_messages, 1);

    site.end.on_message = abort_at_once;
    end_connect(&c, &site);
    ws_send(c.ws, WS_TEXT, SPAN("x"));
    ws_send(c.ws, WS_TEXT, SPAN("more"));
    WAIT(site.loop, c.n_closed && site.end.n_closed);
    assert_int_equal(c.code, 1006);
    assert_int_equal(site.end.n_messages, 1);
    assert_string_equal(site.end.reason, "go away");
    site_close(&site);
}

/* --- a server that answers the handshake with bytes that the test chooses --- */

struct liar {
    struct loop *loop;
    struct listener *listener;
    struct party party;
    const char *answer; /* "$KEY" stands for the right accept key */
};

static void liar_data(void *owner, struct span chunk)
{
    struct liar *liar = owner;
    buf_span(&liar->party.got, chunk);
    const char *key = memmem(liar->party.got.p, liar->party.got.n, "Sec-WebSocket-Key: ", 19);
    if (!key || !party_has(&liar->party, "\r\n\r\n"))
        return;
    char accept[29];
    ws_key_answer(span_of(key + 19, 24), accept);
    const char *mark = strstr(liar->answer, "$KEY");
    struct buf *out = stream_out(liar->party.stream);
    if (mark) {
        buf_bytes(out, liar->answer, (size_t)(mark - liar->answer));
        buf_str(out, accept);
        buf_str(out, mark + 4);
    } else {
        buf_str(out, liar->answer);
    }
    stream_wrote(liar->party.stream);
    liar->party.got.n = 0;
}

static void liar_closed(void *owner, const char *reason)
{
    party_closed(&((struct liar *)owner)->party, reason);
}

static void liar_accept(void *owner, struct stream *s)
{
    static const struct stream_events events = {.data = liar_data, .closed = liar_closed};
    struct liar *liar = owner;
    liar->party.stream = s;
    stream_start(s, &events, liar);
}

#define SWITCHING                                                                                  \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

static void test_the_client_is_strict(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *reason;
        int status;
    } rows[] = {
        {SWITCHING "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", "belong", 0},
        {SWITCHING "\r\n", "belong", 0},
        {SWITCHING "Sec-WebSocket-Accept: $KEY\r\nSec-WebSocket-Accept: x\r\n\r\n", "belong", 0},
        {"HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: $KEY\r\n\r\n", "lacks",
         0},
        {"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: $KEY\r\n\r\n", "lacks", 0},
        {SWITCHING "Sec-WebSocket-Accept: $KEY\r\nSec-WebSocket-Protocol: x\r\n\r\n", "subprotocol",
         0},
        {SWITCHING "Sec-WebSocket-Accept: $KEY\r\n"
                   "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
         "extension", 0},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404 Not Found", 404},
        {"HTTP/1.1 200 OK\r\n\r\n", "200 OK", 200},
        {"HTTP/1.1 401\r\n\r\n", "401", 401},
        {"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP", 0},
        {"HTTP/1.1 101 OK\r\nno colon\r\n\r\n", "not HTTP", 0},
        {"\r\n\r\n", "not HTTP", 0},
        {SWITCHING, "in time", 0},
        {"", "in time", 0},
    };
    struct liar liar = {.loop = loop_new()};
    struct err err;
    liar.listener = listener_open(liar.loop, "127.0.0.1:0", liar_accept, &liar, &err);
    char url[96];
    snprintf(url, sizeof url, "ws://%s", listener_address(liar.listener));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct end c = {0};
        const char *const offer[] = {"mcp", NULL};
        liar.answer = rows[i].answer;
        c.ws = ws_connect(liar.loop,
                          &(struct ws_target){.url = url, .protocols = offer, .timeout = 200},
                          &(struct ws_options){.max_message = 100}, &end_events, &c, &err);
        ws_send(c.ws, WS_TEXT, SPAN("nobody is there yet"));
        WAIT_MS(liar.loop, c.n_closed && !liar.party.stream, 2000);
        assert_int_equal(c.n_opened, 0);
        assert_int_equal(c.code, 1006);
        if (!strstr(c.reason, rows[i].reason))
            fail_msg("row %zu: %s", i, c.reason);
        assert_int_equal(c.refused_with, rows[i].status);
        party_fini(&liar.party);
        liar.party = (struct party){0};
    }
    listener_close(liar.listener);
    loop_free(liar.loop);
}

/* Messages that the server sends directly after its 101 are delivered after `opened`. */
static void test_the_client_gets_early_messages(void **state)
{
    (void)state;
    struct liar liar = {.loop = loop_new()};
    struct err err;
    struct end c;
    liar.listener = listener_open(liar.loop, "127.0.0.1:0", liar_accept, &liar, &err);
    liar.answer = SWITCHING "sec-websocket-accept:$KEY\r\n\r\n\x81\x02hi\x01\x01"
                            "a\x80\x01"
                            "b";
    char url[96];
    snprintf(url, sizeof url, "ws://%s?only=query", listener_address(liar.listener));
    dial(&c, liar.loop, url, NULL);
    WAIT(liar.loop, c.n_messages == 2);
    assert_int_equal(c.n_opened, 1);
    assert_int_equal(c.got.n, 12);
    assert_memory_equal(c.got.p, "t:2:hit:2:ab", 12);
    end_leave(&c, liar.loop);
    WAIT(liar.loop, !liar.party.stream);
    party_fini(&liar.party);
    listener_close(liar.listener);
    loop_free(liar.loop);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    char url[96];
    site_open(&site);
    snprintf(url, sizeof url, "%s", site.url);
    struct loop *l = loop_new();
    site_close(&site);
    dial(&c, l, url, NULL);
    assert_int_equal(c.n_closed, 0);
    WAIT(l, c.n_closed);
    assert_int_equal(c.code, 1006);
    assert_non_null(strstr(c.reason, "cannot connect to 127.0.0.1:"));
    loop_free(l);
}

static void test_a_client_may_change_its_mind(void **state)
{
    (void)state;
    struct site site;
    struct end c;
    site_open(&site);
    for (int turns = 0; turns < 4; turns++) {
        dial(&c, site.loop, site.url, NULL);
        for (int i = 0; i < turns; i++)
            loop_step(site.loop, 0);
        ws_close(c.ws, 1000, "never mind");
        ws_abort(c.ws, "really");
        assert_int_equal(c.n_closed, 0);
        WAIT_MS(site.loop, c.n_closed, 2000);
        assert_int_equal(c.code, 1000);
        assert_int_equal(c.n_closed, 1);
        WAIT_MS(site.loop, !site.end.ws, 4000);
    }
    site_close(&site);
}

static void test_urls(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "http://127.0.0.1:1/", "ws://",     "ws:///path",    "ws://h:x/",  "ws://user@h/", "",
        "ws://h/a b",          "ws://h/#a", "ws://h:70000/", "ws://[::1/", "wss://"};
    struct loop *l = loop_new();
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err err = {0};
        struct end c = {0};
        c.ws = ws_connect(l, &(struct ws_target){.url = wrong[i]},
                          &(struct ws_options){.max_message = 1}, &end_events, &c, &err);
        if (c.ws)
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(err.text[0]);
    }
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_of_every_size_come_back),
        cmocka_unit_test(test_messages_written_in_place),
        cmocka_unit_test(test_handshake_by_the_book),
        cmocka_unit_test(test_bytes_behind_the_handshake_are_not_lost),
        cmocka_unit_test(test_handshakes_that_are_refused),
        cmocka_unit_test(test_subprotocols),
        cmocka_unit_test(test_the_client_closes),
        cmocka_unit_test(test_the_server_closes),
        cmocka_unit_test(test_a_close_without_code),
        cmocka_unit_test(test_a_peer_that_ignores_the_close),
        cmocka_unit_test(test_broken_rules_are_told),
        cmocka_unit_test(test_silent_peers_are_given_up),
        cmocka_unit_test(test_pings_are_answered),
        cmocka_unit_test(test_slow_readers_are_cut),
        cmocka_unit_test(test_closing_inside_the_callback),
        cmocka_unit_test(test_the_client_is_strict),
        cmocka_unit_test(test_the_client_gets_early_messages),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_a_client_may_change_its_mind),
        cmocka_unit_test(test_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
