#include "certs.h"

#include "base/library.h"
#include "io/listen.h"
#include "io/tls.h"
#include "io/ws.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

enum { HOUR = 3600, DAY = 24 * HOUR };

/* Used by all tests: an authority that the clients trust, and the certificates. */
static struct {
    char dir[64];
    struct identity ca, other_ca, good, expired, early, foreign, self;
} w;

static int set_up(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(library_load(LIBRARY_TLS, &err), 0); /* the tests also call OpenSSL directly */
    snprintf(w.dir, sizeof w.dir, "/tmp/rialto-tls-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    const char *here = "DNS:localhost,DNS:*.example.test,IP:127.0.0.1";
    struct cert_spec ca = {"ca", NULL, -HOUR, DAY, NULL};
    identity_init(&w.ca, w.dir, &ca);
    ca.name = "other-ca";
    identity_init(&w.other_ca, w.dir, &ca);
    identity_init(&w.good, w.dir, &(struct cert_spec){"good", here, -HOUR, DAY, &w.ca});
    identity_init(&w.expired, w.dir, &(struct cert_spec){"expired", here, -2 * DAY, -DAY, &w.ca});
    identity_init(&w.early, w.dir, &(struct cert_spec){"early", here, HOUR, DAY, &w.ca});
    identity_init(&w.foreign, w.dir, &(struct cert_spec){"foreign", here, -HOUR, DAY, &w.other_ca});
    identity_init(&w.self, w.dir, &(struct cert_spec){"self", here, -HOUR, DAY, NULL});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct identity *all[] = {&w.ca,    &w.other_ca, &w.good, &w.expired,
                              &w.early, &w.foreign,  &w.self};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        identity_fini(all[i]);
    rmdir(w.dir);
    return 0;
}

static struct tls_context *server_of(const struct identity *id)
{
    struct err err;
    struct tls_context *c = tls_context_server(id->cert_file, id->key_file, &err);
    assert_non_null(c);
    return c;
}

static struct tls_context *client_of(const struct identity *ca)
{
    struct err err;
    struct tls_context *c = tls_context_client(ca->cert_file, &err);
    assert_non_null(c);
    return c;
}

/* --- in memory --- */

struct pair {
    struct tls *client, *server;
    struct buf at_client, at_server; /* what each has read */
    ssize_t client_says, server_says;
};

static void pair_init(struct pair *p, const struct identity *id, const char *host)
{
    struct tls_context *server = server_of(id), *client = client_of(&w.ca);

    *p = (struct pair){.client = tls_new(client, host), .server = tls_new(server, NULL)};
    /* Connections outlive their contexts. */
    tls_context_free(server);
    tls_context_free(client);
}

static void pair_fini(struct pair *p)
{
    tls_free(p->client);
    tls_free(p->server);
    buf_fini(&p->at_client);
    buf_fini(&p->at_server);
}

static ssize_t carry(struct tls *from, struct tls *to, struct buf *got, size_t step)
{
    struct buf bytes = {0};
    char room[70000];
    ssize_t n = TLS_MORE;

    tls_take_output(from, &bytes);
    for (size_t at = 0; at < bytes.n; at += step) {
        tls_feed(to, span_cut(buf_view(&bytes), at, step));
        while ((n = tls_read(to, room, sizeof room)) > 0)
            buf_bytes(got, room, (size_t)n);
    }
    buf_fini(&bytes);
    return n;
}

/* Carries bytes both ways until neither side has more. */
static void pair_run(struct pair *p, size_t step)
{
    for (int i = 0; i < 8; i++) {
        ssize_t n = carry(p->client, p->server, &p->at_server, step);
        p->server_says = n ? n : p->server_says;
        n = carry(p->server, p->client, &p->at_client, step);
        p->client_says = n ? n : p->client_says;
    }
}

static void test_handshake_and_data(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "LOCALHOST", "a.example.test", "127.0.0.1"};

    for (size_t i = 0; i < 4; i++) {
        /* Also byte by byte, so that every incomplete state of a record occurs. */
        for (size_t step = 1; step <= 100000; step += 99999) {
            struct pair p;
            pair_init(&p, &w.good, hosts[i]);
            assert_int_equal(tls_write(p.client, SPAN("too early")), 0);
            pair_run(&p, step);
            assert_true(tls_is_ready(p.client) && tls_is_ready(p.server));
            assert_int_equal(tls_write(p.client, SPAN("hello")), 5);
            assert_int_equal(tls_write(p.server, SPAN("welcome")), 7);
            pair_run(&p, step);
            assert_true(span_is(buf_view(&p.at_server), "hello"));
            assert_true(span_is(buf_view(&p.at_client), "welcome"));
            /* One side has ended, the other may still send. */
            tls_end(p.client);
            pair_run(&p, step);
            assert_int_equal(p.server_says, TLS_END);
            assert_int_equal(tls_write(p.server, SPAN(" back")), 5);
            pair_run(&p, step);
            assert_true(span_is(buf_view(&p.at_client), "welcome back"));
            assert_int_equal(p.client_says, 0);
            pair_fini(&p);
        }
    }
}

