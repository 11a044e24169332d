/*
 * http_reply: a fetch and everything received for it, for the tests that use io/http_client.
 */
#ifndef RIALTO_TESTS_HTTP_REPLY_H
#define RIALTO_TESTS_HTTP_REPLY_H

#include "io/http_client.h"
#include "io_test.h"

struct reply {
    struct http_fetch *fetch; /* NULL when done */
    int heads, chunks, dones, status, code;
    bool delivered, cancel_in_head, cancel_in_chunk;
    char type[64], kind[64], why[256];
    struct buf body, request;
};

static inline void reply_head(void *owner, const struct http_head *head)
{
    struct reply *r = owner;
    r->heads++;
    r->status = head->status;
    snprintf(r->type, sizeof r->type, SPAN_FMT, SPAN_ARG(http_head_value(head, "content-TYPE")));
    snprintf(r->kind, sizeof r->kind, SPAN_FMT, SPAN_ARG(http_head_value(head, "X-Kind")));
    assert_null(http_head_value(head, "X-None").p);
    if (r->cancel_in_head)
        http_fetch_cancel(r->fetch);
}

static inline void reply_chunk(void *owner, struct span chunk)
{
    struct reply *r = owner;
    assert_int_equal(r->heads, 1);
    r->chunks++;
    buf_span(&r->body, chunk);
    if (r->cancel_in_chunk)
        http_fetch_cancel(r->fetch);
}

static inline void reply_done(void *owner, int code, const char *why, bool delivered)
{
    struct reply *r = owner;
    r->dones++;
    r->code = code;
    r->delivered = delivered;
    snprintf(r->why, sizeof r->why, "%s", why);
    r->request = http_fetch_take_body(r->fetch);
    r->fetch = NULL;
}

static const struct http_fetch_events reply_events = {reply_head, reply_chunk, reply_done};

static inline void start(struct http_client *c, struct reply *r, const char *method,
                         const char *origin, const char *path, const char *body)
{
    static const char *const headers[] = {"X-Sent: yes", "X-Empty: ", NULL};
    char url[128];
    struct buf copy = {0};

    *r = (struct reply){0};
    snprintf(url, sizeof url, "%s%s", origin, path);
    if (body)
        buf_str(&copy, body);
    r->fetch = http_fetch_start(
        c,
        &(struct http_fetch_spec){
            .method = method, .url = url, .headers = headers, .body = body ? &copy : NULL},
        &reply_events, r);
    assert_int_equal(r->heads + r->dones, 0); /* no callback inside http_fetch_start */
    assert_null(copy.p);
}

static inline void reply_fini(struct reply *r)
{
    buf_fini(&r->body);
    buf_fini(&r->request);
}

#define assert_body(r, text)                                                                       \
    do {                                                                                           \
        assert_int_equal((r).body.n, strlen(text));                                                \
        assert_memory_equal((r).body.p, text, strlen(text));                                       \
    } while (0)

#endif
