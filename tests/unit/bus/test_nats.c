/* The parts of the NATS engine that need no server: addresses, subjects, names and messages. */
#include "bus_test.h"

#include "base/log.h"
#include "bus/nats_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- addresses --- */

static void parse(struct nats_address *a, const char *url)
{
    struct err err = {0};
    if (nats_address_parse(a, url, &err) < 0)
        fail_msg("%s: %s", url, err.text);
}

static void test_an_address_is_taken_apart(void **state)
{
    (void)state;
    struct nats_address a;

    parse(&a, "nats://localhost");
    assert_int_equal(a.n, 1);
    assert_string_equal(a.servers[0], "localhost:4222");
    assert_null(a.user);
    assert_false(a.secure);
    assert_string_equal(buf_cstr(&a.label), "localhost:4222");
    nats_address_fini(&a);

    parse(&a, "tls://me:p%40ss:w@rd%@h1:1,nats://h2/,[::1]:3");
    assert_int_equal(a.n, 3);
    assert_string_equal(a.servers[0], "h1:1");
    assert_string_equal(a.servers[1], "h2:4222");
    assert_string_equal(a.servers[2], "[::1]:3");
    assert_string_equal(a.user, "me");
    assert_string_equal(a.password, "p@ss:w@rd%");
    assert_true(a.secure);
    assert_string_equal(buf_cstr(&a.label), "h1:1, h2:4222, [::1]:3");
    nats_address_fini(&a);

    parse(&a, "tls://u:p?tls_first@h?tls_first");
    assert_string_equal(a.servers[0], "h:4222");
    assert_string_equal(a.password, "p?tls_first");
    assert_true(a.tls_first);
    nats_address_fini(&a);

    parse(&a, "nats://t0ken@h,other@h2");
    assert_string_equal(a.user, "t0ken");
    assert_null(a.password);
    nats_address_fini(&a);
}

static void test_bad_addresses_are_refused_without_their_passwords(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "nats://",
        "nats://:4222",
        "nats://u:s3cret@",
        "nats://u:s3cret@a b",
        "nats://u:s3cret@a,,b",
        "nats://u:s3cret@a,b\r\nPUB",
        "http://u:s3cret@a",
        "nats://u:s3cret@a?tls_first", /* needs TLS */
        "tls://u:s3cret@a?tls_last",
        "nats://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct nats_address a;
        struct err err = {0};
        assert_true(nats_address_parse(&a, bad[i], &err) < 0);
        assert_true(err.text[0] != '\0');
        assert_null(strstr(err.text, "s3cret"));
    }
}

/* --- subjects --- */

