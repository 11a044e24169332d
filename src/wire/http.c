/* The parser of HTTP requests, access to headers, query and bearer token, and the writers of
 * response heads and chunks. Called by the HTTP server and WebSocket files of io/, hub/front.c and
 * the HTTP endpoints. */
#include "wire/http.h"

#include "base/mem.h"
#include "wire/webform.h"

/* llhttp has an enumerator for each method, and one of them collides with our HTTP_HEAD. */
#define HTTP_HEAD LLHTTP_METHOD_HEAD
#include <llhttp.h>
#undef HTTP_HEAD

/* Capacity that a parser keeps between requests, so that thousands of connections stay cheap. */
enum { KEEP_HEAD = 512, KEEP_BODY = 2048, KEEP_HEADERS = 16 };

enum phase { IN_HEAD, IN_BODY, IN_CHUNKS, DONE, BROKEN };

struct http_parser {
    llhttp_t llhttp;
    struct http_request request;
    struct buf head, body;
    struct http_header *headers;
    size_t headers_cap;
    size_t max_body;
    size_t left; /* bytes that this phase may still take */
    const char *why;
    int status;
    enum phase phase;
    bool expects_continue;
    char last; /* the last byte that was parsed of a chunked body */
};

/* --- llhttp's callbacks; a result other than 0 makes llhttp stop --- */

static int refuse(struct http_parser *p, int status, const char *why)
{
    p->status = status;
    p->why = why;
    return -1;
}

static bool version_is_ours(const struct http_parser *p)
{
    return p->llhttp.http_major == 1 && p->llhttp.http_minor <= 1;
}

