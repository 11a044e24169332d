#include "replay_amqp.h"
#include "replay_unit.h"
#include "wire/amqp_put.h"

enum { FRAME = 131072 };

/* A frame built by hand, byte by byte as on the wire. */
static void put_frame(struct buf *out, int kind, unsigned channel, struct span payload)
{
    char head[7] = {(char)kind,
                    (char)(channel >> 8),
                    (char)channel,
                    (char)(payload.n >> 24),
                    (char)(payload.n >> 16),
                    (char)(payload.n >> 8),
                    (char)payload.n};
    buf_bytes(out, head, sizeof head);
    buf_span(out, payload);
    buf_char(out, (char)0xce);
}

#define assert_bytes(out, literal)                                                                 \
    do {                                                                                           \
        assert_int_equal((out)->n, sizeof(literal) - 1);                                           \
        assert_memory_equal((out)->p, literal, sizeof(literal) - 1);                               \
    } while (0)

static void test_frames_whatever_the_cuts(void **state)
{
    (void)state;
    struct buf in = {0};
    put_frame(&in, 8, 0, SPAN_EMPTY);
    put_frame(&in, 3, 7, SPAN("body"));
    put_frame(&in, 1, 513, SPAN("\0\x3c\0\x50\0\0\0\0\0\0\0\x05\x01")); /* basic.ack 5, multiple */
    assert_replay(replay_amqp, buf_view(&in), FRAME,
                  "8 on 0:\n3 on 7: body\n1 on 513: id=21 tag=5 code=0\n");
    buf_fini(&in);
}

static void test_methods_of_a_server(void **state)
{
    (void)state;
    struct buf in = {0};
    /* connection.tune: 2047 channels, 131072 bytes, 60 s */
    struct span tune = SPAN("\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c");
    put_frame(&in, 1, 0, tune);
    /* basic.deliver: consumer "c", tag 9, redelivered, exchange "rockbot", key "a.b" */
    put_frame(&in, 1, 2,
              SPAN("\0\x3c\0\x3c\x01\x63\0\0\0\0\0\0\0\x09\x01\x07rockbot\x03"
                   "a.b"));
    /* channel.close: 406 "NO" by queue.declare */
    put_frame(&in, 1, 2, SPAN("\0\x14\0\x28\x01\x96\x02NO\0\x32\0\x0a"));
    /* basic.return: we never request it */
    put_frame(&in, 1, 2, SPAN("\0\x3c\0\x32"));
    assert_replay(replay_amqp, buf_view(&in), FRAME,
                  "1 on 0: id=2 tag=0 code=0\n1 on 2: id=20 tag=9 code=0 key=a.b\n"
                  "1 on 2: id=10 tag=0 code=406 text=NO\n1 on 2: id=0 tag=0 code=0\n");

    struct amqp_method m;
    assert_int_equal(amqp_read_method(tune, &m), 0);
    assert_int_equal(m.channel_max, 2047);
    assert_int_equal(m.frame_max, 131072);
    assert_int_equal(m.heartbeat, 60);
    buf_fini(&in);
}

static void test_a_method_that_is_too_short(void **state)
{
    (void)state;
    struct span deliver = SPAN("\0\x3c\0\x3c\x01\x63\0\0\0\0\0\0\0\x09\x01\x07rockbot\x03"
                               "a.b");
    for (size_t n = 0; n < deliver.n; n++) {
        struct buf in = {0};
        put_frame(&in, 1, 2, span_cut(deliver, 0, n));
        assert_replay(replay_amqp, buf_view(&in), FRAME, "1 on 2: protocol error\n");
        buf_fini(&in);
    }
}

static void test_another_protocol_is_noticed_at_its_first_byte(void **state)
{
    (void)state;
    assert_replay(replay_amqp, SPAN("A"), FRAME, "protocol error\n");
    assert_replay(replay_amqp, SPAN("HTTP/1.1 400 Bad Request\r\n\r\n"), FRAME, "protocol error\n");
    assert_replay(replay_amqp, SPAN("\x15\x03\x01"), FRAME, "protocol error\n"); /* TLS alert */
}

