/* Requests and responses of every kind, in order. */
#include "http_site.h"

static void test_keep_alive(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    for (int i = 1; i <= 3; i++) {
        ask(&c, ECHO("5", "hello"));
        WAIT(site.loop, party_count(&c, "hello") == i);
    }
    assert_int_equal(party_count(&c, "HTTP/1.1 200 OK\r\n"), 3);
    assert_int_equal(party_count(&c, "Content-Type: text/plain\r\n"), 3);
    assert_int_equal(party_count(&c, "Content-Length: 5\r\n"), 3);
    assert_int_equal(party_count(&c, "X-Extra: yes\r\n"), 3);
    assert_int_equal(party_count(&c, "Connection:"), 0);
    assert_int_equal(c.n_eof, 0);
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_headers_for_whatever_the_answer_is(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/marked") ECHO("5", "hello"));
    WAIT(site.loop, party_has(&c, "hello"));
    assert_true(party_has(&c, "X-Own: 0\r\nX-One: 1\r\nX-Two: 2\r\n"));
    assert_int_equal(party_count(&c, "X-One:"), 1); /* only the first response has it */
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_respond_begin_fills_in_the_length(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/built?x=1") ECHO("2", "ok"));
    WAIT(site.loop, party_has(&c, "\r\n\r\nok"));
    const char *length = memmem(c.got.p, c.got.n, "Content-Length:", 15);
    assert_int_equal(atoi(length + 15), 23);
    assert_true(party_has(&c, "\r\n\r\n{\"target\":\"/built?x=1\"}HTTP/1.1 200 OK\r\n"));
    party_leave(&c, site.loop);
    site_close(&site);
}

/* Three requests in one packet: the second and third wait until the first is answered. */
static void test_pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late") ECHO("3", "two") ECHO("5", "three"));
    WAIT(site.loop, site.n_kept == 1);
    run_for(site.loop, 30);
    assert_int_equal(c.got.n, 0);
    assert_int_equal(site.n_handled, 1);
    http_respond(site.kept[0], 200, "text/plain", SPAN_EMPTY, SPAN("one"));
    assert_int_equal(site.n_handled, 1); /* the next is not handled inside our call */
    WAIT(site.loop, party_has(&c, "three"));
    char *one = memmem(c.got.p, c.got.n, "one", 3), *two = memmem(c.got.p, c.got.n, "two", 3);
    char *three = memmem(c.got.p, c.got.n, "three", 5);
    assert_true(one && two && one < two && two < three);
    party_leave(&c, site.loop);
    site_close(&site);
    assert_int_equal(site.n_gone, 0);
}

static void test_chunked_body(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    const char *parts[] = {"POST /echo HTTP/1.1\r\nHo", "st: t\r\nTransfer-Encoding: chunked\r\n\r",
                           "\n5\r\nhello\r\n", "6\r\n wor", "ld\r\n0\r\n\r\n"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        ask(&c, parts[i]);
        run_for(site.loop, 5);
    }
    WAIT(site.loop, party_has(&c, "\r\n\r\nhello world"));
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_expect_continue(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
            "Content-Length: 5\r\n\r\n");
    WAIT(site.loop, party_has(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
    ask(&c, "hello");
    WAIT(site.loop, party_has(&c, "\r\n\r\nhello"));
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_head_and_204_have_no_body(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, "HEAD /built HTTP/1.1\r\nHost: t\r\n\r\n" GET("/none") ECHO("3", "end"));
    WAIT(site.loop, party_has(&c, "end"));
    assert_int_equal(party_count(&c, "{"), 0);
    assert_int_equal(party_count(&c, "Content-Length:"), 2); /* not for the 204 */
    assert_true(party_has(&c, "\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n"));
    party_leave(&c, site.loop);
    site_close(&site);
}

static void test_connection_close_and_http_1_0(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool closes;
        const char *header;
    } cases[] = {
        {"GET /built HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", true, "Connection: close"},
        {"GET /built HTTP/1.0\r\n\r\n", true, "Connection: close"},
        {"GET /built HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false, "Connection: keep-alive"},
    };
    struct site site;
    site_open(&site);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct party c;
        party_connect(&c, site.loop, site.address);
        ask(&c, cases[i].request);
        WAIT(site.loop, party_has(&c, "{\"target\":\"/built\"}"));
        assert_true(party_has(&c, cases[i].header));
        run_for(site.loop, 30);
        assert_int_equal(c.n_eof, cases[i].closes);
        party_leave(&c, site.loop);
    }
    site_close(&site);
}

static void test_a_client_that_leaves_is_told_once(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 1);
    assert_int_equal(strncmp(http_exchange_peer(site.kept[0]), "127.0.0.1:", 10), 0);
    party_leave(&c, site.loop);
    WAIT(site.loop, site.n_gone == 1);

    /* `gone` is also called in the middle of a stream, but not after a response. */
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 2);
    http_stream_begin(site.kept[1], 200, "text/event-stream", SPAN_EMPTY);
    WAIT(site.loop, party_has(&c, "\r\n\r\n"));
    party_leave(&c, site.loop);
    WAIT(site.loop, site.n_gone == 2);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 3);
    http_respond(site.kept[2], 200, NULL, SPAN_EMPTY, SPAN_EMPTY);
    party_leave(&c, site.loop);
    site_close(&site);
    assert_int_equal(site.n_gone, 2);
}

