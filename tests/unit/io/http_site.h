/*
 * An HTTP server for the tests of io/http_server.
 */
#ifndef RIALTO_TESTS_HTTP_SITE_H
#define RIALTO_TESTS_HTTP_SITE_H

#include "io/http_server.h"

#include "io_test.h"

/* A server whose handler answers by path, or keeps the exchange for the test to answer. */
struct site {
    struct loop *loop;
    struct http_server *server;
    char address[64];
    struct http_exchange *kept[8];
    int n_kept, n_gone, n_handled;
    bool closed;
    struct party upgraded;
    struct buf early;
};

static inline void on_gone(void *owner)
{
    ((struct site *)owner)->n_gone++;
}

static inline void upgrade(struct site *site, struct http_exchange *x)
{
    struct span early;
    struct stream *s = http_upgrade(x, SPAN("Upgrade: echo\r\nConnection: Upgrade\r\n"), &early);
    buf_span(&site->early, early);
    site->upgraded = (struct party){.stream = s};
    stream_rebind(s, &party_events, &site->upgraded);
}

static inline void handler(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct site *site = owner;

    site->n_handled++;
    if (span_is(req->path, "/echo")) {
        http_respond(x, 200, "text/plain", SPAN("X-Extra: yes\r\n"), req->body);
    } else if (span_is(req->path, "/built")) {
        struct buf *body = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_str(body, "{\"target\":\"");
        buf_span(body, req->target);
        buf_str(body, "\"}");
        http_respond_end(x);
    } else if (span_is(req->path, "/marked")) {
        http_exchange_add_headers(x, SPAN("X-One: 1\r\n"));
        http_exchange_add_headers(x, SPAN("X-Two: 2\r\n"));
        http_stream_begin(x, 200, "text/plain", SPAN("X-Own: 0\r\n"));
        http_stream_write(x, SPAN("marked"));
        http_stream_end(x);
    } else if (span_is(req->path, "/none")) {
        http_respond(x, 204, NULL, SPAN_EMPTY, SPAN_EMPTY);
    } else if (span_is(req->path, "/big")) {
        struct buf *body = http_respond_begin(x, 200, "text/plain", SPAN_EMPTY);
        memset(buf_room(body, 8000000), 'b', 8000000);
        body->n += 8000000;
        http_respond_end(x);
    } else if (span_is(req->path, "/upgrade")) {
        upgrade(site, x);
    } else if (span_is(req->path, "/abort")) {
        http_exchange_abort(x, "not you again");
    } else {
        http_exchange_on_gone(x, on_gone, site);
        site->kept[site->n_kept++ % 8] = x;
    }
}

static inline void site_open_with(struct site *site, const struct http_server_options *options)
{
    struct err err;
    *site = (struct site){.loop = loop_new()};
    site->server = http_server_new(site->loop, options, handler, site);
    assert_int_equal(http_server_listen(site->server, "127.0.0.1:0", &err), 0);
    snprintf(site->address, sizeof site->address, "%s", http_server_address(site->server, 0));
    assert_null(http_server_address(site->server, 1));
}

static const struct http_server_options usual = {
    .max_body = 100000,
    .head_timeout = 5000,
    .body_timeout = 5000,
    .idle_timeout = 5000,
    .max_connections = 2000,
};

static inline void site_open(struct site *site)
{
    site_open_with(site, &usual);
}

static inline void on_site_closed(void *arg)
{
    ((struct site *)arg)->closed = true;
}

static inline void site_close(struct site *site)
{
    http_server_close(site->server, on_site_closed, site);
    assert_false(site->closed); /* the callback comes from the loop */
    WAIT(site->loop, site->closed);
    buf_fini(&site->early);
    loop_free(site->loop);
}

static inline void ask(struct party *client, const char *request)
{
    stream_write(client->stream, span_str(request));
}

#define GET(path)     "GET " path " HTTP/1.1\r\nHost: t\r\n\r\n"
#define ECHO(n, body) "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: " n "\r\n\r\n" body

#endif