static void test_the_end_of_a_frame_is_checked(void **state)
{
    (void)state;
    struct buf in = {0};
    put_frame(&in, 3, 1, SPAN("fine"));
    put_frame(&in, 3, 1, SPAN("wrong"));
    in.p[in.n - 1] = 0x0a;
    assert_replay(replay_amqp, buf_view(&in), FRAME, "3 on 1: fine\nprotocol error\n");
    buf_fini(&in);
}

static void test_a_frame_over_the_agreed_size_is_refused_by_its_head(void **state)
{
    (void)state;
    struct buf in = {0};
    put_frame(&in, 3, 1, SPAN("12345678"));
    assert_replay(replay_amqp, buf_view(&in), 16, "3 on 1: 12345678\n");
    assert_replay(replay_amqp, buf_view(&in), 15, "too large\n");
    assert_replay(replay_amqp, SPAN("\x03\0\1\xff\xff\xff\xff"), FRAME, "too large\n");
    buf_fini(&in);
}

static void stop_it(void *owner, const struct amqp_frame *f)
{
    (void)f;
    amqp_reader_stop(owner);
}

static void test_a_stopped_reader_gives_no_more(void **state)
{
    (void)state;
    struct amqp_reader r;
    struct buf in = {0};
    put_frame(&in, 8, 0, SPAN_EMPTY);
    put_frame(&in, 5, 0, SPAN_EMPTY); /* would be an error */
    amqp_reader_init(&r);
    assert_int_equal(amqp_reader_feed(&r, buf_view(&in), stop_it, &r), 0);
    amqp_reader_fini(&r);
    buf_fini(&in);
}

/* --- publishing --- */

static struct amqp_message sample(struct span body)
{
    static const struct amqp_header headers[] = {{SPAN("rb-source"), SPAN("RockBot")},
                                                 {SPAN("rb-rb-timeout-ms"), SPAN("60000")}};
    return (struct amqp_message){
        .exchange = SPAN("rockbot"),
        .routing_key = SPAN("tool.invoke.mcp"),
        .content_type = SPAN("application/json"),
        .message_id = SPAN("8f0c"),
        .type = SPAN("T"),
        .timestamp = 1771400000,
        .headers = headers,
        .n_headers = 2,
        .body = body,
    };
}

static void test_publish_byte_by_byte(void **state)
{
    (void)state;
    struct buf out = {0};
    struct amqp_message m = sample(SPAN("{}"));
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), 0);
    assert_bytes(&out, "\x01\0\x01\0\0\0\x1f\0\x3c\0\x28\0\0\x07rockbot\x0ftool.invoke.mcp\0\xce"
                       "\x02\0\x01\0\0\0\x66\0\x3c\0\0\0\0\0\0\0\0\0\x02\xb6\xe0\x10"
                       "application/json\0\0\0\x31\x09rb-sourceS\0\0\0\x07RockBot"
                       "\x10rb-rb-timeout-msS\0\0\0\x05"
                       "60000\x02\0\0\x04"
                       "8f0c\0\0\0\0\x69\x95\x6b\x40\x01T\xce"
                       "\x03\0\x01\0\0\0\x02{}\xce");
    buf_fini(&out);
}

static void test_empty_correlation_and_reply_to_are_present(void **state)
{
    (void)state;
    struct buf out = {0};
    struct amqp_message m = sample(SPAN_EMPTY);
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), 0);
    /* Flags of the properties: correlation-id is bit 10, reply-to bit 9. */
    size_t at = 8 + 0x1f + 7 + 12;
    unsigned flags = (unsigned)(unsigned char)out.p[at] << 8 | (unsigned char)out.p[at + 1];
    assert_int_equal(flags & (1 << 10 | 1 << 9), 1 << 10 | 1 << 9);
    buf_fini(&out);
}

static void test_what_is_published_can_be_read(void **state)
{
    (void)state;
    struct buf out = {0};
    struct amqp_message m = sample(SPAN("hello"));
    m.correlation_id = SPAN("5b1e");
    m.reply_to = SPAN("tool.result.RockBot");
    assert_int_equal(amqp_put_publish(&out, 3, FRAME, &m), 0);
    assert_replay(replay_amqp, buf_view(&out), FRAME,
                  "1 on 3: id=0 tag=0 code=0\n"
                  "2 on 3: size=5 time=1771400000 content-type=application/json "
                  "correlation-id=5b1e reply-to=tool.result.RockBot message-id=8f0c type=T "
                  "rb-source:RockBot rb-rb-timeout-ms:60000\n"
                  "3 on 3: hello\n");
    buf_fini(&out);
}