static void test_prefixes(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "acme.dev", "A-1_b"};
    static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a b", "a.*", ">", "$JS", "a\n"};

    assert_true(nats_prefix_is_valid(NULL));
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(nats_prefix_is_valid(good[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(nats_prefix_is_valid(bad[i]));

    assert_true(span_is(nats_topic("p.q", SPAN("p.q.a.b")), "a.b"));
    assert_true(span_is(nats_topic(NULL, SPAN("a.b")), "a.b"));
    assert_int_equal(nats_topic("p", SPAN("px.a")).n, 0);
    assert_int_equal(nats_topic("p", SPAN("p")).n, 0);
    assert_int_equal(nats_topic("p", SPAN("other.a")).n, 0);
}

static void test_patterns_become_subjects(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *pattern;
        const char *subjects[NATS_MAX_SUBJECTS];
        bool wider, rootless;
    } rows[] = {
        {NULL, "a.b", {"a.b"}, false, false},
        {NULL, "a.*.c", {"a.*.c"}, false, false},
        {NULL, "a.#", {"a.>", "a"}, false, false},
        {NULL, "a.*.#", {"a.*.>", "a.*"}, false, false},
        {NULL, "#", {">"}, false, true},
        {NULL, "*", {"*"}, false, true},
        {NULL, "*.b", {"*.b"}, false, true},
        {NULL, "#.b", {">"}, true, true},
        {NULL, "a.#.b", {"a.>"}, true, false},
        {NULL, "a.#.b.#", {"a.>"}, true, false},
        {NULL, "a.#.#", {"a.>"}, true, false},
        {"p.q", "a.#", {"p.q.a.>", "p.q.a"}, false, false},
        {"p", "#", {"p.>"}, false, true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct nats_plan plan;
        nats_plan_init(&plan, rows[i].prefix, span_str(rows[i].pattern));
        assert_int_equal(plan.wider, rows[i].wider);
        assert_int_equal(plan.rootless, rows[i].rootless);
        assert_int_equal(plan.n, rows[i].subjects[1] ? 2 : 1);
        for (size_t s = 0; s < plan.n; s++)
            assert_string_equal(plan.subjects[s], rows[i].subjects[s]);
        nats_plan_fini(&plan);
    }
}

static void test_names_for_jetstream(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0};

    assert_true(span_is(nats_root(NULL, SPAN("tool.invoke.mcp")), "tool"));
    assert_true(span_is(nats_root(NULL, SPAN("tool")), "tool"));
    assert_true(span_is(nats_root("p.q", SPAN("p.q.tool.x")), "p.q.tool"));
    nats_put_stream_name(&a, SPAN("p.q.tool"));
    assert_string_equal(buf_cstr(&a), "rialto_p_q_tool");

    /* Names that become the same plain text still get different consumer names. */
    a.n = 0;
    nats_put_consumer_name(&a, "mcp-bridge.A", "tool.invoke.mcp");
    nats_put_consumer_name(&b, "mcp-bridge_A", "tool.invoke.mcp");
    assert_string_not_equal(buf_cstr(&a), buf_cstr(&b));
    b.n = 0;
    nats_put_consumer_name(&b, "mcp-bridge.A", "tool.invoke.other");
    assert_string_not_equal(buf_cstr(&a), buf_cstr(&b));
    /* The name must never change: other releases must find the same consumer. */
    assert_string_equal(buf_cstr(&a), "mcp-bridge_A_e045e3f8");
    buf_fini(&a);
    buf_fini(&b);
}

static void test_how_often_it_was_delivered(void **state)
{
    (void)state;

    assert_int_equal(nats_delivery_count(SPAN("$JS.ACK.S.C.3.10.11.1771396224.0")), 3);
    assert_int_equal(nats_delivery_count(SPAN("$JS.ACK.dom.acc.S.C.4.10.11.1771396224.0")), 4);
    assert_int_equal(nats_delivery_count(SPAN("$JS.ACK.dom.acc.S.C.5.10.11.1771396224.0.rnd")), 5);
    assert_int_equal(nats_delivery_count(SPAN("$JS.ACK.S.C")), 0);
    assert_int_equal(nats_delivery_count(SPAN("_INBOX.a.b.c.d.e.f.g.h")), 0);
    assert_int_equal(nats_delivery_count(SPAN_EMPTY), 0);
}

/* --- messages --- */

static void test_a_message_comes_back_as_it_was(void **state)
{
    (void)state;
    struct message m = {.id = SPAN("0123"),
                        .type = SPAN("T"),
                        .correlation = SPAN("c"),
                        .reply_to = SPAN("r.t"),
                        .source = SPAN("me"),
                        .destination = SPAN("you"),
                        .sent_ms = 1771396224123,
                        .body = SPAN("{\"a\":\"b\"}")};
    struct message back;
    struct buf headers = {0};
    char made_id[ID_TOKEN_SIZE];
    struct err err;

    assert_true(message_add_header(&m, "rb-content-trust", SPAN("system")));
    assert_true(message_add_header(&m, "bad key", SPAN("left out")));
    assert_true(message_add_header(&m, "rb-lines", SPAN("a\r\nrb-source: forged")));
    nats_message_put(&headers, &m, SPAN("once"));
    assert_int_equal(nats_message_read(&back, buf_view(&headers), m.body, made_id, &err), 0);
    assert_true(span_eq(back.id, m.id));
    assert_true(span_eq(back.type, m.type));
    assert_true(span_eq(back.correlation, m.correlation));
    assert_true(span_eq(back.reply_to, m.reply_to));
    assert_true(span_eq(back.source, m.source));
    assert_true(span_eq(back.destination, m.destination));
    assert_int_equal(back.sent_ms, m.sent_ms);
    assert_true(span_eq(back.body, m.body));
    assert_int_equal(back.n_headers, 2);
    assert_true(span_is(message_header(&back, "rb-content-trust"), "system"));
    assert_true(span_is(message_header(&back, "rb-lines"), "a  rb-source: forged"));
    buf_fini(&headers);
}

static void test_more_headers_than_there_is_room_for(void **state)
{
    (void)state;
    struct message m;
    struct buf headers = {0};
    char made_id[ID_TOKEN_SIZE], key[16];
    struct err err;

    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "rb-h%d", i);
        nats_write_header(&headers, span_str(key), SPAN("v"));
    }
    nats_write_header(&headers, SPAN("rb-timestamp"), SPAN("soon"));
    nats_headers_end(&headers);
    assert_int_equal(nats_message_read(&m, buf_view(&headers), SPAN_EMPTY, made_id, &err), 0);
    assert_int_equal(m.n_headers, MESSAGE_MAX_HEADERS);
    assert_true(m.sent_ms > 0);
    assert_int_equal(m.body.n, 0);
    buf_fini(&headers);
}

