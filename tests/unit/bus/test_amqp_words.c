#include "../unit.h"

#include "base/log.h"
#include "bus/amqp_inside.h"

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *url, *target, *host, *user, *password, *vhost;
        bool tls;
        unsigned heartbeat;
    } rows[] = {
        {"amqp://", "localhost:5672", "localhost", "guest", "guest", "/", false, 30},
        {"amqp://mq", "mq:5672", "mq", "guest", "guest", "/", false, 30},
        {"amqp://mq/", "mq:5672", "mq", "guest", "guest", "/", false, 30},
        {"amqps://mq", "mq:5671", "mq", "guest", "guest", "/", true, 30},
        {"amqp://mq:1/%2F", "mq:1", "mq", "guest", "guest", "/", false, 30},
        {"amqp://u:p%40ss@mq/prod", "mq:5672", "mq", "u", "p@ss", "prod", false, 30},
        {"amqp://u:p@ss@mq/prod", "mq:5672", "mq", "u", "p@ss", "prod", false, 30},
        {"amqp://u:p:q@mq", "mq:5672", "mq", "u", "p:q", "/", false, 30},
        {"amqp://u@mq", "mq:5672", "mq", "u", "", "/", false, 30},
        {"amqp://u:p@[::1]:99/v?heartbeat=5", "[::1]:99", "::1", "u", "p", "v", false, 5},
        {"amqp://mq?heartbeat=60", "mq:5672", "mq", "guest", "guest", "/", false, 60},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct amqp_address a;
        struct err err;
        assert_int_equal(amqp_address_parse(&a, rows[i].url, &err), 0);
        assert_string_equal(a.target, rows[i].target);
        assert_string_equal(a.host, rows[i].host);
        assert_string_equal(a.user, rows[i].user);
        assert_string_equal(a.password, rows[i].password);
        assert_string_equal(a.vhost, rows[i].vhost);
        assert_int_equal(a.tls, rows[i].tls);
        assert_int_equal(a.heartbeat, rows[i].heartbeat);
        amqp_address_fini(&a);
    }
    log_forget_secrets();
}

static void test_addresses_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "amqp://mq:0",           "amqp://mq:65536",
        "amqp://mq:12x",         "amqp://mq: 12",
        "amqp://[::1",           "amqp://[::1]x",
        "amqp://u:%zz@mq",       "amqp://u:%4@mq",
        "amqp://u:a%00b@mq",     "amqp://mq/%",
        "amqp://mq?heartbeat=0", "amqp://mq?heartbeat=",
        "amqp://mq?speed=11",    "amqp://mq?heartbeat=99999",
    };
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct amqp_address a;
        struct err err;
        if (amqp_address_parse(&a, urls[i], &err) == 0)
            fail_msg("%s was taken", urls[i]);
        assert_non_null(strstr(err.text, "RabbitMQ"));
    }
    struct buf longest = {0};
    struct amqp_address a;
    struct err err;
    buf_str(&longest, "amqp://u:secret-word@mq/");
    for (int i = 0; i < 256; i++)
        buf_char(&longest, 'v');
    assert_int_not_equal(amqp_address_parse(&a, buf_cstr(&longest), &err), 0);
    assert_null(strstr(err.text, "secret-word"));
    assert_null(strstr(err.hint, "secret-word"));
    buf_fini(&longest);
    log_forget_secrets();
}

/* Messages written and read again by the codec, without a broker. */
static void test_messages_there_and_back(void **state)
{
    (void)state;
    struct message m = {
        .id = SPAN("8f0c"),
        .type = SPAN("T"),
        .correlation = SPAN("c"),
        .source = SPAN("me"),
        .sent_ms = 1771400000999,
        .body = SPAN("{}"),
    };
    struct buf wire = {0};
    assert_true(message_add_header(&m, "rb-timeout-ms", SPAN("5")));
    assert_true(message_add_header(&m, "traceparent", SPAN("tp")));
    assert_int_equal(amqp_write_message(&wire, 1, 4096, SPAN("x"), SPAN("a.b"), &m), 0);
    assert_non_null(memmem(wire.p, wire.n, "\x10rb-rb-timeout-msS", 18));
    assert_non_null(memmem(wire.p, wire.n, "\x0erb-traceparentS", 16));
    assert_null(memmem(wire.p, wire.n, "rb-destination", 14));

    /* The frame of the properties comes after the publish method. */
    size_t first = 8 + (unsigned char)wire.p[6];
    size_t size = (size_t)(unsigned char)wire.p[first + 5] << 8 | (unsigned char)wire.p[first + 6];
    struct message back;
    char made_id[ID_TOKEN_SIZE];
    assert_int_equal(amqp_take_message(span_of(wire.p + first + 7, size), &back, made_id), 0);
    assert_span(back.id, "8f0c");
    assert_span(back.type, "T");
    assert_span(back.correlation, "c");
    assert_int_equal(back.reply_to.n, 0);
    assert_span(back.source, "me");
    assert_true(back.sent_ms == 1771400000000);
    assert_int_equal(back.n_headers, 2);
    assert_span(message_header(&back, "rb-timeout-ms"), "5");
    assert_span(message_header(&back, "traceparent"), "tp");
    buf_fini(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_addresses_that_make_no_sense),
        cmocka_unit_test(test_messages_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
