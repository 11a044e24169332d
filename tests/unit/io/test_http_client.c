#include "http_reply.h"

#include "io/http_server.h"
#include "io/listen.h"

#include <errno.h>

/* --- the server, on the same loop --- */

struct host {
    struct loop *loop;
    struct http_server *server;
    char origin[64];
    int requests, gone, closed;
    char peers[8][64]; /* of each request: a reused connection has the same port */
    char last[256];    /* method, path, body, and a header of the last request */
    struct http_exchange *open;
};

static void on_gone(void *owner)
{
    struct host *h = owner;
    h->gone++;
    h->open = NULL;
}

static void answer(struct host *h, struct http_exchange *x, const struct http_request *req)
{
    char location[128];

    if (span_is(req->path, "/missing")) {
        http_respond(x, 404, "text/plain", SPAN_EMPTY, SPAN("not here"));
    } else if (span_is(req->path, "/stream")) {
        http_exchange_on_gone(x, on_gone, h);
        http_stream_begin(x, 200, "text/event-stream", SPAN("X-Kind:  live \r\n"));
        h->open = x;
    } else if (span_is(req->path, "/never")) {
        http_exchange_on_gone(x, on_gone, h);
        h->open = x;
    } else if (span_is(req->path, "/round")) {
        http_respond(x, 307, NULL, SPAN("Location: round\r\n"), SPAN("turn"));
    } else if (span_is(req->path, "/moved")) {
        http_respond(x, 308, NULL, SPAN("Location: /there?x=1\r\n"), SPAN("this is not the body"));
    } else if (span_is(req->path, "/away")) {
        snprintf(location, sizeof location, "Location: http://localhost%s/there\r\n",
                 strrchr(h->origin, ':'));
        http_respond(x, 307, NULL, span_str(location), SPAN("go there"));
    } else {
        http_respond(x, 200, "text/plain", SPAN_EMPTY, req->body.n ? req->body : SPAN("hello"));
    }
}

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct host *h = owner;
    struct span sent = http_header(req, "X-Sent"), empty = http_header(req, "X-Empty");

    snprintf(h->peers[h->requests++ % 8], 64, "%s", http_exchange_peer(x));
    snprintf(h->last, sizeof h->last, SPAN_FMT " " SPAN_FMT " " SPAN_FMT " " SPAN_FMT "%s",
             SPAN_ARG(req->method), SPAN_ARG(req->target), SPAN_ARG(span_cut(req->body, 0, 100)),
             SPAN_ARG(sent), empty.p && !empty.n ? " with an empty one" : "");
    answer(h, x, req);
}

static void host_open(struct host *h)
{
    static const struct http_server_options options = {.max_body = 16 << 20,
                                                       .head_timeout = 5000,
                                                       .body_timeout = 5000,
                                                       .idle_timeout = 5000,
                                                       .max_connections = 100};
    struct err err;

    *h = (struct host){.loop = loop_new()};
    h->server = http_server_new(h->loop, &options, on_request, h);
    assert_int_equal(http_server_listen(h->server, "127.0.0.1:0", &err), 0);
    snprintf(h->origin, sizeof h->origin, "http://%s", http_server_address(h->server, 0));
}

static void on_server_closed(void *arg)
{
    struct host *h = arg;
    h->closed++;
}

static void host_close(struct host *h)
{
    http_server_close(h->server, on_server_closed, h);
    WAIT(h->loop, h->closed);
    loop_free(h->loop);
}
/* --- tests --- */

static void test_methods(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);
    const struct {
        const char *method, *body, *seen, *answer;
    } rows[] = {
        {"GET", NULL, "GET /a?b=c  yes with an empty one", "hello"},
        {"POST", "{\"x\":1}", "POST /a?b=c {\"x\":1} yes with an empty one", "{\"x\":1}"},
        {"DELETE", NULL, "DELETE /a?b=c  yes with an empty one", "hello"},
        {"POST", "", "POST /a?b=c  yes with an empty one", "hello"},
        {"GET", NULL, "GET /a?b=c  yes with an empty one", "hello"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        start(c, &r, rows[i].method, h.origin, "/a?b=c", rows[i].body);
        WAIT(h.loop, r.dones);
        assert_int_equal(r.code, 0);
        assert_int_equal(r.status, 200);
        assert_int_equal(r.heads, 1);
        assert_true(r.delivered);
        assert_string_equal(r.type, "text/plain");
        assert_string_equal(h.last, rows[i].seen);
        assert_body(r, rows[i].answer);
        reply_fini(&r);
    }
    /* All requests used one connection, one after the other. */
    for (int i = 1; i < h.requests; i++)
        assert_string_equal(h.peers[i], h.peers[0]);
    http_client_free(c);
    host_close(&h);
}