/* Two readers of one message must not see different senders. */
static void test_of_a_header_that_stands_twice_the_first_counts(void **state)
{
    (void)state;
    struct message m;
    char made_id[ID_TOKEN_SIZE];
    struct err err;
    struct span headers = SPAN("NATS/1.0\r\nrb-source: a\r\nRb-Source: b\r\nk: 1\r\nk: 2\r\n\r\n");

    assert_int_equal(nats_message_read(&m, headers, SPAN_EMPTY, made_id, &err), 0);
    assert_true(span_is(m.source, "a"));
    assert_int_equal(m.n_headers, 1);
    assert_true(span_is(message_header(&m, "k"), "1"));
}

/* --- signing in --- */

/* The private key is the bytes 1, 8, 15 and so on. Its public key and its signature of "the-nonce"
 * were computed by another program. */
#define SEED   "SUAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCJA"
#define PUBLIC "UDSAGCMYZ7K22FZDYFU7SVVKBOPLQYM3LGJL2YJMFL2CR26HT6G7AGME"
#define SIGNED                                                                                     \
    "xaW-g2F7cDb1vGAiwBAdRzo2gzOd0i5Mhp2HzoZj-oVhUC1kqbBmP5qkz1rrBq_ZP4UcqSbw6AmuF_KBVY5zCg"

/* The login that we send for a file with this text; NULL if it is refused. The caller frees it. */
static char *login(const char *text)
{
    char path[] = "/tmp/rialto-login-XXXXXX";
    struct buf json = {0};
    struct err err = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int code = nats_login_put(&json, path, SPAN("the-nonce"), &err);
    unlink(path);
    assert_true((code < 0) == (err.text[0] != '\0'));
    assert_null(strstr(err.text, "SUAA"));
    if (code == 0)
        return buf_take(&json);
    buf_fini(&json);
    return NULL;
}

static void test_a_nonce_is_signed_with_the_key_in_a_file(void **state)
{
    (void)state;
    char *said = login(SEED "\n");
    assert_string_equal(said, "\"nkey\":\"" PUBLIC "\",\"sig\":\"" SIGNED "\"");
    mem_free(said);

    said = login("-----BEGIN NATS USER JWT-----\r\neyJ0eXA.b.c\r\n------END NATS USER JWT------\r\n"
                 "\r\n-----BEGIN USER NKEY SEED-----\r\n" SEED
                 "\r\n------END USER NKEY SEED------\r\n");
    assert_string_equal(said, "\"jwt\":\"eyJ0eXA.b.c\",\"sig\":\"" SIGNED "\"");
    mem_free(said);
    log_forget_secrets();
}

static void test_what_is_no_key_is_refused_and_not_shown(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "eyJ0eXA.b.c\n",
        PUBLIC,
        "SUAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCJ",   /* too short */
        "SUAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCKA",  /* wrong checksum */
        "SUAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCJ1",  /* not base32 */
        "SAAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCJA",  /* an account's key */
        "SUAACCAPCYOSIKZSHFAEOTSVLRRWU4LYP6DI3FE3UKU3BN56YXGNHWVCJAA", /* too long */
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_null(login(bad[i]));
    log_forget_secrets();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_is_taken_apart),
        cmocka_unit_test(test_bad_addresses_are_refused_without_their_passwords),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_patterns_become_subjects),
        cmocka_unit_test(test_names_for_jetstream),
        cmocka_unit_test(test_how_often_it_was_delivered),
        cmocka_unit_test(test_a_message_comes_back_as_it_was),
        cmocka_unit_test(test_more_headers_than_there_is_room_for),
        cmocka_unit_test(test_of_a_header_that_stands_twice_the_first_counts),
        cmocka_unit_test(test_a_nonce_is_signed_with_the_key_in_a_file),
        cmocka_unit_test(test_what_is_no_key_is_refused_and_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
