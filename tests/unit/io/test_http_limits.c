/* Clients that send errors, are slow, send too much or are many, and closing the server. */
#include "http_site.h"

#include <malloc.h>

/* The server stops reading from a client that pipelines without bound. */
static void test_the_pipeline_is_bounded(void **state)
{
    (void)state;
    enum { N = 200, BODY = 90000 };
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 1);
    for (int i = 0; i < N; i++) {
        struct buf *out = stream_out(c.stream);
        buf_printf(out, "POST /none HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", BODY);
        memset(buf_room(out, BODY), 'x', BODY);
        out->n += BODY;
    }
    stream_wrote(c.stream);
    run_for(site.loop, 200);
    assert_true(stream_queued(c.stream) > N * BODY / 4); /* the rest is in kernel buffers */
    assert_int_equal(site.n_handled, 1);
    http_respond(site.kept[0], 200, "text/plain", SPAN_EMPTY, SPAN("one"));
    WAIT(site.loop, site.n_handled == N + 1);
    WAIT(site.loop, party_count(&c, "HTTP/1.1 204 ") == N);
    party_leave(&c, site.loop);
    site_close(&site);
}

/* The response must not be lost to a TCP reset because the client was still sending. */
static void test_a_large_answer_before_close_arrives(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, "GET /big HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" ECHO("1", "x"));
    WAIT(site.loop, c.n_eof || c.n_closed);
    assert_true(c.got.n > 8000000);
    assert_int_equal(party_count(&c, "HTTP/1.1 200"), 1);
    assert_int_equal(c.n_closed, 0);
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const struct {
        const char *request, *status;
    } cases[] = {
        {"BROKEN\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
        {"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100001\r\n\r\n", "HTTP/1.1 413 "},
        {"POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
         "Content-Length: 100001\r\n\r\n",
         "HTTP/1.1 413 "},
        {"GET / HTTP/3.0\r\nHost: t\r\n\r\n", "HTTP/1.1 505 "},
    };
    struct site site;
    site_open(&site);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct party c;
        party_connect(&c, site.loop, site.address);
        ask(&c, cases[i].request);
        WAIT(site.loop, c.n_eof);
        assert_int_equal(memcmp(c.got.p, cases[i].status, strlen(cases[i].status)), 0);
        assert_true(party_has(&c, "{\"error\":\""));
        assert_true(party_has(&c, "\",\"hint\":\""));
        assert_true(party_has(&c, "Connection: close\r\n"));
        assert_false(party_has(&c, "100 Continue"));
        party_leave(&c, site.loop);
    }
    assert_int_equal(site.n_handled, 0);
    site_close(&site);
}

