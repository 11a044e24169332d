#include "replay_unit.h"
#include "replay_ws.h"

/* --- frames that a decoder reads: "\1\2\3\4" and the like are masks --- */

static void test_rfc_examples(void **state)
{
    (void)state;
    assert_replay(replay_ws_server, SPAN("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), 100,
                  "text 5:Hello\n");
    assert_replay(replay_ws_client, SPAN("\x81\x05Hello"), 100, "text 5:Hello\n");
    assert_replay(replay_ws_client, SPAN("\x01\x03Hel\x80\x02lo"), 100, "text 5:Hello\n");
    assert_replay(replay_ws_client, SPAN("\x89\x05Hello"), 100, "ping 5:Hello\n");
    assert_replay(replay_ws_server, SPAN("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), 100,
                  "pong 5:Hello\n");
}

static void test_empty_frames(void **state)
{
    (void)state;
    assert_replay(replay_ws_client, SPAN("\x81\x00\x82\x00\x89\x00\x88\x00"), 100,
                  "text 0:\nbinary 0:\nping 0:\nclose 0:\n");
    assert_replay(replay_ws_server, SPAN("\x81\x80\1\2\3\4\x8a\x80\1\2\3\4"), 100,
                  "text 0:\npong 0:\n");
    assert_replay(replay_ws_client, SPAN("\x01\x00\x00\x00\x80\x00\x81\x01x"), 100,
                  "text 0:\ntext 1:x\n");
}

static void test_control_frames_between_fragments(void **state)
{
    (void)state;
    assert_replay(replay_ws_client, SPAN("\x02\x03one\x89\x01p\x00\x03two\x8a\x01q\x80\x03six"),
                  100, "ping 1:p\npong 1:q\nbinary 9:onetwosix\n");
    assert_replay(replay_ws_server, SPAN("\x02\x83\0\0\0\0one\x89\x81\0\0\0\1q\x80\x83\0\0\0\0two"),
                  100, "ping 1:q\nbinary 6:onetwo\n");
}

/* Any payload, in any role, however long: what one side writes the other reads. */
static void test_every_length_comes_through(void **state)
{
    (void)state;
    static const size_t lengths[] = {0,  1,  2,   3,   4,   5,   7,     8,     9,     15,
                                     16, 17, 124, 125, 126, 127, 65534, 65535, 65536, 70001};
    static const struct {
        enum ws_role from;
        replay_fn *to;
    } ways[] = {{WS_CLIENT, replay_ws_server}, {WS_SERVER, replay_ws_client}};

    for (size_t w = 0; w < COUNT_OF(ways); w++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            struct buf payload = {0}, wire = {0}, expected = {0};
            for (size_t k = 0; k < lengths[i]; k++)
                buf_char(&payload, (char)('a' + k % 26));
            ws_frame_put(&wire, ways[w].from, WS_TEXT, buf_view(&payload));
            replay_put(&expected, "text", buf_view(&payload));
            assert_replay(ways[w].to, buf_view(&wire), lengths[i], buf_cstr(&expected));

            /* The same frame built in place, after other bytes. */
            wire.n = 0;
            buf_str(&wire, "before");
            size_t at = ws_frame_begin(&wire, ways[w].from);
            buf_span(&wire, buf_view(&payload));
            ws_frame_end(&wire, ways[w].from, WS_TEXT, at);
            assert_memory_equal(wire.p, "before", at);
            assert_replay(ways[w].to, span_from(buf_view(&wire), at), lengths[i],
                          buf_cstr(&expected));
            buf_fini(&payload);
            buf_fini(&wire);
            buf_fini(&expected);
        }
    }
}

static void test_masks_are_fresh(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0};
    ws_frame_put(&a, WS_CLIENT, WS_BINARY, SPAN("hello world"));
    ws_frame_put(&b, WS_CLIENT, WS_BINARY, SPAN("hello world"));
    assert_int_equal(a.n, 17);
    assert_memory_not_equal(a.p + 2, b.p + 2, 4);
    buf_fini(&a);
    buf_fini(&b);
}

/* --- what a receiver must refuse --- */

#define BROKEN_1002 "protocol error, close with 1002\n"