static int on_version_complete(llhttp_t *llhttp)
{
    struct http_parser *p = llhttp->data;
    return version_is_ours(p) ? 0 : refuse(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
}

static int on_chunk_header(llhttp_t *llhttp)
{
    struct http_parser *p = llhttp->data;

    if (llhttp->content_length > p->max_body - p->body.n)
        return refuse(p, 413, "the body is too large");
    return 0;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t n)
{
    struct http_parser *p = llhttp->data;

    buf_bytes(&p->body, at, n);
    return 0;
}

static int stop_here(llhttp_t *llhttp)
{
    (void)llhttp;
    return HPE_PAUSED;
}

static const llhttp_settings_t callbacks = {
    .on_version_complete = on_version_complete,
    .on_headers_complete = stop_here,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = stop_here,
};

/*
 * --- a complete head ---
 *
 * llhttp has checked every byte, so lines need only be split. But llhttp tolerates some line ends,
 * blanks and folded lines that a proxy in front of us may read differently; here they are refused.
 */

/* The CRLF that ends the line at `at`; NULL when there is none. */
static const char *line_end(const char *at, const char *end)
{
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    return lf && lf != at && lf[-1] == '\r' ? lf - 1 : NULL;
}

/* Exactly "METHOD target HTTP/1.x". */
static bool read_request_line(struct http_parser *p, struct span line)
{
    static const struct span versions[] = {{" HTTP/1.0", 9}, {" HTTP/1.1", 9}};
    struct span version = versions[p->llhttp.http_minor];
    struct http_request *r = &p->request;

    r->method = span_str(llhttp_method_name((llhttp_method_t)p->llhttp.method));
    size_t around = r->method.n + 1 + version.n;
    if (line.n <= around || !span_starts(line, r->method) || line.p[r->method.n] != ' ' ||
        !span_eq(span_from(line, line.n - version.n), version))
        return false;
    r->target = span_cut(line, r->method.n + 1, line.n - around);
    if (span_find(r->target, ' ') < r->target.n)
        return false;
    size_t mark = span_find(r->target, '?');
    r->path = span_cut(r->target, 0, mark);
    r->query = span_from(r->target, mark + 1);
    return true;
}

static bool read_header(struct http_parser *p, struct span line)
{
    size_t colon = span_find(line, ':');

    if (colon == 0 || colon == line.n || line.p[0] == ' ' || line.p[0] == '\t')
        return false;
    if (p->request.n_headers == p->headers_cap) {
        p->headers_cap = p->headers_cap ? 2 * p->headers_cap : KEEP_HEADERS;
        p->headers = mem_resize(p->headers, p->headers_cap * sizeof *p->headers);
    }
    struct http_header *h = &p->headers[p->request.n_headers++];
    h->name = span_of(line.p, colon);
    p->request.names |= http_name_bit(h->name);
    h->value = span_trim(span_of(line.p + colon + 1, line.n - colon - 1));
    return true;
}

static int read_head(struct http_parser *p)
{
    const char *at = p->head.p, *end = at + p->head.n;

    /* RFC 9112 2.2: blank lines before the request line are skipped. */
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    const char *stop = line_end(at, end);
    bool fine = stop && read_request_line(p, span_of(at, (size_t)(stop - at)));
    while (fine) {
        at = stop + 2;
        stop = line_end(at, end);
        if (!stop || stop == at)
            break;
        if (p->request.n_headers == HTTP_MAX_HEADERS)
            return refuse(p, 431, "too many headers");
        fine = read_header(p, span_of(at, (size_t)(stop - at)));
    }
    p->request.headers = p->headers;
    /* The blank line must be the last line of the head, where llhttp stopped. */
    fine = fine && stop && stop + 2 == end;
    return fine ? 0 : refuse(p, 400, "a line that is not of the grammar");
}

/* Checks that llhttp does not make, or not strictly enough. */
static int check_headers(struct http_parser *p)
{
    const struct http_request *r = &p->request;
    bool modern = p->llhttp.http_minor == 1;
    size_t hosts = 0, codings = 0;

    for (size_t i = 0; i < r->n_headers; i++) {
        const struct http_header *h = &r->headers[i];
        switch (h->name.n) {
        case 4:
            hosts += span_eq_nocase(h->name, SPAN("host"));
            break;
        case 6:
            if (modern && span_eq_nocase(h->name, SPAN("expect")) &&
                span_eq_nocase(h->value, SPAN("100-continue")))
                p->expects_continue = true;
            break;
        case 14:
            if (!h->value.n && span_eq_nocase(h->name, SPAN("content-length")))
                return refuse(p, 400, "empty Content-Length");
            break;
        case 17:
            if (!span_eq_nocase(h->name, SPAN("transfer-encoding")))
                break;
            if (codings++ || !span_eq_nocase(h->value, SPAN("chunked")))
                return refuse(p, 501, "no transfer coding but chunked is known here");
            if (!modern || (p->llhttp.flags & F_CONTENT_LENGTH))
                return refuse(p, 400, "Transfer-Encoding where it must not be");
            break;
        }
    }
    if (hosts > 1 || (modern && !hosts))
        return refuse(p, 400, "there must be one Host header");
    if (p->llhttp.method == HTTP_CONNECT)
        return refuse(p, 501, "CONNECT is for proxies");
    return 0;
}

static enum http_state broken(struct http_parser *p, int status, const char *why)
{
    if (!p->status)
        refuse(p, status, why);
    p->phase = BROKEN;
    return HTTP_BAD;
}

static enum http_state done(struct http_parser *p)
{
    p->request.body = buf_view(&p->body);
    p->phase = DONE;
    return HTTP_COMPLETE;
}

static enum http_state finish_head(struct http_parser *p)
{
    struct http_request *r = &p->request;
    bool chunked = p->llhttp.flags & F_CHUNKED;

    if (!version_is_ours(p)) /* a request line without a version, as in HTTP/0.9 */
        return broken(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (read_head(p) || check_headers(p))
        return broken(p, 400, NULL);
    r->keep_alive = llhttp_should_keep_alive(&p->llhttp);
    r->v1_0 = p->llhttp.http_minor == 0;
    r->upgrade = p->llhttp.upgrade && p->llhttp.http_minor == 1;
    if (!chunked && p->llhttp.content_length > p->max_body)
        return broken(p, 413, "the body is too large");
    if (!chunked && !p->llhttp.content_length)
        return done(p);

    /* Each byte of the body may come as a chunk of its own, which takes six bytes; chunk extensions
     * and trailers are bounded like a head. */
    p->left = chunked ? HTTP_MAX_HEAD + 6 * p->max_body : (size_t)p->llhttp.content_length;
    p->phase = chunked ? IN_CHUNKS : IN_BODY;
    return HTTP_HEAD;
}

/* --- the parser --- */

struct http_parser *http_parser_new(size_t max_body)
{
    struct http_parser *p = MEM_NEW(struct http_parser);

    p->max_body = max_body < SIZE_MAX / 16 ? max_body : SIZE_MAX / 16; /* sums must not overflow */
    p->left = HTTP_MAX_HEAD;
    llhttp_init(&p->llhttp, HTTP_REQUEST, &callbacks);
    p->llhttp.data = p;
    return p;
}

void http_parser_free(struct http_parser *p)
{
    if (!p)
        return;
    buf_fini(&p->head);
    buf_fini(&p->body);
    mem_free(p->headers);
    mem_free(p);
}

/* Let llhttp read as much of the chunk as this phase may take. true when the phase is complete. */
static bool run(struct http_parser *p, struct span *chunk, size_t *consumed)
{
    chunk->n = chunk->n < p->left ? chunk->n : p->left;
    llhttp_resume(&p->llhttp);
    llhttp_errno_t rc = llhttp_execute(&p->llhttp, chunk->p, chunk->n);
    if (rc == HPE_PAUSED)
        chunk->n = (size_t)(llhttp_get_error_pos(&p->llhttp) - chunk->p);
    else if (rc != HPE_OK)
        broken(p, rc == HPE_INVALID_VERSION && !version_is_ours(p) ? 505 : 400,
               llhttp_get_error_reason(&p->llhttp));
    p->left -= chunk->n;
    *consumed = chunk->n;
    return rc == HPE_PAUSED;
}

static enum http_state feed_head(struct http_parser *p, struct span chunk, size_t *consumed)
{
    bool ended = run(p, &chunk, consumed);

    if (p->phase == BROKEN)
        return HTTP_BAD;
    buf_span(&p->head, chunk);
    if (ended)
        return finish_head(p);
    return p->left ? HTTP_MORE : broken(p, 431, "the head is too large");
}

static enum http_state feed_body(struct http_parser *p, struct span chunk, size_t *consumed)
{
    chunk = span_cut(chunk, 0, p->left);
    buf_span(&p->body, chunk);
    p->left -= chunk.n;
    *consumed = chunk.n;
    return p->left ? HTTP_MORE : done(p);
}

static enum http_state feed_chunks(struct http_parser *p, struct span chunk, size_t *consumed)
{
    bool ended = run(p, &chunk, consumed);

    if (p->phase == BROKEN)
        return HTTP_BAD;
    if (!ended) {
        p->last = chunk.p[chunk.n - 1];
        return p->left ? HTTP_MORE : broken(p, 413, "the body's framing is too large");
    }
    /* llhttp accepts a bare LF as the blank line that ends the chunks; we do not. */
    char before = chunk.n > 1 ? chunk.p[chunk.n - 2] : p->last;
    return before == '\r' ? done(p) : broken(p, 400, "a line that is not of the grammar");
}

enum http_state http_parser_feed(struct http_parser *p, struct span chunk, size_t *consumed)
{
    *consumed = 0;
    if (!chunk.n && p->phase < DONE)
        return HTTP_MORE;
    switch (p->phase) {
    case IN_HEAD:
        return feed_head(p, chunk, consumed);
    case IN_BODY:
        return feed_body(p, chunk, consumed);
    case IN_CHUNKS:
        return feed_chunks(p, chunk, consumed);
    case DONE:
        return HTTP_COMPLETE;
    case BROKEN:
        break;
    }
    return HTTP_BAD;
}

const struct http_request *http_parser_request(const struct http_parser *p)
{
    return &p->request;
}

bool http_parser_expects_continue(const struct http_parser *p)
{
    return p->expects_continue;
}

size_t http_parser_body(const struct http_parser *p)
{
    return p->body.cap;
}

int http_parser_status(const struct http_parser *p)
{
    return p->status;
}

const char *http_parser_why(const struct http_parser *p)
{
    return p->why;
}

void http_parser_next(struct http_parser *p)
{
    llhttp_reset(&p->llhttp);
    p->request = (struct http_request){0};
    buf_reset(&p->head, KEEP_HEAD);
    buf_reset(&p->body, KEEP_BODY);
    if (p->headers_cap > KEEP_HEADERS) {
        mem_free(p->headers);
        p->headers = NULL;
        p->headers_cap = 0;
    }
    p->left = HTTP_MAX_HEAD;
    p->phase = IN_HEAD;
    p->status = 0;
    p->why = NULL;
    p->expects_continue = false;
}

/* --- looking into a request --- */

struct span http_find_header(const struct http_request *r, struct span name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (span_eq_nocase(r->headers[i].name, name))
            return r->headers[i].value;
    return SPAN_EMPTY;
}

bool http_is_embedded(const struct http_request *r)
{
    struct span site = http_header(r, "sec-fetch-site"), as = http_header(r, "sec-fetch-dest");

    if (http_header(r, "origin").p || !site.p || !span_is(site, "cross-site"))
        return false;
    return !as.p || !span_is(as, "document") || !span_is(r->method, "GET");
}

static bool is_media_type(struct span value, const char *type)
{
    return span_eq_nocase(span_trim(span_cut(value, 0, span_find(value, ';'))), span_str(type));
}

bool http_body_is(const struct http_request *r, const char *type)
{
    return is_media_type(http_header(r, "content-type"), type);
}

bool http_accepts(const struct http_request *r, const char *type)
{
    struct span one;

    for (size_t i = 0; i < r->n_headers; i++) {
        struct span rest = r->headers[i].value;
        if (!span_eq_nocase(r->headers[i].name, SPAN("accept")))
            continue;
        while (http_next_item(&rest, &one))
            if (is_media_type(one, type))
                return true;
    }
    return false;
}

bool http_next_item(struct span *list, struct span *item)
{
    while (list->n) {
        size_t comma = span_find(*list, ',');
        *item = span_trim(span_cut(*list, 0, comma));
        *list = span_from(*list, comma + 1);
        if (item->n)
            return true;
    }
    return false;
}

struct span http_bearer(const struct http_request *req)
{
    struct span value = http_header(req, "authorization");

    if (!span_eq_nocase(span_cut(value, 0, 7), SPAN("Bearer ")))
        return SPAN_EMPTY;
    return span_trim(span_from(value, 7));
}

struct span http_query(struct span query, const char *name, struct buf *scratch)
{
    return webform_get(query, name, scratch);
}

/* --- responses --- */

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].status == status)
            return rows[i].reason;
    return "Unknown";
}

void http_put_status(struct buf *out, int status)
{
    buf_str(out, "HTTP/1.1 ");
    buf_u64(out, (uint64_t)status);
    buf_char(out, ' ');
    buf_str(out, http_reason(status));
    buf_str(out, "\r\n");
}

/* A line end inside a value would start another header: such bytes become blanks. */
void http_put_header(struct buf *out, const char *name, struct span value)
{
    buf_str(out, name);
    buf_str(out, ": ");
    char *copy = buf_room(out, value.n + 2);
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        copy[i] = c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    }
    out->n += value.n;
    buf_str(out, "\r\n");
}

void http_put_chunk(struct buf *out, struct span data)
{
    char digits[2 * sizeof data.n + 2];
    size_t at = sizeof digits;

    if (!data.n)
        return;
    digits[--at] = '\n';
    digits[--at] = '\r';
    for (size_t n = data.n; n; n >>= 4)
        digits[--at] = "0123456789abcdef"[n & 15];
    buf_bytes(out, digits + at, sizeof digits - at);
    buf_span(out, data);
    buf_str(out, "\r\n");
}

void http_put_last_chunk(struct buf *out)
{
    buf_str(out, "0\r\n\r\n");
}