static void test_too_large_head(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    struct buf request = {0};
    buf_str(&request, "GET / HTTP/1.1\r\nHost: t\r\nX: ");
    while (request.n < 40000)
        buf_char(&request, 'x');
    stream_write(c.stream, buf_view(&request));
    buf_fini(&request);
    WAIT(site.loop, c.n_eof);
    assert_true(party_has(&c, "HTTP/1.1 431 "));
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_slow_heads_and_bodies_and_idlers(void **state)
{
    (void)state;
    enum { SHORT = 80, LONG = 60000 };
    static const struct {
        uint64_t head, body, idle;
        const char *request, *status;
    } cases[] = {
        {SHORT, LONG, LONG, "GET / HT", "HTTP/1.1 408 "},
        {LONG, SHORT, LONG, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nabc",
         "HTTP/1.1 408 "},
        {LONG, LONG, SHORT, "", ""},
        {LONG, LONG, SHORT, GET("/echo"), "HTTP/1.1 200 "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_server_options options = usual;
        options.head_timeout = cases[i].head;
        options.body_timeout = cases[i].body;
        options.idle_timeout = cases[i].idle;
        struct site site;
        struct party c;
        site_open_with(&site, &options);
        party_connect(&c, site.loop, site.address);
        uint64_t start = loop_now(site.loop);
        ask(&c, cases[i].request);
        WAIT_MS(site.loop, c.n_eof || c.n_closed, 5000);
        assert_true(loop_now(site.loop) - start >= SHORT - 10);
        size_t n = strlen(cases[i].status);
        assert_true(n ? c.got.n > n && memcmp(c.got.p, cases[i].status, n) == 0 : c.got.n == 0);
        party_leave(&c, site.loop);
        site_close(&site);
    }
}

/* Single bytes do not extend the head timeout; an exchange that is being handled has no timeout. */
static void test_trickling_is_slow_and_waiting_is_not(void **state)
{
    (void)state;
    struct http_server_options quick = usual;
    quick.head_timeout = quick.body_timeout = quick.idle_timeout = 100;
    struct site site;
    struct party c, waiting;
    site_open_with(&site, &quick);
    party_connect(&waiting, site.loop, site.address);
    ask(&waiting, GET("/late"));
    party_connect(&c, site.loop, site.address);
    for (int i = 0; i < 100 && !c.n_eof; i++) {
        ask(&c, i ? "X: y\r\n" : "GET / HTTP/1.1\r\n");
        run_for(site.loop, 20);
    }
    assert_true(party_has(&c, "HTTP/1.1 408 "));
    run_for(site.loop, 200);
    http_respond(site.kept[0], 200, NULL, SPAN_EMPTY, SPAN("patience"));
    WAIT(site.loop, party_has(&waiting, "patience"));
    party_leave(&c, site.loop);
    party_leave(&waiting, site.loop);
    site_close(&site);
}

static void test_closing_ends_exchanges(void **state)
{
    (void)state;
    struct site site;
    struct party idle, open, streaming;
    site_open(&site);
    party_connect(&idle, site.loop, site.address);
    party_connect(&open, site.loop, site.address);
    ask(&open, GET("/late"));
    WAIT(site.loop, site.n_kept == 1);
    party_connect(&streaming, site.loop, site.address);
    ask(&streaming, GET("/late"));
    WAIT(site.loop, site.n_kept == 2);
    http_stream_begin(site.kept[1], 200, "text/event-stream", SPAN_EMPTY);
    WAIT(site.loop, party_has(&streaming, "\r\n\r\n"));

    http_server_close(site.server, on_site_closed, &site);
    assert_int_equal(site.n_gone, 0); /* `gone` comes from the loop; responses now are dropped */
    buf_str(http_respond_begin(site.kept[0], 200, NULL, SPAN_EMPTY), "too late");
    http_respond_end(site.kept[0]);
    http_stream_write(site.kept[1], SPAN("too late"));
    WAIT(site.loop, site.closed);
    assert_int_equal(site.n_gone, 1); /* not for the exchange whose handler has responded */
    WAIT(site.loop, idle.n_eof && open.n_eof && streaming.n_eof);
    assert_true(party_has(&open, "HTTP/1.1 503 "));
    assert_true(party_has(&streaming, "\r\n\r\n0\r\n\r\n"));
    assert_false(party_has(&open, "too late"));
    assert_false(party_has(&streaming, "too late"));
    party_leave(&idle, site.loop);
    party_leave(&open, site.loop);
    party_leave(&streaming, site.loop);
    loop_free(site.loop);
}

static void test_too_many_connections(void **state)
{
    (void)state;
    struct http_server_options few = usual;
    few.max_connections = 2;
    struct site site;
    struct party c[3];
    site_open_with(&site, &few);
    for (int i = 0; i < 3; i++)
        party_connect(&c[i], site.loop, site.address);
    WAIT(site.loop, c[2].n_eof || c[2].n_closed);
    assert_true(party_has(&c[2], "HTTP/1.1 503 "));
    party_leave(&c[0], site.loop);
    party_leave(&c[2], site.loop);
    run_for(site.loop, 20);
    party_connect(&c[2], site.loop, site.address);
    ask(&c[2], ECHO("2", "ok"));
    WAIT(site.loop, party_has(&c[2], "\r\n\r\nok"));
    party_leave(&c[1], site.loop);
    party_leave(&c[2], site.loop);
    site_close(&site);
}

/* A thousand connections are opened and closed; no memory or descriptor is leaked. */
static void test_a_thousand_connections_leave_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 20, N = 50 };
    struct site site;
    struct party c[N];
    size_t after_first = 0;
    int fds = 0;
    site_open(&site);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            party_connect(&c[i], site.loop, site.address);
            ask(&c[i], i % 3 ? ECHO("5", "hello") : "POST /echo HT");
        }
        for (int i = 0; i < N; i++)
            if (i % 3)
                WAIT(site.loop, party_has(&c[i], "hello"));
        for (int i = 0; i < N; i++)
            party_leave(&c[i], site.loop);
        run_for(site.loop, 5);
        if (round == 0) {
            after_first = mallinfo2().uordblks;
            fds = count_fds();
        }
    }
    assert_int_equal(count_fds(), fds);
    /* The smallest leak would be 30 KiB by now; malloc's free lists take a few KiB. */
    assert_true(mallinfo2().uordblks <= after_first + 16 * 1024);
    site_close(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pipeline_is_bounded),
        cmocka_unit_test(test_a_large_answer_before_close_arrives),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_too_large_head),
        cmocka_unit_test(test_slow_heads_and_bodies_and_idlers),
        cmocka_unit_test(test_trickling_is_slow_and_waiting_is_not),
        cmocka_unit_test(test_closing_ends_exchanges),
        cmocka_unit_test(test_too_many_connections),
        cmocka_unit_test(test_a_thousand_connections_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