static void test_a_body_is_cut_into_frames(void **state)
{
    (void)state;
    struct buf body = {0}, out = {0}, log = {0};
    for (int i = 0; i < 10000; i++)
        buf_char(&body, (char)('a' + i % 26));
    struct amqp_message m = sample(buf_view(&body));
    assert_int_equal(amqp_put_publish(&out, 1, 4096, &m), 0);
    replay_amqp(&log, buf_view(&out), (struct cuts){0}, 4096); /* no frame is larger */
    size_t frames = 0;
    for (size_t i = 0; i + 8 < log.n; i++)
        frames += memcmp(log.p + i, "3 on 1: ", 8) == 0;
    assert_int_equal(frames, 3);
    buf_fini(&body);
    buf_fini(&out);
    buf_fini(&log);
}

static void test_what_does_not_fit_is_refused_whole(void **state)
{
    (void)state;
    struct buf out = {0}, large = {0};
    struct amqp_message m = sample(SPAN("x"));
    for (int i = 0; i < 5000; i++)
        buf_char(&large, 'v');

    struct amqp_header header = {SPAN("rb-tracestate"), buf_view(&large)};
    m.headers = &header;
    m.n_headers = 1;
    assert_int_equal(amqp_put_publish(&out, 1, 4096, &m), ERR_SIZE);
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), 0);
    out.n = 0;
    header = (struct amqp_header){span_cut(buf_view(&large), 0, 256), SPAN("v")};
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), ERR_SIZE);
    m.n_headers = 0;
    m.type = span_cut(buf_view(&large), 0, 255);
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), 0);
    out.n = 0;
    m.type = span_cut(buf_view(&large), 0, 256);
    assert_int_equal(amqp_put_publish(&out, 1, FRAME, &m), ERR_SIZE);
    assert_int_equal(out.n, 0);
    buf_fini(&out);
    buf_fini(&large);
}

/* --- properties from other clients --- */

static void put_header_frame(struct buf *in, struct span table)
{
    struct buf payload = {0};
    buf_bytes(&payload, "\0\x3c\0\0\0\0\0\0\0\0\0\0\x20\0", 14); /* body 0, only headers */
    char n[4] = {0, (char)(table.n >> 16), (char)(table.n >> 8), (char)table.n};
    buf_bytes(&payload, n, 4);
    buf_span(&payload, table);
    put_frame(in, 2, 1, buf_view(&payload));
    buf_fini(&payload);
}

static void test_only_text_headers_are_read(void **state)
{
    (void)state;
    struct buf in = {0};
    put_header_frame(&in, SPAN("\x01iI\0\0\0\x01\x01tt\x01\x01sS\0\0\0\x02ok\x01xx\0\0\0\x01y"
                               "\x01"
                               "aA\0\0\0\x07S\0\0\0\x02no\x01nV"));
    assert_replay(replay_amqp, buf_view(&in), FRAME, "2 on 1: size=0 time=0 s:ok x:y\n");
    buf_fini(&in);
}

/* A header with deeply nested tables fits in one frame, but would exhaust the stack of a recursive
 * reader. Such a message is refused; the connection stays usable. */
static void test_deep_tables_are_refused(void **state)
{
    (void)state;
    for (size_t depth = 1; depth < 2000; depth = depth < 20 ? depth + 1 : depth * 3) {
        struct buf table = {0}, in = {0};
        /* The innermost table is empty; each other has one entry with the key "k". */
        for (size_t i = depth - 1; i > 0; i--) {
            size_t inside = (i - 1) * 7;
            char entry[7] = {1,
                             'k',
                             'F',
                             (char)(inside >> 24),
                             (char)(inside >> 16),
                             (char)(inside >> 8),
                             (char)inside};
            buf_bytes(&table, entry, sizeof entry);
        }
        put_header_frame(&in, buf_view(&table));
        assert_replay(replay_amqp, buf_view(&in), FRAME,
                      depth <= AMQP_DEPTH ? "2 on 1: size=0 time=0\n"
                                          : "2 on 1: nested too deeply\n");
        buf_fini(&table);
        buf_fini(&in);
    }
}

