#include "bus/message.h"

#include "../unit.h"
#include "base/base64.h"
#include "bus/stamp.h"
#include "wire/json.h"

static struct message sample(void)
{
    struct message m = {.id = SPAN("8f0c0000000000000000000000000001"),
                        .type = SPAN("RockBot.Tools.ToolInvokeRequest"),
                        .correlation = SPAN("c1"),
                        .reply_to = SPAN("tool.result.RockBot"),
                        .source = SPAN("RockBot"),
                        .destination = SPAN("there"),
                        .sent_ms = 1771396224123,
                        .body = SPAN("{\"a\":1}")};

    assert_true(message_add_header(&m, "rb-content-trust", SPAN("tool-request")));
    assert_true(message_add_header(&m, "odd \"one\"", SPAN("line\nbreak \xe2\x82\xac")));
    return m;
}

static void assert_same(const struct message *a, const struct message *b)
{
    assert_true(span_eq(a->id, b->id));
    assert_true(span_eq(a->type, b->type));
    assert_true(span_eq(a->correlation, b->correlation));
    assert_true(span_eq(a->reply_to, b->reply_to));
    assert_true(span_eq(a->source, b->source));
    assert_true(span_eq(a->destination, b->destination));
    assert_int_equal(a->sent_ms, b->sent_ms);
    assert_int_equal(a->n_headers, b->n_headers);
    for (size_t i = 0; i < a->n_headers; i++) {
        assert_true(span_eq(a->headers[i].key, b->headers[i].key));
        assert_true(span_eq(a->headers[i].value, b->headers[i].value));
    }
    assert_true(span_eq(a->body, b->body));
}

static void round_trip(const struct message *m)
{
    struct buf json = {0}, scratch = {0};
    struct message back;
    struct err err;

    message_put_json(&json, m);
    assert_null(memchr(json.p, '\n', json.n));
    struct span exact = unit_exact(buf_view(&json));
    assert_int_equal(message_from_json(&back, exact, &scratch, &err), 0);
    assert_same(m, &back);
    unit_free(exact);
    buf_fini(&json);
    buf_fini(&scratch);
}

static void test_all_fields(void **state)
{
    (void)state;
    struct message m = sample();
    struct buf json = {0};

    message_put_json(&json, &m);
    assert_span(buf_view(&json),
                "{\"messageId\":\"8f0c0000000000000000000000000001\","
                "\"messageType\":\"RockBot.Tools.ToolInvokeRequest\",\"correlationId\":\"c1\","
                "\"replyTo\":\"tool.result.RockBot\",\"source\":\"RockBot\","
                "\"destination\":\"there\",\"timestamp\":\"2026-02-18T06:30:24.123Z\","
                "\"headers\":{\"rb-content-trust\":\"tool-request\","
                "\"odd \\\"one\\\"\":\"line\\nbreak \xe2\x82\xac\"},\"body\":{\"a\":1}}");
    buf_fini(&json);
    round_trip(&m);
}

static void test_defaults(void **state)
{
    (void)state;
    struct message m = {.body = SPAN("null")}, back;
    struct buf scratch = {0};
    struct err err;

    round_trip(&m);
    assert_int_equal(message_from_json(&back, SPAN("{}"), &scratch, &err), 0);
    assert_same(&m, &back);
    /* RockBot writes absent members as null. */
    assert_int_equal(message_from_json(&back,
                                       SPAN("{\"correlationId\":null,\"headers\":null,"
                                            "\"timestamp\":null,\"unknown\":[1]}"),
                                       &scratch, &err),
                     0);
    assert_same(&m, &back);
    buf_fini(&scratch);
}

/* Bodies that are not JSON, or nested too deeply for an envelope in a line. */
static void test_bodies(void **state)
{
    (void)state;
    static const char *const bodies[] = {"",        "no json",  "\x01\xff\xfe",
                                         "{\"a\":", "\"text\"", "12"};
    struct message m = sample();
    char deep[130];

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        m.body = span_str(bodies[i]);
        round_trip(&m);
    }
    for (size_t n = 55; n <= 64; n++) {
        memset(deep, '[', n);
        memset(deep + n, ']', n);
        m.body = span_of(deep, 2 * n);
        round_trip(&m);
        struct buf line = {0};
        buf_str(&line, "{\"env\":");
        message_put_json(&line, &m);
        buf_char(&line, '}');
        assert_int_equal(json_skim(buf_view(&line), NULL, NULL, NULL, NULL), 0);
        buf_fini(&line);
    }
    m.body = SPAN("{\n \"a\":\r\n1}");
    struct buf json = {0};
    message_put_json(&json, &m);
    assert_null(memchr(json.p, '\n', json.n));
    buf_fini(&json);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{\"messageId\":1}",
        "{\"replyTo\":[]}",
        "{\"headers\":[]}",
        "{\"headers\":1}",
        "{\"body\":1,\"bodyBase64\":\"MQ==\"}",
        "{\"bodyBase64\":1}",
        "{\"bodyBase64\":\"M\"}",
        "{\"bodyBase64\":\"MR==\"}",
        "{\"messageId\":\"a\",\"messageId\":\"b\"}",
    };
    struct buf scratch = {0}, text = {0};
    struct message m;
    struct err err;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        err.text[0] = 0;
        assert_true(message_from_json(&m, span_str(wrong[i]), &scratch, &err) < 0);
        assert_string_not_equal(err.text, "");
    }
    buf_str(&text, "{\"source\":\"");
    for (int i = 0; i < 256; i++)
        buf_char(&text, 'x');
    buf_str(&text, "\"}");
    assert_int_equal(message_from_json(&m, buf_view(&text), &scratch, &err), ERR_SIZE);
    text.n = 0;
    buf_str(&text, "{\"headers\":{");
    for (int i = 0; i <= MESSAGE_MAX_HEADERS; i++)
        buf_printf(&text, "%s\"h%d\":\"\"", i ? "," : "", i);
    buf_str(&text, "}}");
    assert_int_equal(message_from_json(&m, buf_view(&text), &scratch, &err), ERR_SIZE);
    buf_fini(&text);
    buf_fini(&scratch);
}