/* Two clients share the connections of their loop, and the last one closes them. */
static void test_shared_connections(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    host_open(&h);
    int fds = count_fds();
    struct http_client *one = http_client_new(h.loop), *two = http_client_new(h.loop);
    start(one, &r, "GET", h.origin, "/", NULL);
    WAIT(h.loop, r.dones);
    reply_fini(&r);
    http_client_free(one);
    run_for(h.loop, 5);
    start(two, &r, "GET", h.origin, "/", NULL);
    WAIT(h.loop, r.dones);
    reply_fini(&r);
    assert_string_equal(h.peers[0], h.peers[1]);
    http_client_free(two);
    WAIT(h.loop, count_fds() == fds);

    /* The next client opens new connections. */
    one = http_client_new(h.loop);
    start(one, &r, "GET", h.origin, "/", NULL);
    WAIT(h.loop, r.dones);
    assert_int_equal(r.status, 200);
    reply_fini(&r);
    http_client_free(one);
    host_close(&h);
}

static void test_error_status_has_a_body(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);
    start(c, &r, "POST", h.origin, "/missing", "{}");
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.status, 404);
    assert_body(r, "not here");
    assert_int_equal(r.request.n, 2); /* the request's body is returned for a retry */
    assert_memory_equal(r.request.p, "{}", 2);
    reply_fini(&r);
    http_client_free(c);
    host_close(&h);
}

static void test_large_bodies_both_ways(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    enum { SIZE = 3 << 20 };
    char *big = mem_alloc(SIZE + 1);
    memset(big, 'x', SIZE);
    big[SIZE] = '\0';
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);
    start(c, &r, "POST", h.origin, "/", big);
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.body.n, SIZE);
    assert_memory_equal(r.body.p, big, SIZE);
    assert_true(r.chunks > 1);
    reply_fini(&r);
    mem_free(big);
    http_client_free(c);
    host_close(&h);
}

/* The head and each piece arrive when they are sent, not when the answer is complete. */
static void test_stream(void **state)
{
    (void)state;
    struct host h;
    struct reply r, other;
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);
    start(c, &r, "GET", h.origin, "/stream", NULL);
    WAIT(h.loop, r.heads);
    assert_string_equal(r.type, "text/event-stream");
    assert_string_equal(r.kind, "live");
    http_stream_write(h.open, SPAN("one"));
    WAIT(h.loop, r.body.n == 3);
    run_for(h.loop, 30);
    http_stream_write(h.open, SPAN("two"));
    WAIT(h.loop, r.body.n == 6);

    /* A stream that stays open does not block other fetches. */
    start(c, &other, "GET", h.origin, "/", NULL);
    WAIT(h.loop, other.dones);
    reply_fini(&other);

    assert_int_equal(r.dones, 0);
    http_stream_end(h.open);
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, 0);
    assert_body(r, "onetwo");
    reply_fini(&r);
    http_client_free(c);
    host_close(&h);
}

static void test_cancel(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);

    /* Cancelled in the middle of a stream, outside of callbacks. The server notices. */
    start(c, &r, "GET", h.origin, "/stream", NULL);
    WAIT(h.loop, r.heads);
    http_stream_write(h.open, SPAN("one"));
    WAIT(h.loop, r.body.n == 3);
    http_fetch_cancel(r.fetch);
    WAIT(h.loop, h.gone == 1);
    assert_int_equal(r.dones, 0);
    reply_fini(&r);

    /* Cancelled inside the fetch's own callbacks. */
    start(c, &r, "GET", h.origin, "/stream", NULL);
    r.cancel_in_head = true;
    WAIT(h.loop, h.gone == 2);
    assert_int_equal(r.heads, 1);
    start(c, &r, "GET", h.origin, "/stream", NULL);
    r.cancel_in_chunk = true;
    WAIT(h.loop, r.heads);
    http_stream_write(h.open, SPAN("one"));
    WAIT(h.loop, h.gone == 3);
    http_client_free(c);
    run_for(h.loop, 20);
    assert_int_equal(r.chunks, 1);
    assert_int_equal(r.dones, 0);
    reply_fini(&r);

    /* Cancelled before the request is sent, and while it waits for a response. */
    c = http_client_new(h.loop);
    start(c, &r, "GET", h.origin, "/stream", NULL);
    http_fetch_cancel(r.fetch);
    run_for(h.loop, 20);
    start(c, &r, "POST", h.origin, "/never", "x");
    WAIT(h.loop, h.open);
    http_fetch_cancel(r.fetch);
    WAIT(h.loop, h.gone == 4);
    assert_int_equal(r.heads + r.dones, 0);

    /* Cancelled by freeing the client. */
    start(c, &r, "POST", h.origin, "/never", "x");
    WAIT(h.loop, h.open);
    http_client_free(c);
    WAIT(h.loop, h.gone == 5);
    assert_int_equal(r.heads + r.dones, 0);
    host_close(&h);
}