static void test_streaming(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 1);
    struct http_exchange *x = site.kept[0];
    http_stream_begin(x, 200, "text/event-stream", SPAN("Cache-Control: no-store\r\n"));
    WAIT(site.loop, party_has(&c, "Transfer-Encoding: chunked\r\n\r\n"));
    http_stream_write(x, SPAN("data: 1\n\n"));
    WAIT(site.loop, party_has(&c, "9\r\ndata: 1\n\n\r\n"));
    http_stream_write(x, SPAN_EMPTY); /* must not be taken for the end */
    http_stream_write(x, SPAN("data: 2\n\n"));
    assert_true(http_exchange_queued(x) > 9);
    http_stream_end(x);
    WAIT(site.loop, party_has(&c, "9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
    ask(&c, ECHO("5", "alive"));
    WAIT(site.loop, party_has(&c, "alive"));
    party_leave(&c, site.loop);

    /* HTTP/1.0 has no chunks: the end of the connection ends the body. */
    party_connect(&c, site.loop, site.address);
    ask(&c, "GET /late HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    WAIT(site.loop, site.n_kept == 2);
    http_stream_begin(site.kept[1], 200, "text/plain", SPAN_EMPTY);
    http_stream_write(site.kept[1], SPAN("plain"));
    http_stream_end(site.kept[1]);
    WAIT(site.loop, c.n_eof);
    assert_true(party_has(&c, "Connection: close\r\n\r\nplain"));
    assert_false(party_has(&c, "chunked"));
    party_leave(&c, site.loop);
    site_close(&site);
    assert_int_equal(site.n_gone, 0);
}

static void test_abort(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/abort") GET("/abort"));
    WAIT(site.loop, c.n_eof || c.n_closed);
    assert_int_equal(c.got.n, 0);
    assert_int_equal(site.n_handled, 1);
    party_leave(&c, site.loop);

    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late"));
    WAIT(site.loop, site.n_kept == 1);
    http_stream_begin(site.kept[0], 200, "text/plain", SPAN_EMPTY);
    http_exchange_abort(site.kept[0], "reader too slow");
    WAIT(site.loop, c.n_eof || c.n_closed);
    party_leave(&c, site.loop);
    site_close(&site);
    assert_int_equal(site.n_gone, 0);
}

#define UPGRADE "GET /upgrade HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

static void test_upgrade_with_early_bytes(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, ECHO("2", "hi") UPGRADE "early bytes");
    WAIT(site.loop, site.upgraded.stream);
    assert_string_equal(buf_cstr(&site.early), "early bytes");
    WAIT(site.loop, party_has(&c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                                  "Connection: Upgrade\r\n\r\n"));
    ask(&c, "no HTTP at all");
    WAIT(site.loop, party_has(&site.upgraded, "no HTTP at all"));
    stream_write(site.upgraded.stream, SPAN("nor this"));
    WAIT(site.loop, party_has(&c, "nor this"));

    /* Closing the server does not close a stream that was upgraded. */
    http_server_close(site.server, on_site_closed, &site);
    WAIT(site.loop, site.closed);
    ask(&c, "still here");
    WAIT(site.loop, party_has(&site.upgraded, "still here"));
    party_leave(&c, site.loop);
    WAIT(site.loop, site.upgraded.n_eof == 1);
    party_leave(&site.upgraded, site.loop);
    buf_fini(&site.early);
    loop_free(site.loop);
}

/* An upgrade request that waited for another request, and one that is answered without upgrade. */
static void test_upgrade_from_the_pipeline_and_refused(void **state)
{
    (void)state;
    struct site site;
    struct party c;
    site_open(&site);
    party_connect(&c, site.loop, site.address);
    ask(&c, GET("/late") UPGRADE "early bytes");
    WAIT(site.loop, site.n_kept == 1);
    http_respond(site.kept[0], 200, NULL, SPAN_EMPTY, SPAN_EMPTY);
    WAIT(site.loop, site.upgraded.stream);
    assert_string_equal(buf_cstr(&site.early), "early bytes");
    party_leave(&c, site.loop);
    WAIT(site.loop, site.upgraded.n_eof == 1);
    party_leave(&site.upgraded, site.loop);

    party_connect(&c, site.loop, site.address);
    ask(&c, "GET /late HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    WAIT(site.loop, site.n_kept == 2);
    http_respond(site.kept[1], 426, NULL, SPAN_EMPTY, SPAN_EMPTY);
    ask(&c, ECHO("5", "hello"));
    WAIT(site.loop, party_has(&c, "\r\n\r\nhello"));
    party_leave(&c, site.loop);

    party_connect(&c, site.loop, site.address);
    ask(&c, "GET /late HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    WAIT(site.loop, site.n_kept == 3);
    ask(&c, "meanwhile");
    run_for(site.loop, 20);
    buf_reset(&site.early, 0);
    upgrade(&site, site.kept[2]); /* later, not from the handler */
    assert_string_equal(buf_cstr(&site.early), "meanwhile");
    party_leave(&c, site.loop);
    WAIT(site.loop, site.upgraded.n_eof == 1);
    party_leave(&site.upgraded, site.loop);
    site_close(&site);
}

static void test_many_addresses_one_server(void **state)
{
    (void)state;
    char folder[32], address[64];
    struct site site;
    struct party c;
    struct err err;
    site_open(&site);
    make_folder(folder);
    snprintf(address, sizeof address, "unix:%s/s", folder);
    assert_int_equal(http_server_listen(site.server, address, &err), 0);
    assert_string_equal(http_server_address(site.server, 1), address);
    assert_true(http_server_listen(site.server, site.address, &err) < 0);
    party_connect(&c, site.loop, address);
    ask(&c, ECHO("2", "ok"));
    WAIT(site.loop, party_has(&c, "\r\n\r\nok"));
    party_leave(&c, site.loop);
    site_close(&site);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_headers_for_whatever_the_answer_is),
        cmocka_unit_test(test_respond_begin_fills_in_the_length),
        cmocka_unit_test(test_pipelined_requests_are_answered_in_order),
        cmocka_unit_test(test_chunked_body),
        cmocka_unit_test(test_expect_continue),
        cmocka_unit_test(test_head_and_204_have_no_body),
        cmocka_unit_test(test_connection_close_and_http_1_0),
        cmocka_unit_test(test_a_client_that_leaves_is_told_once),
        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_upgrade_with_early_bytes),
        cmocka_unit_test(test_upgrade_from_the_pipeline_and_refused),
        cmocka_unit_test(test_many_addresses_one_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