static void test_masking_by_role(void **state)
{
    (void)state;
    assert_replay(replay_ws_server, SPAN("\x81\x05Hello"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x81\x81\1\2\3\4x"), 100, BROKEN_1002);
}

static void test_reserved_bits_and_opcodes(void **state)
{
    (void)state;
    for (unsigned first = 0x80; first <= 0xff; first++) {
        char frame[] = {(char)first, 0};
        unsigned op = first & 0x0f;
        bool known = op == WS_TEXT || op == WS_BINARY || op == WS_PING || op == WS_PONG;
        char *account = replay_all(replay_ws_client, span_of(frame, 2), 100);
        if (first < 0x90 && (known || op == WS_CLOSE))
            assert_non_null(strstr(account, " 0:\n"));
        else
            assert_string_equal(account, BROKEN_1002);
        mem_free(account);
    }
}

static void test_control_frames_are_short_and_whole(void **state)
{
    (void)state;
    struct buf in = {0};
    buf_bytes(&in, "\x89\x7e\x00\x7e", 4);
    for (int i = 0; i < 126; i++)
        buf_char(&in, 'x');
    assert_replay(replay_ws_client, buf_view(&in), 1000, BROKEN_1002);
    buf_fini(&in);
    assert_replay(replay_ws_client, SPAN("\x09\x01x"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x08\x00"), 100, BROKEN_1002);
}

static void test_order_of_fragments(void **state)
{
    (void)state;
    assert_replay(replay_ws_client, SPAN("\x80\x01x"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x00\x01x"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x01\x01x\x81\x01y"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x81\x01x\x80\x01y"), 100, "text 1:x\n" BROKEN_1002);
}

static void test_lengths(void **state)
{
    (void)state;
    assert_replay(replay_ws_client, SPAN("\x82\x7f\x80\0\0\0\0\0\0\1x"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), 100,
                  "too large, close with 1009\n");
    /* Length fields that are longer than necessary are accepted. */
    assert_replay(replay_ws_client, SPAN("\x82\x7e\0\1x\x82\x7f\0\0\0\0\0\0\0\1y"), 100,
                  "binary 1:x\nbinary 1:y\n");
}

/* The cap applies to the whole message, and is checked before the payload arrives. */
static void test_cap(void **state)
{
    (void)state;
    assert_replay(replay_ws_client,
                  SPAN("\x82\x04"
                       "1234"),
                  4, "binary 4:1234\n");
    assert_replay(replay_ws_client, SPAN("\x82\x05"), 4, "too large, close with 1009\n");
    assert_replay(replay_ws_client,
                  SPAN("\x02\x03"
                       "123\x80\x01"
                       "4\x82\x01x"),
                  4, "binary 4:1234\nbinary 1:x\n");
    assert_replay(replay_ws_client,
                  SPAN("\x02\x03"
                       "123\x80\x02"
                       "45"),
                  4, "too large, close with 1009\n");
    /* Control frames have their own limit. */
    assert_replay(replay_ws_client,
                  SPAN("\x89\x05"
                       "12345"),
                  4, "ping 5:12345\n");
}

static void test_text_is_utf8(void **state)
{
    (void)state;
    static const char bad[] = "not valid UTF-8, close with 1007\n";

    assert_replay(replay_ws_client, SPAN("\x81\x04\xf0\x9f\x98\x80"), 100,
                  "text 4:\xf0\x9f\x98\x80\n");
    /* A character may be cut by a fragment's end, but not by the message's. */
    assert_replay(replay_ws_client, SPAN("\x01\x02\xf0\x9f\x00\x01\x98\x80\x01\x80"), 100,
                  "text 4:\xf0\x9f\x98\x80\n");
    assert_replay(replay_ws_client, SPAN("\x01\x02\xf0\x9f\x80\x01\x98"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x81\x03\xf0\x9f\x98"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x81\x02\xc0\xaf"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x81\x03\xed\xa0\x80"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x81\x04\xf4\x90\x80\x80"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x81\x01\x80"), 100, bad);
    assert_replay(replay_ws_client, SPAN("\x82\x01\x80"), 100, "binary 1:\x80\n");
}

/* ASCII is checked in long steps: a byte that is not ASCII must be found anywhere in a step. */
static void test_utf8_is_seen_at_every_place(void **state)
{
    (void)state;
    enum { N = 80 };

    for (size_t at = 0; at + 1 < N; at++) {
        char frame[2 + N] = {(char)0x81, N};
        struct buf expected = {0};
        memset(frame + 2, 'a', N);
        memcpy(frame + 2 + at, "\xc3\xa9", 2);
        replay_put(&expected, "text", span_of(frame + 2, N));
        assert_replay(replay_ws_client, span_of(frame, sizeof frame), N, buf_cstr(&expected));
        frame[2 + at] = 'a';
        assert_replay(replay_ws_client, span_of(frame, sizeof frame), N,
                      "not valid UTF-8, close with 1007\n");
        buf_fini(&expected);
    }
}

static void test_close_codes(void **state)
{
    (void)state;
    static const uint16_t good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1011,
                                    1012, 1013, 1014, 3000, 3999, 4000, 4999};
    static const uint16_t bad[] = {0,    1,    999,  1004, 1005, 1006, 1015,
                                   1016, 1100, 2000, 2999, 5000, 65535};

    for (size_t i = 0; i < COUNT_OF(good) + COUNT_OF(bad); i++) {
        bool ok = i < COUNT_OF(good);
        uint16_t code = ok ? good[i] : bad[i - COUNT_OF(good)];
        char frame[] = {(char)0x88, 2, (char)(code >> 8), (char)code};
        struct buf expected = {0};
        if (ok)
            replay_put(&expected, "close", span_of(frame + 2, 2));
        else
            buf_str(&expected, BROKEN_1002);
        assert_replay(replay_ws_client, span_of(frame, sizeof frame), 100, buf_cstr(&expected));
        buf_fini(&expected);
    }
    assert_replay(replay_ws_client, SPAN("\x88\x01\x03"), 100, BROKEN_1002);
    assert_replay(replay_ws_client, SPAN("\x88\x03\x03\xe8\xff"), 100,
                  "not valid UTF-8, close with 1007\n");
}

static void test_nothing_counts_behind_a_close(void **state)
{
    (void)state;
    assert_replay(replay_ws_client, SPAN("\x88\x00\x81\x01x\xff\xff"), 100, "close 0:\n");
}

static void ignore_frame(void *owner, enum ws_opcode op, struct span payload)
{
    (void)owner, (void)op, (void)payload;
}

static void test_errors_stay(void **state)
{
    (void)state;
    struct ws_decoder d;

    ws_decoder_init(&d, WS_CLIENT, 3);
    assert_int_equal(ws_decoder_feed(&d, SPAN("\x81\x04"), ignore_frame, NULL), ERR_SIZE);
    assert_int_equal(ws_decoder_feed(&d, SPAN("\x81\x01x"), ignore_frame, NULL), ERR_SIZE);
    assert_int_equal(d.close_code, 1009);
    ws_decoder_fini(&d);
}

struct seen {
    struct ws_decoder decoder;
    struct span payload;
    int frames;
};

static void keep_frame(void *owner, enum ws_opcode op, struct span payload)
{
    struct seen *s = owner;
    (void)op;
    s->payload = payload;
    s->frames++;
}

static void test_unmasked_message_within_a_chunk_is_not_copied(void **state)
{
    (void)state;
    struct seen s = {.frames = 0};
    struct span chunk = SPAN("\x81\x05Hello");

    ws_decoder_init(&s.decoder, WS_CLIENT, 100);
    assert_int_equal(ws_decoder_feed(&s.decoder, chunk, keep_frame, &s), 0);
    assert_ptr_equal(s.payload.p, chunk.p + 2);
    assert_int_equal(s.decoder.message.cap, 0);
    ws_decoder_fini(&s.decoder);
}

/* A peer that only announces a large message must not make us hold memory for it. */
static void test_memory_comes_with_the_bytes_and_goes_back(void **state)
{
    (void)state;
    enum { LARGE = 1 << 20 };
    struct ws_decoder d;
    struct buf frame = {0}, payload = {0};

    memset(buf_room(&payload, LARGE), 'x', LARGE);
    payload.n = LARGE;
    ws_frame_put(&frame, WS_CLIENT, WS_TEXT, buf_view(&payload));
    ws_decoder_init(&d, WS_SERVER, LARGE);
    assert_int_equal(ws_decoder_feed(&d, span_cut(buf_view(&frame), 0, 30), ignore_frame, NULL), 0);
    assert_true(d.message.cap <= 4096);
    assert_int_equal(ws_decoder_feed(&d, span_from(buf_view(&frame), 30), ignore_frame, NULL), 0);
    assert_true(d.message.cap <= 4096);
    ws_decoder_fini(&d);
    buf_fini(&frame);
    buf_fini(&payload);
}

/* --- writing --- */

static void test_put_close(void **state)
{
    (void)state;
    struct buf out = {0};

    ws_frame_put_close(&out, WS_SERVER, 1001, SPAN("bye"));
    assert_int_equal(out.n, 7);
    assert_memory_equal(out.p,
                        "\x88\x05\x03\xe9"
                        "bye",
                        7);
    assert_int_equal(ws_frame_close_code(span_of(out.p + 2, 5)), 1001);
    out.n = 0;
    ws_frame_put_close(&out, WS_SERVER, ws_frame_close_code(SPAN_EMPTY), SPAN_EMPTY);
    assert_int_equal(out.n, 2);
    assert_memory_equal(out.p, "\x88\x00", 2);

    /* 41 characters of three bytes fill the frame; 42 are cut between characters, not inside. */
    struct buf reason = {0};
    buf_str(&reason, "ab");
    for (int i = 0; i < 42; i++)
        buf_str(&reason, "\xe2\x82\xac");
    out.n = 0;
    ws_frame_put_close(&out, WS_SERVER, 1000, buf_view(&reason));
    assert_int_equal((uint8_t)out.p[1], 2 + 2 + 40 * 3);
    char *account = replay_all(replay_ws_client, buf_view(&out), 0);
    assert_memory_equal(account, "close 124:", 10);
    mem_free(account);
    buf_fini(&reason);
    buf_fini(&out);
}

static void test_accept_key(void **state)
{
    (void)state;
    char out[29];
    ws_key_answer(SPAN("dGhlIHNhbXBsZSBub25jZQ=="), out);
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void test_keys(void **state)
{
    (void)state;
    char one[25], two[25];
    ws_key_new(one);
    ws_key_new(two);
    assert_true(ws_key_is_valid(span_str(one)));
    assert_true(ws_key_is_valid(SPAN("dGhlIHNhbXBsZSBub25jZQ==")));
    assert_string_not_equal(one, two);
    static const char *const wrong[] = {"",
                                        "dGhlIHNhbXBsZSBub25jZQ",
                                        "dGhlIHNhbXBsZSBub25jZQ=",
                                        "dGhlIHNhbXBsZSBub25jZXg=",
                                        "dGhlIHNhbXBsZSBub25jZXh4",
                                        "dGhlIHNhbXBsZSBub25jZ===",
                                        "dGhlIHNhbXBsZSB!b25jZQ==",
                                        "  hlIHNhbXBsZSBub25jZQ==",
                                        "dGhlIHNhbXBsZSBub25jZQ==dGhlIHNhbXBsZSBub25jZQ=="};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(ws_key_is_valid(span_str(wrong[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_examples),
        cmocka_unit_test(test_empty_frames),
        cmocka_unit_test(test_control_frames_between_fragments),
        cmocka_unit_test(test_every_length_comes_through),
        cmocka_unit_test(test_masks_are_fresh),
        cmocka_unit_test(test_masking_by_role),
        cmocka_unit_test(test_reserved_bits_and_opcodes),
        cmocka_unit_test(test_control_frames_are_short_and_whole),
        cmocka_unit_test(test_order_of_fragments),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_text_is_utf8),
        cmocka_unit_test(test_utf8_is_seen_at_every_place),
        cmocka_unit_test(test_close_codes),
        cmocka_unit_test(test_nothing_counts_behind_a_close),
        cmocka_unit_test(test_errors_stay),
        cmocka_unit_test(test_unmasked_message_within_a_chunk_is_not_copied),
        cmocka_unit_test(test_memory_comes_with_the_bytes_and_goes_back),
        cmocka_unit_test(test_put_close),
        cmocka_unit_test(test_accept_key),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