static void test_redirects(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    host_open(&h);
    struct http_client *c = http_client_new(h.loop);

    start(c, &r, "POST", h.origin, "/moved", "body"); /* method, body and headers are kept */
    WAIT(h.loop, r.dones);
    assert_int_equal(r.heads, 1);
    assert_int_equal(r.status, 200);
    assert_string_equal(h.last, "POST /there?x=1 body yes with an empty one");
    assert_body(r, "body");
    reply_fini(&r);

    int before = h.requests;
    start(c, &r, "POST", h.origin, "/away", "body"); /* another host: not followed */
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.status, 307);
    assert_body(r, "go there");
    assert_int_equal(h.requests, before + 1);
    reply_fini(&r);

    before = h.requests;
    start(c, &r, "GET", h.origin, "/round", NULL); /* followed three times, then returned */
    WAIT(h.loop, r.dones);
    assert_int_equal(r.status, 307);
    assert_int_equal(h.requests, before + 4);
    reply_fini(&r);
    http_client_free(c);
    host_close(&h);
}

static void test_connection_refused(void **state)
{
    (void)state;
    struct host h;
    struct reply r;
    struct err err;
    char origin[64];
    host_open(&h);
    struct listener *taken = listener_open(h.loop, "127.0.0.1:0", NULL, NULL, &err);
    snprintf(origin, sizeof origin, "http://%s", listener_address(taken));
    listener_close(taken);
    struct http_client *c = http_client_new(h.loop);
    start(c, &r, "POST", origin, "/", "x");
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, -ECONNREFUSED);
    assert_false(r.delivered);
    assert_non_null(strstr(r.why, strstr(origin, "127")));
    assert_non_null(strstr(r.why, "refused"));
    reply_fini(&r);

    start(c, &r, "GET", "http://no.such.name.invalid", "/secret?key=1", NULL);
    WAIT(h.loop, r.dones);
    assert_int_equal(r.code, -EHOSTUNREACH);
    assert_false(r.delivered);
    assert_string_equal(r.why, "no.such.name.invalid:80: there is no host of that name");
    reply_fini(&r);

    start(c, &r, "GET", "file:///etc/passwd", "", NULL); /* other protocols are refused */
    WAIT(h.loop, r.dones);
    assert_true(r.code < 0);
    assert_int_equal(r.body.n, 0);
    reply_fini(&r);
    http_client_free(c);
    host_close(&h);
}
static void test_resolving_urls(void **state)
{
    (void)state;
    static const struct {
        const char *base, *reference, *found;
    } rows[] = {
        {"http://h:1/a/sse", "/message?id=1", "http://h:1/message?id=1"},
        {"http://h:1/a/sse", "message?id=1", "http://h:1/a/message?id=1"},
        {"http://h:1/a/sse", "?id=1", "http://h:1/a/sse?id=1"},
        {"http://h:1/a/sse", "http://h:1/x", "http://h:1/x"},
        {"http://h:1/a/sse", "http://H:1/x", "http://H:1/x"},
        {"http://h/a", "http://h:80/x", "http://h:80/x"},
        {"http://h/a", "https://h/x", "https://h/x"},
        {"https://h/a", "http://h/x", NULL},
        {"http://h:1/a/sse", "http://h:2/x", NULL},
        {"http://h:1/a/sse", "//evil/x", NULL},
        {"http://h:1/a/sse", "http://evil/x", NULL},
        {"http://h:1/a/sse", "http://h:1@evil/x", NULL},
        {"http://h:1/a/sse", "file:///etc/passwd", NULL},
        {"http://h:1/a/sse", "/x\r\nX-Evil: 1", NULL},
        {"no url", "/x", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *found = http_url_resolve(rows[i].base, span_str(rows[i].reference));
        if (rows[i].found)
            assert_string_equal(found, rows[i].found);
        else
            assert_null(found);
        mem_free(found);
    }
    char *host = http_url_host("https://user:password@h/path?key=1");
    assert_string_equal(host, "h:443");
    mem_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_shared_connections),
        cmocka_unit_test(test_error_status_has_a_body),
        cmocka_unit_test(test_large_bodies_both_ways),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_connection_refused),
        cmocka_unit_test(test_resolving_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
