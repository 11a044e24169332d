/* What comes out of the HTTP parser, as text: see replay.h. */
#ifndef RIALTO_TESTS_REPLAY_HTTP_H
#define RIALTO_TESTS_REPLAY_HTTP_H

#include "replay.h"
#include "wire/http.h"

static inline void replay_request(struct buf *log, const struct http_request *r)
{
    replay_put(log, "method", r->method);
    replay_put(log, "path", r->path);
    if (r->query.n)
        replay_put(log, "query", r->query);
    for (size_t i = 0; i < r->n_headers; i++) {
        replay_put(log, "name", r->headers[i].name);
        replay_put(log, "value", r->headers[i].value);
    }
}

/*
 * Logs one parser state; false when nothing more may be fed. `at` is the number of bytes consumed
 * so far: it shows that the requests ended at the same byte.
 */
static inline bool replay_http_state(struct buf *log, struct http_parser *p, enum http_state state,
                                     size_t at)
{
    const struct http_request *r = http_parser_request(p);

    switch (state) {
    case HTTP_MORE:
        return true;
    case HTTP_HEAD:
        buf_printf(log, "head at %zu%s\n", at,
                   http_parser_expects_continue(p) ? ", expects continue" : "");
        replay_put(log, "method", r->method);
        return true;
    case HTTP_COMPLETE:
        buf_printf(log, "complete at %zu%s%s\n", at, r->keep_alive ? "" : ", close",
                   r->upgrade ? ", upgrade" : "");
        replay_request(log, r);
        if (r->body.n)
            replay_put(log, "body", r->body);
        bool more = r->keep_alive && !r->upgrade;
        http_parser_next(p);
        return more;
    case HTTP_BAD:
        break;
    }
    buf_printf(log, "bad %d %s\n", http_parser_status(p), http_parser_why(p));
    return false;
}

static inline void replay_http(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    struct http_parser *p = http_parser_new(cap);
    size_t at = 0;
    bool more = true;

    while (in.n && more) {
        char *memory;
        struct span rest = cuts_next(&cuts, &in, &memory);
        while (rest.n && more) {
            /* The piece is freed before the request is read: the request must not point into it. */
            size_t used;
            enum http_state state = http_parser_feed(p, rest, &used);
            at += used;
            struct span behind = span_from(rest, used);
            char *copy = mem_span(behind);
            mem_free(memory);
            memory = copy;
            rest = span_of(copy, behind.n);
            more = replay_http_state(log, p, state, at);
        }
        mem_free(memory);
    }
    http_parser_free(p);
}

#endif
