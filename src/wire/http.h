/*
 * http: HTTP/1.1 requests parsed from a byte stream, and response heads written into a buffer.
 *
 * llhttp does the tokenising (strict); this file adds the checks that llhttp does not make: size of
 * the head, number of headers, a Host header in 1.1, no obsolete line folding, size of the body.
 * One parser handles one connection and stops after each complete request, so that pipelined
 * requests are answered in order: feed the rest again when the response is sent.
 */
#ifndef RIALTO_WIRE_HTTP_H
#define RIALTO_WIRE_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum { HTTP_MAX_HEAD = 16 * 1024, HTTP_MAX_HEADERS = 100 };

struct http_header {
    struct span name, value;
};

/* One request. Spans are valid until http_parser_next. */
struct http_request {
    struct span method;
    struct span target; /* as sent */
    struct span path;   /* target up to '?', not decoded */
    struct span query;  /* behind '?', may be empty */
    struct span body;
    const struct http_header *headers;
    size_t n_headers;
    uint64_t names; /* http_name_bit of all headers; 0 = not computed */
    bool keep_alive;
    bool v1_0;    /* HTTP/1.0: the client does not understand chunked answers */
    bool upgrade; /* Connection: upgrade was asked for; bytes behind the head are not HTTP */
};

/* A bit for names of this length and first letter: a quick way to see that a header is absent. */
static inline uint64_t http_name_bit(struct span name)
{
    return (uint64_t)1 << ((name.n * 7 + ((unsigned char)name.p[0] & 0x1f)) & 63);
}

struct span http_find_header(const struct http_request *r, struct span name);

/* Value of a header (first occurrence, case-insensitive), or an empty span with p == NULL. */
static inline struct span http_header(const struct http_request *r, const char *name)
{
    struct span wanted = span_str(name);
    bool absent = r->names && !(r->names & http_name_bit(wanted));

    return absent ? SPAN_EMPTY : http_find_header(r, wanted);
}

/* The next item of a comma-separated header value, trimmed; false at the end. Empty items are
 * skipped. */
bool http_next_item(struct span *list, struct span *item);
/* Is the body of this media type? Parameters such as a charset do not matter. */
bool http_body_is(const struct http_request *r, const char *type);
/* Does the client name this media type in Accept? A wildcard does not count: programs that know
 * nothing of event streams send one. */
bool http_accepts(const struct http_request *r, const char *type);
/* The token of "Authorization: Bearer TOKEN"; empty when there is none. */
struct span http_bearer(const struct http_request *req);
/* Was the request made by a page of another site, for a picture, a script or a frame, or by a form?
 * Not all such requests have an Origin, but browsers mark them with Sec-Fetch headers. False for a
 * link that a person follows. */
bool http_is_embedded(const struct http_request *r);
/* Value of a query parameter, percent-decoded into `scratch`; p == NULL when absent. */
struct span http_query(struct span query, const char *name, struct buf *scratch);

enum http_state {
    HTTP_MORE,     /* needs more bytes */
    HTTP_HEAD,     /* the head is complete and a body follows, which may be refused unread */
    HTTP_COMPLETE, /* request complete; the consumed bytes end right behind the request */
    HTTP_BAD,      /* malformed: answer with `status`, for the reason `why`, and close */
};

struct http_parser;
struct http_parser *http_parser_new(size_t max_body);
void http_parser_free(struct http_parser *p);
/*
 * Feed bytes; *consumed says how many were taken. HTTP_HEAD is returned once per request that has a
 * body (also for `Expect: 100-continue`, see http_parser_expects_continue); feed the rest to go on.
 * HTTP_COMPLETE and HTTP_BAD stay and take no more bytes until http_parser_next. Trailers of a
 * chunked body are skipped.
 */
enum http_state http_parser_feed(struct http_parser *p, struct span chunk, size_t *consumed);
const struct http_request *http_parser_request(const struct http_parser *p);
bool http_parser_expects_continue(const struct http_parser *p);
/* Bytes of memory that the body takes so far. */
size_t http_parser_body(const struct http_parser *p);
int http_parser_status(const struct http_parser *p);
const char *http_parser_why(const struct http_parser *p);
/* Forget the finished request and be ready for the next one. Buffers of a large request are
 * freed. */
void http_parser_next(struct http_parser *p);

/* The reason phrase of a status. */
const char *http_reason(int status);
/* "HTTP/1.1 200 OK\r\n", then append headers: */
void http_put_status(struct buf *out, int status);
void http_put_header(struct buf *out, const char *name, struct span value);
void http_put_chunk(struct buf *out, struct span data); /* one chunk; nothing for empty data */
void http_put_last_chunk(struct buf *out);

#endif