static void test_large_data(void **state)
{
    (void)state;
    struct pair p;
    pair_init(&p, &w.good, "localhost");
    pair_run(&p, 5000);
    struct buf much = {0};
    for (int i = 0; i < 60000; i++)
        buf_printf(&much, "%d,", i);
    assert_int_equal(tls_write(p.client, buf_view(&much)), much.n);
    pair_run(&p, 4999);
    assert_true(span_eq(buf_view(&p.at_server), buf_view(&much)));
    buf_fini(&much);
    pair_fini(&p);
}

static void test_bad_certificates(void **state)
{
    (void)state;
    const struct {
        const struct identity *id;
        const char *host, *why;
    } rows[] = {
        {&w.expired, "localhost", "certificate has expired"},
        {&w.early, "localhost", "not valid yet"},
        {&w.foreign, "localhost", "unknown authority"},
        {&w.self, "localhost", "signed by itself"},
        {&w.good, "example.test", "hostname does not match"},
        {&w.good, "a.b.example.test", "hostname does not match"},
        {&w.good, "localhost.evil.test", "hostname does not match"},
        {&w.good, "127.0.0.2", "address does not match"},
        {&w.good, "::1", "address does not match"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pair p;
        pair_init(&p, rows[i].id, rows[i].host);
        pair_run(&p, 100000);
        assert_int_equal(p.client_says, TLS_BROKEN);
        if (!strstr(tls_why(p.client), rows[i].why))
            fail_msg("row %zu: %s", i, tls_why(p.client));
        /* The server gets the error, and nothing is sent any more. */
        assert_int_equal(p.server_says, TLS_BROKEN);
        assert_int_equal(tls_write(p.client, SPAN("secret")), 0);
        pair_fini(&p);
    }
}

static void test_peers_that_speak_something_else(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool http;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", true},
        {"POST /mcp HTTP/1.1\r\n\r\n", true},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n", false},
        {"\x16\x03\x01\xff\xff garbage that is no hello at all", false},
        {"\x80\x2e\x01\x03\x01 a hello in the form of SSL 2, which nobody sends any more", false},
    };
    struct tls_context *server = server_of(&w.good), *client = client_of(&w.ca);
    char room[100];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tls *t = tls_new(server, NULL);
        tls_feed(t, span_str(rows[i].bytes));
        assert_int_equal(tls_read(t, room, sizeof room), TLS_BROKEN);
        assert_true(tls_is_plain_http(t) == rows[i].http);
        assert_true(strncmp(tls_why(t), "TLS: ", 5) == 0);
        assert_false(tls_is_ready(t));
        tls_free(t);
    }
    struct tls *t = tls_new(client, "localhost");
    tls_feed(t, SPAN("HTTP/1.1 400 Bad Request\r\n\r\n"));
    assert_int_equal(tls_read(t, room, sizeof room), TLS_BROKEN);
    assert_non_null(strstr(tls_why(t), "does not speak TLS"));
    tls_free(t);
    tls_context_free(server);
    tls_context_free(client);
}

