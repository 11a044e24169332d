#include "http_reply.h"

#include "io/listen.h"

#include <errno.h>

/* A server that answers each request with a fixed text, and after some requests closes instead. */
struct rude {
    struct listener *listener;
    struct party guest;
    int accepted, answers; /* `answers`: how many requests are answered before it closes */
    int requests;
    const char *answer;
};

static void rude_data(void *owner, struct span chunk)
{
    struct rude *h = owner;
    (void)chunk;
    if (h->requests++ < h->answers)
        stream_write(h->guest.stream, span_str(h->answer));
    else
        stream_close(h->guest.stream, "rude");
}

static void rude_closed(void *owner, const char *reason)
{
    struct rude *h = owner;
    (void)reason;
    h->guest.stream = NULL;
}

static const struct stream_events rude_events = {.data = rude_data, .closed = rude_closed};

static void rude_accept(void *owner, struct stream *s)
{
    struct rude *h = owner;
    h->accepted++;
    h->guest.stream = s;
    stream_start(s, &rude_events, h);
}

/*
 * libcurl sends a request again when a reused connection closes without a response. A tool call
 * that the server had already started would then run twice.
 */
static void test_a_request_is_never_sent_twice(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct rude rude = {.answers = 1, .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    struct err err;
    struct reply r;
    char origin[64];
    rude.listener = listener_open(l, "127.0.0.1:0", rude_accept, &rude, &err);
    snprintf(origin, sizeof origin, "http://%s", listener_address(rude.listener));
    struct http_client *c = http_client_new(l);

    start(c, &r, "POST", origin, "/", "first");
    WAIT(l, r.dones);
    assert_int_equal(r.code, 0);
    reply_fini(&r);
    start(c, &r, "POST", origin, "/", "second");
    WAIT(l, r.dones);
    assert_int_equal(r.code, -ECONNRESET);
    assert_true(r.delivered);
    run_for(l, 50);
    assert_int_equal(rude.requests, 2);
    reply_fini(&r);

    /* If the idle connection has been closed in the meantime, a new one is opened. */
    rude.answers = 100;
    start(c, &r, "POST", origin, "/", "third");
    WAIT(l, r.dones);
    assert_int_equal(r.code, 0);
    reply_fini(&r);
    stream_close(rude.guest.stream, "idle for too long");
    run_for(l, 20);
    start(c, &r, "POST", origin, "/", "fourth");
    WAIT(l, r.dones);
    assert_int_equal(r.code, 0);
    assert_int_equal(rude.requests, 4);
    reply_fini(&r);

    http_client_free(c);
    listener_close(rude.listener);
    if (rude.guest.stream)
        stream_close(rude.guest.stream, "over");
    run_for(l, 5);
    loop_free(l);
}

static void test_broken_answers(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int heads, code;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 1, -ECONNRESET},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", 1, -ECONNRESET},
        {"SSH-2.0-OpenSSH\r\n", 0, -EIO},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1, 0},
        {"HTTP/1.1 200 OK\r\n\r\nuntil it closes", 1, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct loop *l = loop_new();
        struct rude rude = {.answers = 1, .answer = rows[i].answer};
        struct err err;
        struct reply r;
        char origin[64];
        rude.listener = listener_open(l, "127.0.0.1:0", rude_accept, &rude, &err);
        snprintf(origin, sizeof origin, "http://%s", listener_address(rude.listener));
        struct http_client *c = http_client_new(l);
        start(c, &r, "POST", origin, "/", "x");
        WAIT(l, rude.requests == 1);
        run_for(l, 20);
        if (rude.guest.stream)
            stream_finish(rude.guest.stream, "breaks off", 100);
        WAIT(l, r.dones);
        assert_int_equal(r.heads, rows[i].heads);
        assert_int_equal(r.code, rows[i].code);
        assert_true(r.delivered);
        reply_fini(&r);
        http_client_free(c);
        listener_close(rude.listener);
        WAIT(l, !rude.guest.stream);
        loop_free(l);
    }
}

/* A body that arrives slowly is passed on byte by byte, however long it takes. */
static void test_slow_body(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct rude rude = {.answers = 1, .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"};
    struct err err;
    struct reply r;
    char origin[64];
    rude.listener = listener_open(l, "127.0.0.1:0", rude_accept, &rude, &err);
    snprintf(origin, sizeof origin, "http://%s", listener_address(rude.listener));
    struct http_client *c = http_client_new(l);
    start(c, &r, "GET", origin, "/", NULL);
    WAIT(l, r.heads);
    for (int i = 0; i < 5; i++) {
        run_for(l, 20);
        assert_int_equal(r.dones, 0);
        stream_write(rude.guest.stream, SPAN("x"));
        WAIT(l, r.body.n == (size_t)i + 1);
    }
    WAIT(l, r.dones);
    assert_int_equal(r.code, 0);
    reply_fini(&r);
    http_client_free(c);
    listener_close(rude.listener);
    stream_close(rude.guest.stream, "over");
    WAIT(l, !rude.guest.stream);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_is_never_sent_twice),
        cmocka_unit_test(test_broken_answers),
        cmocka_unit_test(test_slow_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
