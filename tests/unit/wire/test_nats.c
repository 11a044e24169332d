/* The NATS codec: the operations read from bytes, however they are cut, and the bytes written. */
#include "replay_nats.h"
#include "replay_unit.h"

enum { PAYLOAD = 1024 };

#define assert_ops(in, expected)   assert_replay(replay_nats, SPAN(in), PAYLOAD, expected)
#define assert_bytes(out, literal) assert_string_equal(buf_cstr(&(out)), literal)

static void test_operations_whatever_the_cuts(void **state)
{
    (void)state;
    assert_ops("PING\r\npong\r\n+OK\r\n-ERR 'Stale Connection'\r\n"
               "MSG a.b 7 5\r\nhello\r\nMSG a 8 _INBOX.x 0\r\n\r\n",
               "PING\nPONG\nOK\nERR Stale Connection\n"
               "MSG sid=7 a.b reply= hello\nMSG sid=8 a reply=_INBOX.x \n");
    /* Line breaks in a payload are part of it. */
    assert_ops("MSG a 1 9\r\nx\r\nPING\r\n\r\nPING\r\n",
               "MSG sid=1 a reply= x\r\nPING\r\n\nPING\n");
    /* Blanks and tabs between the words, any number of them. */
    assert_ops("MSG\ta   1  r \t2\r\nhi\r\n", "MSG sid=1 a reply=r hi\n");
}

static void test_headers(void **state)
{
    (void)state;
    assert_ops("HMSG a 1 r 34 36\r\nNATS/1.0\r\nKey: a b \r\nOther:c:d\r\n\r\nhi\r\n",
               "MSG sid=1 a reply=r [Key=a b] [Other=c:d] hi\n");
    assert_ops("HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", "MSG sid=1 a reply= status=503 \n");
    assert_ops("HMSG a 1 30 30\r\nNATS/1.0 408 Timeout\r\nK: v\r\n\r\n\r\n",
               "MSG sid=1 a reply= status=408 [K=v] \n");
    /* Invalid headers come from other clients: they are no protocol error of the server. */
    assert_ops("HMSG a 1 6 8\r\nHTTP\r\nhi\r\n", "MSG sid=1 a reply= hi\n");
    assert_ops("HMSG a 1 23 23\r\nNATS/1.0\r\n:x\r\ny\r\nz:\r\n\r\n\r\n",
               "MSG sid=1 a reply= [z=] \n");
}

static void test_what_breaks_the_protocol(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n",
        "\r\n",
        "\n",
        "PING\n",
        "MSG a 1\r\n",
        "MSG a b 1\r\n",
        "MSG a 1 -1\r\n",
        "MSG a 1 1x\r\n",
        "MSG a 1 2 3 4\r\n",
        "MSG a 1 2\r\nhi!!",
        "HMSG a 1 2\r\n",
        "HMSG a 1 3 2\r\n",
        "HMSG a 1 2 3 4 5\r\n",
        "MSG a 1 9999999999999999999\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_replay(replay_nats, span_str(bad[i]), PAYLOAD, "protocol error\n");
    assert_ops("PING\r\nMSG a 1 1025\r\n", "PING\ntoo large\n");
}

static void test_a_line_that_does_not_end(void **state)
{
    (void)state;
    struct buf in = {0}, log = {0};
    uint8_t size = 0; /* pieces of 256 */

    buf_str(&in, "INFO ");
    while (in.n <= NATS_MAX_LINE)
        buf_char(&in, 'x');
    replay_nats(&log, buf_view(&in), (struct cuts){.sizes = &size, .n = 1}, PAYLOAD);
    assert_bytes(log, "too large\n");
    buf_fini(&in);
    buf_fini(&log);
}

static void test_what_info_says(void **state)
{
    (void)state;
    assert_ops("INFO {\"max_payload\":1048576,\"headers\":true,\"nonce\":\"aB-_9\","
               "\"connect_urls\":[\"10.0.0.1:4222\"]} \r\n",
               "INFO max=1048576 headers nonce=aB-_9 urls=[\"10.0.0.1:4222\"]\n");
    assert_ops("INFO {\"max_payload\":9999999999,\"tls_required\":true,\"tls_available\":true,"
               "\"ldm\":true,\"headers\":1,\"nonce\":null,\"connect_urls\":{}}\r\n",
               "INFO max=67108864 tls may-tls leaving\n");
    assert_ops(
        "INFO {}\r\nINFO\r\nINFO []\r\nINFO {\"max_payload\":0}\r\nINFO {\"max_payload\":\"1\"}"
        "\r\nINFO {\"max_payload\":1,\"max_payload\":2}\r\n",
        "INFO unreadable\nINFO unreadable\nINFO unreadable\nINFO unreadable\nINFO unreadable\n"
        "INFO unreadable\n");
}

static void stop(void *owner, const struct nats_op *op)
{
    (void)op;
    nats_reader_stop(owner);
}

static void test_nothing_comes_from_a_reader_that_was_stopped(void **state)
{
    (void)state;
    struct nats_reader r;

    nats_reader_init(&r);
    assert_int_equal(nats_reader_feed(&r, SPAN("PING\r\nnonsense\r\n"), stop, &r), 0);
    assert_int_equal(nats_reader_feed(&r, SPAN("nonsense\r\n"), stop, &r), 0);
    nats_reader_fini(&r);
}

static void test_what_a_client_sends(void **state)
{
    (void)state;
    struct buf out = {0}, headers = {0};

    nats_write_connect(&out, SPAN("{}"));
    nats_write_sub(&out, SPAN("a.>"), SPAN_EMPTY, 1);
    nats_write_sub(&out, SPAN("a.*"), SPAN("my group"), 2);
    nats_write_unsub(&out, 1);
    nats_write_pub(&out, SPAN("a"), SPAN_EMPTY, SPAN_EMPTY, SPAN("hi"));
    nats_write_header(&headers, SPAN("bad key"), SPAN("x"));
    nats_headers_end(&headers);
    assert_int_equal(headers.n, 0);
    nats_write_header(&headers, SPAN("K"), SPAN("a\r\nb"));
    nats_headers_end(&headers);
    nats_write_pub(&out, SPAN("a"), SPAN("r"), buf_view(&headers), SPAN("hi"));
    nats_write_ping(&out);
    nats_write_pong(&out);
    assert_bytes(out,
                 "CONNECT {}\r\nSUB a.> 1\r\nSUB a.* my_group 2\r\nUNSUB 1\r\nPUB a 2\r\nhi\r\n"
                 "HPUB a r 21 23\r\nNATS/1.0\r\nK: a  b\r\n\r\nhi\r\nPING\r\nPONG\r\n");
    buf_fini(&out);
    buf_fini(&headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_whatever_the_cuts),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_what_breaks_the_protocol),
        cmocka_unit_test(test_a_line_that_does_not_end),
        cmocka_unit_test(test_what_info_says),
        cmocka_unit_test(test_nothing_comes_from_a_reader_that_was_stopped),
        cmocka_unit_test(test_what_a_client_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