/* A client with the TLS version and ALPN protocols that the test chooses. */
static const char *try_client(int version, const char *alpn, struct buf *chosen)
{
    struct tls_context *server = server_of(&w.good);
    struct tls *t = tls_new(server, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    static char why[256];
    char bytes[16384];

    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    for (int i = 0; i < 6; i++) {
        struct buf back = {0};
        SSL_do_handshake(ssl);
        int n = BIO_read(out, bytes, sizeof bytes);
        if (n > 0)
            tls_feed(t, span_of(bytes, (size_t)n));
        (void)tls_read(t, bytes, sizeof bytes);
        tls_take_output(t, &back);
        BIO_write(in, back.p, (int)back.n);
        buf_fini(&back);
    }
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(ssl, &name, &len);
    buf_bytes(chosen, name, len);
    snprintf(why, sizeof why, "%s", tls_is_ready(t) ? "ready" : tls_why(t));
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    tls_free(t);
    tls_context_free(server);
    return why;
}

static void test_versions_and_protocols(void **state)
{
    (void)state;
    struct buf chosen = {0};
    assert_string_equal(try_client(TLS1_3_VERSION, "\x02h2\x08http/1.1", &chosen), "ready");
    assert_true(span_is(buf_view(&chosen), "http/1.1"));
    chosen.n = 0;
    assert_string_equal(try_client(TLS1_2_VERSION, "", &chosen), "ready");
    assert_int_equal(chosen.n, 0);
    assert_non_null(strstr(try_client(TLS1_3_VERSION, "\x02h2", &chosen), "HTTP/1.1"));
    assert_non_null(strstr(try_client(TLS1_1_VERSION, "", &chosen), "too old"));
    buf_fini(&chosen);
}

static void test_files_that_cannot_be_used(void **state)
{
    (void)state;
    struct err err;
    char missing[128], locked[128], text[128];

    snprintf(missing, sizeof missing, "%s/not-there.pem", w.dir);
    snprintf(locked, sizeof locked, "%s/locked.key", w.dir);
    snprintf(text, sizeof text, "%s/text.pem", w.dir);
    FILE *f = fopen(locked, "w");
    PEM_write_PrivateKey(f, w.good.key, EVP_aes_128_cbc(), NULL, 0, NULL, "secret");
    fclose(f);
    f = fopen(text, "w");
    fputs("this is no certificate\n", f);
    fclose(f);
    const struct {
        const char *cert, *key, *file, *why;
    } rows[] = {
        {missing, w.good.key_file, missing, "No such file"},
        {w.good.cert_file, missing, missing, "No such file"},
        {text, w.good.key_file, text, "PEM"},
        {w.good.cert_file, text, text, "PEM"},
        {w.good.cert_file, w.self.key_file, w.self.key_file, "does not belong"},
        {w.good.cert_file, locked, locked, "passphrase"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_null(tls_context_server(rows[i].cert, rows[i].key, &err));
        if (!strstr(err.text, rows[i].file) || !strstr(err.text, rows[i].why))
            fail_msg("row %zu: %s", i, err.text);
    }
    assert_null(tls_context_server(text, w.good.key_file, &err));
    assert_non_null(strstr(err.hint, "those between it and its authority"));
    assert_null(tls_context_client(missing, &err));
    assert_non_null(strstr(err.text, missing));
    assert_null(tls_context_client(text, &err));
    /* A failed context leaves no error that makes the next one fail. */
    tls_context_free(server_of(&w.good));
    struct tls_context *system = tls_context_client(NULL, &err);
    assert_non_null(system);
    tls_context_free(system);

    assert_false(tls_key_is_exposed(w.good.key_file));
    chmod(w.good.key_file, 0644);
    assert_true(tls_key_is_exposed(w.good.key_file));
    chmod(w.good.key_file, 0640);
    assert_false(tls_key_is_exposed(w.good.key_file));
    assert_false(tls_key_is_exposed(missing));
    unlink(locked);
    unlink(text);
}

/* --- on streams --- */

struct line {
    struct loop *loop;
    struct party client, server;
};

static const char sorry[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

static void line_init(struct line *x, const struct identity *id, const char *host)
{
    struct tls_context *server = server_of(id), *client = client_of(&w.ca);
    int fds[2];

    x->loop = loop_new();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct stream *a = stream_from_fds(x->loop, fds[0], fds[0], "client");
    struct stream *b = stream_from_fds(x->loop, fds[1], fds[1], "server");
    if (host)
        stream_secure(a, client, host, NULL, 20000);
    stream_secure(b, server, NULL, sorry, host ? 20000 : 300);
    party_join(&x->client, a);
    party_join(&x->server, b);
    tls_context_free(server);
    tls_context_free(client);
}

static void line_fini(struct line *x)
{
    party_leave(&x->client, x->loop);
    party_leave(&x->server, x->loop);
    loop_free(x->loop);
}

static struct buf make_text(int n)
{
    struct buf much = {0};
    for (int i = 0; i < n; i++)
        buf_printf(&much, "%d,", i);
    return much;
}

static void test_stream_both_ways(void **state)
{
    (void)state;
    struct line x;
    struct buf much = make_text(800000), less = make_text(100000);
    line_init(&x, &w.good, "localhost");
    assert_true(stream_is_secure(x.client.stream));
    /* Written before the handshake: the bytes wait. */
    stream_write(x.client.stream, buf_view(&much));
    assert_int_equal(stream_queued(x.client.stream), much.n);
    stream_write(x.server.stream, buf_view(&less));
    WAIT(x.loop, x.server.got.n >= much.n && x.client.got.n >= less.n);
    assert_true(span_eq(buf_view(&x.server.got), buf_view(&much)));
    assert_true(span_eq(buf_view(&x.client.got), buf_view(&less)));
    assert_int_equal(stream_queued(x.client.stream), 0);
    assert_true(x.client.n_drained > 0);
    buf_fini(&much);
    buf_fini(&less);
    line_fini(&x);
}

/* Pauses inside the data callback, while the TLS layer still has more of the record. */
static void pause_at_once(void *owner, struct span chunk)
{
    struct party *p = owner;
    buf_span(&p->got, chunk);
    stream_pause(p->stream);
}

static void test_stream_pause_keeps_what_is_decrypted(void **state)
{
    (void)state;
    static const struct stream_events pausing = {pause_at_once, party_eof, NULL, party_closed};
    struct line x;
    struct buf much = make_text(100000);
    line_init(&x, &w.good, "localhost");
    stream_rebind(x.server.stream, &pausing, &x.server);
    stream_write(x.client.stream, buf_view(&much));
    stream_shutdown(x.client.stream);
    for (int i = 0; i < 2000 && x.server.got.n < much.n; i++) {
        size_t before = x.server.got.n;
        WAIT(x.loop, x.server.got.n > before);
        size_t after = x.server.got.n;
        loop_step(x.loop, 0);
        assert_int_equal(x.server.got.n, after); /* nothing arrives while paused */
        stream_resume(x.server.stream);
    }
    assert_true(span_eq(buf_view(&x.server.got), buf_view(&much)));
    WAIT(x.loop, x.server.n_eof == 1);
    /* Our side may still send after the peer's EOF. */
    stream_write(x.server.stream, SPAN("thanks"));
    stream_finish(x.server.stream, "done", 5000);
    WAIT(x.loop, x.client.n_eof == 1 && x.server.n_closed == 1);
    assert_true(party_has(&x.client, "thanks"));
    assert_string_equal(x.server.reason, "done");
    buf_fini(&much);
    line_fini(&x);
}

static void test_stream_slow_reader_is_cut(void **state)
{
    (void)state;
    struct line x;
    struct buf much = make_text(400000);
    line_init(&x, &w.good, "localhost");
    stream_write(x.client.stream, SPAN("hello"));
    WAIT(x.loop, x.server.got.n == 5);
    stream_pause(x.client.stream);
    stream_set_limit(x.server.stream, 1024 * 1024);
    stream_write(x.server.stream, buf_view(&much));
    WAIT(x.loop, x.server.n_closed == 1);
    assert_string_equal(x.server.reason, "reader too slow");
    buf_fini(&much);
    line_fini(&x);
}

/* Each key update that a client requests is answered. A client that did not read the answers made
 * us buffer all of them. */
static void test_stream_asks_for_keys_and_does_not_read(void **state)
{
    (void)state;
    struct tls_context *server = server_of(&w.good);
    SSL_CTX *raw = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(raw);
    struct loop *l = loop_new();
    struct party p;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    struct stream *s = stream_from_fds(l, fds[1], fds[1], "server");
    stream_secure(s, server, NULL, NULL, 20000);
    stream_set_limit(s, 256 * 1024);
    party_join(&p, s);
    SSL_set_fd(ssl, fds[0]);
    SSL_set_connect_state(ssl);
    WAIT(l, SSL_do_handshake(ssl) == 1);
    for (int i = 0; i < 200000 && !p.n_closed; i++) {
        SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
        while (SSL_do_handshake(ssl) != 1 && !p.n_closed)
            loop_step(l, 1);
    }
    WAIT(l, p.n_closed == 1);
    assert_string_equal(p.reason, "reader too slow");
    party_leave(&p, l);
    tls_context_free(server);
    SSL_free(ssl);
    SSL_CTX_free(raw);
    close(fds[0]);
    loop_free(l);
}

static void test_stream_close_says_goodbye(void **state)
{
    (void)state;
    struct line x;
    line_init(&x, &w.good, "localhost");
    stream_write(x.client.stream, SPAN("hello"));
    WAIT(x.loop, x.server.got.n == 5);
    stream_close(x.server.stream, "enough");
    WAIT(x.loop, x.server.n_closed == 1 && x.client.n_eof == 1);
    line_fini(&x);
}

static void test_stream_bad_certificate(void **state)
{
    (void)state;
    struct line x;
    line_init(&x, &w.expired, "localhost");
    stream_write(x.client.stream, SPAN("a secret"));
    WAIT(x.loop, x.client.n_closed == 1 && x.server.n_closed == 1);
    assert_non_null(strstr(x.client.reason, "certificate has expired"));
    assert_non_null(strstr(x.server.reason, "to the peer our certificate has expired"));
    assert_int_equal(x.server.got.n, 0);
    line_fini(&x);
}

static void test_stream_half_open_peer_is_cut(void **state)
{
    (void)state;
    struct line x;
    line_init(&x, &w.good, NULL);
    stream_write(x.client.stream, SPAN("\x16\x03\x01")); /* an incomplete record */
    WAIT(x.loop, x.server.n_closed == 1);
    assert_non_null(strstr(x.server.reason, "did not complete the handshake"));
    line_fini(&x);
}

static void test_stream_answers_plain_http(void **state)
{
    (void)state;
    struct line x;
    line_init(&x, &w.good, NULL);
    stream_write(x.client.stream, SPAN("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    WAIT(x.loop, x.client.n_eof == 1);
    assert_true(span_is(buf_view(&x.client.got), sorry));
    stream_close(x.client.stream, "done");
    WAIT(x.loop, x.server.n_closed == 1);
    assert_non_null(strstr(x.server.reason, "HTTP without TLS"));
    line_fini(&x);
}

static void test_stream_peer_leaves_during_the_handshake(void **state)
{
    (void)state;
    struct line x;
    line_init(&x, &w.good, NULL);
    stream_close(x.client.stream, "gone");
    WAIT(x.loop, x.server.n_closed == 1);
    assert_non_null(strstr(x.server.reason, "during the handshake"));
    line_fini(&x);
}

/* --- the system's authorities --- */

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    (void)owner, (void)req;
    http_respond(x, 404, NULL, SPAN_EMPTY, SPAN_EMPTY);
}

static void on_server_closed(void *arg)
{
    *(bool *)arg = true;
}

struct caller {
    struct ws *ws;
    int refused_with;
    char reason[128];
    bool closed;
};

static void on_message(void *owner, enum ws_opcode op, struct span payload)
{
    (void)owner, (void)op, (void)payload;
}

static void on_ws_closed(void *owner, uint16_t code, const char *reason)
{
    struct caller *c = owner;

    (void)code;
    c->refused_with = ws_refused_with(c->ws);
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    c->closed = true;
}

/* Reading the system's list of authorities blocks the loop for 20 ms, and was done again for each
 * connection to a server. It must be read only once. */
static void test_authorities_of_the_system_are_read_once(void **state)
{
    (void)state;
    static const struct http_server_options options = {.max_body = 10, .max_connections = 10};
    static const struct ws_events events = {NULL, on_message, on_ws_closed};
    struct loop *l = loop_new();
    struct http_server *server = http_server_new(l, &options, on_request, NULL);
    struct err err;
    char list[96], url[96];
    bool closed = false;

    snprintf(list, sizeof list, "%s/list.pem", w.dir);
    assert_int_equal(link(w.ca.cert_file, list), 0);
    setenv("SSL_CERT_FILE", list, 1);
    assert_int_equal(
        http_server_listen_tls(server, "127.0.0.1:0", w.good.cert_file, w.good.key_file, &err), 0);
    snprintf(url, sizeof url, "wss://%s/", http_server_address(server, 0));
    for (int i = 0; i < 2; i++) {
        struct caller c = {0};
        c.ws = ws_connect(l, &(struct ws_target){.url = url}, &(struct ws_options){0}, &events, &c,
                          &err);
        assert_non_null(c.ws);
        WAIT(l, c.closed);
        if (c.refused_with != 404)
            fail_msg("attempt %d: %s", i, c.reason);
        unlink(list);
    }
    unsetenv("SSL_CERT_FILE");
    http_server_close(server, on_server_closed, &closed);
    WAIT(l, closed);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_and_data),
        cmocka_unit_test(test_large_data),
        cmocka_unit_test(test_bad_certificates),
        cmocka_unit_test(test_peers_that_speak_something_else),
        cmocka_unit_test(test_versions_and_protocols),
        cmocka_unit_test(test_files_that_cannot_be_used),
        cmocka_unit_test(test_stream_both_ways),
        cmocka_unit_test(test_stream_pause_keeps_what_is_decrypted),
        cmocka_unit_test(test_stream_slow_reader_is_cut),
        cmocka_unit_test(test_stream_asks_for_keys_and_does_not_read),
        cmocka_unit_test(test_stream_close_says_goodbye),
        cmocka_unit_test(test_stream_bad_certificate),
        cmocka_unit_test(test_stream_half_open_peer_is_cut),
        cmocka_unit_test(test_stream_answers_plain_http),
        cmocka_unit_test(test_stream_peer_leaves_during_the_handshake),
        cmocka_unit_test(test_authorities_of_the_system_are_read_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