static void test_broken_tables_are_refused(void **state)
{
    (void)state;
    static const struct span broken[] = {
        SPAN("\x05k"),                  /* key past the end */
        SPAN("\x01k"),                  /* no value */
        SPAN("\x01k?"),                 /* unknown kind */
        SPAN("\x01kS\0\0\0\x09"),       /* text past the end */
        SPAN("\x01kI\0\0"),             /* half a number */
        SPAN("\x01kF\xff\xff\xff\xff"), /* table larger than the frame */
    };
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct buf in = {0};
        put_header_frame(&in, broken[i]);
        assert_replay(replay_amqp, buf_view(&in), FRAME, "2 on 1: protocol error\n");
        buf_fini(&in);
    }
    assert_replay(replay_amqp, SPAN("\x02\0\x01\0\0\0\x02\0\x3c\xce"), FRAME,
                  "2 on 1: protocol error\n");
}

/* --- the other methods that a client sends --- */

static void test_handshake_byte_by_byte(void **state)
{
    (void)state;
    struct buf out = {0};
    amqp_put_protocol(&out);
    assert_bytes(&out, "AMQP\0\0\x09\x01");
    out.n = 0;
    amqp_put_tune_ok(&out, 2047, 131072, 30);
    assert_bytes(&out, "\x01\0\0\0\0\0\x0c\0\x0a\0\x1f\x07\xff\0\x02\0\0\0\x1e\xce");
    out.n = 0;
    amqp_put_open(&out, SPAN("/"));
    assert_bytes(&out, "\x01\0\0\0\0\0\x08\0\x0a\0\x28\x01/\0\0\xce");
    out.n = 0;
    amqp_put_beat(&out);
    assert_bytes(&out, "\x08\0\0\0\0\0\0\xce");
    buf_fini(&out);
}

static void test_queue_with_arguments_byte_by_byte(void **state)
{
    (void)state;
    struct buf out = {0};
    const struct amqp_argument arguments[] = {{"x-a", SPAN("dlx"), 0}, {"x-b", SPAN_EMPTY, 258}};
    amqp_put_queue_declare(&out, 2, SPAN("q"), false, arguments, 2);
    assert_bytes(&out, "\x01\0\x02\0\0\0\x26\0\x32\0\x0a\0\0\x01q\x02\0\0\0\x19"
                       "\x03x-aS\0\0\0\x03"
                       "dlx\x03x-bl\0\0\0\0\0\0\x01\x02\xce");
    out.n = 0;
    amqp_put_queue_declare(&out, 2, SPAN("q"), true, arguments, 2);
    assert_bytes(&out, "\x01\0\x02\0\0\0\x0d\0\x32\0\x0a\0\0\x01q\x03\0\0\0\0\xce");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_whatever_the_cuts),
        cmocka_unit_test(test_methods_of_a_server),
        cmocka_unit_test(test_a_method_that_is_too_short),
        cmocka_unit_test(test_another_protocol_is_noticed_at_its_first_byte),
        cmocka_unit_test(test_the_end_of_a_frame_is_checked),
        cmocka_unit_test(test_a_frame_over_the_agreed_size_is_refused_by_its_head),
        cmocka_unit_test(test_a_stopped_reader_gives_no_more),
        cmocka_unit_test(test_publish_byte_by_byte),
        cmocka_unit_test(test_empty_correlation_and_reply_to_are_present),
        cmocka_unit_test(test_what_is_published_can_be_read),
        cmocka_unit_test(test_a_body_is_cut_into_frames),
        cmocka_unit_test(test_what_does_not_fit_is_refused_whole),
        cmocka_unit_test(test_only_text_headers_are_read),
        cmocka_unit_test(test_deep_tables_are_refused),
        cmocka_unit_test(test_broken_tables_are_refused),
        cmocka_unit_test(test_handshake_byte_by_byte),
        cmocka_unit_test(test_queue_with_arguments_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