/* The spans must stay valid while later members are unescaped into the same scratch buffer. */
static void test_escapes_everywhere(void **state)
{
    (void)state;
    struct buf scratch = {0};
    struct message m;
    struct err err;

    assert_int_equal(
        message_from_json(&m,
                          SPAN("{\"messageId\":\"\\u0061\",\"messageType\":\"\\u0062\","
                               "\"correlationId\":\"\\u0063\",\"headers\":{\"\\u0064\":\"\\u0065\","
                               "\"n\":1,\"x\":null},\"source\":\"\\u0066\","
                               "\"bodyBase64\":\"aGVsbG8\\u003d\"}"),
                          &scratch, &err),
        0);
    assert_span(m.id, "a");
    assert_span(m.type, "b");
    assert_span(m.correlation, "c");
    assert_int_equal(m.n_headers, 1);
    assert_span(message_header(&m, "d"), "e");
    assert_span(m.source, "f");
    assert_span(m.body, "hello");
    buf_fini(&scratch);
}

static void test_headers(void **state)
{
    (void)state;
    struct message m = {0};

    assert_int_equal(message_header(&m, "x").n, 0);
    for (int i = 0; i < MESSAGE_MAX_HEADERS; i++)
        assert_true(message_add_header(&m, "x", SPAN("y")));
    assert_false(message_add_header(&m, "z", SPAN("y")));
    assert_span(message_header(&m, "x"), "y");
}

static void test_copy(void **state)
{
    (void)state;
    struct message m = sample();
    struct message_copy copy;
    struct span body = unit_exact(m.body);

    m.body = body;
    message_copy(&copy, &m);
    unit_free(body);
    m.body = SPAN("{\"a\":1}");
    assert_same(&m, &copy.m);
    message_copy_fini(&copy);
}

static void test_stamps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } stamps[] = {
        {"2026-02-18T06:30:24.123Z", 1771396224123},
        {"2026-02-18T06:30:24Z", 1771396224000},
        {"2026-02-18T06:30:24.1239999+00:00", 1771396224123},
        {"2026-02-18T07:30:24.5+01:00", 1771396224500},
        {"2026-02-18T06:00:24-00:30", 1771396224000},
        {"1970-01-01T00:00:00.001Z", 1},
        {"", 0},
        {"2026-02-18", 0},
        {"2026-02-18T06:30:24", 0},
        {"2026-13-18T06:30:24Z", 0},
        {"2026-02-18T06:30:24+0100", 0},
        {"2026-02-18T06:30:24Zx", 0},
        {"1970-01-01T00:00:00+01:00", 0},
    };
    struct buf out = {0};

    for (size_t i = 0; i < COUNT_OF(stamps); i++)
        assert_int_equal(stamp_read(span_str(stamps[i].text)), stamps[i].ms);
    stamp_put(&out, 1771396224007);
    assert_span(buf_view(&out), "2026-02-18T06:30:24.007Z");
    buf_fini(&out);
    assert_true(stamp_now() > 1771396224007);
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xfb\xff", "+/8="}};
    static const char *const wrong[] = {
        "Z", "Zg", "Zg=", "Zg=a", "====", "Zm9v Zg==", "Zh==", "Zm9=", "Zg==Zg=="};
    struct buf out = {0};

    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        out.n = 0;
        base64_put(&out, span_str(pairs[i][0]));
        assert_span(buf_view(&out), pairs[i][1]);
        out.n = 0;
        assert_int_equal(base64_read(&out, span_str(pairs[i][1])), 0);
        assert_span(buf_view(&out), pairs[i][0]);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        out.n = 0;
        assert_true(base64_read(&out, span_str(wrong[i])) < 0);
        assert_int_equal(out.n, 0);
    }
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fields),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_escapes_everywhere),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
