#include "replay_http.h"
#include "replay_unit.h"

#define HOST "Host: h\r\n"

/* --- valid requests --- */

static void test_get(void **state)
{
    (void)state;
    assert_replay(replay_http,
                  SPAN("GET /mcp?a=1&b HTTP/1.1\r\nHost: h\r\nAccept:  */* \t\r\n\r\n"), 0,
                  "complete at 52\nmethod 3:GET\npath 4:/mcp\nquery 5:a=1&b\n"
                  "name 4:Host\nvalue 1:h\nname 6:Accept\nvalue 3:*/*\n");
}

static void test_post_with_length(void **state)
{
    (void)state;
    assert_replay(replay_http, SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"), 5,
                  "head at 47\nmethod 4:POST\ncomplete at 52\nmethod 4:POST\npath 1:/\n"
                  "name 4:Host\nvalue 1:h\nname 14:Content-Length\nvalue 1:5\nbody 5:hello\n");
}

static void test_post_without_body(void **state)
{
    (void)state;
    const char *expected = "complete at 47\nmethod 4:POST\npath 1:/\nname 4:Host\nvalue 1:h\n"
                           "name 14:Content-Length\nvalue 1:0\n";
    assert_replay(replay_http, SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"), 5,
                  expected);
    assert_replay(replay_http, SPAN("POST / HTTP/1.1\r\n" HOST "\r\n"), 5,
                  "complete at 28\nmethod 4:POST\npath 1:/\nname 4:Host\nvalue 1:h\n");
}

#define CHUNKED      "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_HEAD "head at 56\nmethod 4:POST\n"
#define CHUNKED_FIELDS                                                                             \
    "method 4:POST\npath 1:/\nname 4:Host\nvalue 1:h\nname 17:Transfer-Encoding\nvalue "           \
    "7:chunked\n"

static void test_chunked(void **state)
{
    (void)state;
    assert_replay(replay_http, SPAN(CHUNKED "5\r\nhello\r\n6;a=\"b\";c=d\r\n world\r\n0\r\n\r\n"),
                  11, CHUNKED_HEAD "complete at 92\n" CHUNKED_FIELDS "body 11:hello world\n");
    assert_replay(replay_http, SPAN(CHUNKED "0\r\n\r\n"), 11,
                  CHUNKED_HEAD "complete at 61\n" CHUNKED_FIELDS);
}

static void test_trailers_are_read_over(void **state)
{
    (void)state;
    assert_replay(replay_http, SPAN(CHUNKED "1\r\nx\r\n0\r\nHost: evil\r\nX-Sum: 1\r\n\r\n"), 11,
                  CHUNKED_HEAD "complete at 89\n" CHUNKED_FIELDS "body 1:x\n");
}

static void test_pipelined_requests_end_where_they_end(void **state)
{
    (void)state;
    assert_replay(replay_http,
                  SPAN("GET /1 HTTP/1.1\r\n" HOST "\r\n"
                       "PUT /2 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab"
                       "\r\nDELETE /3 HTTP/1.1\r\n" HOST "\r\nGE"),
                  5,
                  "complete at 28\nmethod 3:GET\npath 2:/1\nname 4:Host\nvalue 1:h\n"
                  "head at 75\nmethod 3:PUT\n"
                  "complete at 77\nmethod 3:PUT\npath 2:/2\nname 4:Host\nvalue 1:h\n"
                  "name 14:Content-Length\nvalue 1:2\nbody 2:ab\n"
                  "complete at 110\nmethod 6:DELETE\npath 2:/3\nname 4:Host\nvalue 1:h\n");
}

static void test_keep_alive(void **state)
{
    (void)state;
    assert_replay(replay_http, SPAN("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\nrest"), 5,
                  "complete at 46, close\nmethod 3:GET\npath 1:/\nname 4:Host\nvalue 1:h\n"
                  "name 10:Connection\nvalue 5:close\n");
    assert_replay(replay_http, SPAN("GET / HTTP/1.0\r\n\r\n"), 5,
                  "complete at 18, close\nmethod 3:GET\npath 1:/\n");
    assert_replay(replay_http, SPAN("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 5,
                  "complete at 42\nmethod 3:GET\npath 1:/\n"
                  "name 10:Connection\nvalue 10:Keep-Alive\n");
}

static void test_upgrade_leaves_the_rest_alone(void **state)
{
    (void)state;
    assert_replay(replay_http,
                  SPAN("GET /ws HTTP/1.1\r\n" HOST
                       "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x80"),
                  5,
                  "complete at 82, upgrade\nmethod 3:GET\npath 3:/ws\nname 4:Host\nvalue 1:h\n"
                  "name 10:Connection\nvalue 19:keep-alive, Upgrade\n"
                  "name 7:Upgrade\nvalue 9:websocket\n");
}

static void test_expect_continue(void **state)
{
    (void)state;
    assert_replay(
        replay_http,
        SPAN("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"), 5,
        "head at 68, expects continue\nmethod 3:PUT\n"
        "complete at 69\nmethod 3:PUT\npath 1:/\nname 4:Host\nvalue 1:h\n"
        "name 6:Expect\nvalue 12:100-Continue\n"
        "name 14:Content-Length\nvalue 1:1\nbody 1:x\n");
}

static void test_odd_but_legal_headers(void **state)
{
    (void)state;
    assert_replay(replay_http,
                  SPAN("GET * HTTP/1.1\r\nhOsT:\r\nX-Empty: \t \r\nX:a\xe9:b\tc\r\nX:\r\n\r\n"), 5,
                  "complete at 52\nmethod 3:GET\npath 1:*\nname 4:hOsT\nvalue 0:\n"
                  "name 7:X-Empty\nvalue 0:\nname 1:X\nvalue 6:a\xe9:b\tc\n"
                  "name 1:X\nvalue 0:\n");
}

static void test_unfinished(void **state)
{
    (void)state;
    assert_replay(replay_http, SPAN_EMPTY, 5, "");
    assert_replay(replay_http, SPAN("G"), 5, "");
    assert_replay(replay_http, SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhell"), 5,
                  "head at 47\nmethod 4:POST\n");
}

/* --- refusals: the same status however the input is cut --- */

static void assert_refused(struct span in, int status)
{
    char *account = replay_all(replay_http, in, 16);
    const char *bad = strstr(account, "bad ");
    if (!bad || atoi(bad + 4) != status || strstr(account, "complete") || strstr(account, "cut"))
        fail_msg("expected %d for:\n" SPAN_FMT "\nbut got:\n%s", status, SPAN_ARG(in), account);
    mem_free(account);
}

/* The six kinds of request smuggling: a proxy in front of us may see other request ends than we do.
 */
static void test_smuggling_length_and_chunked(void **state)
{
    (void)state;
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST
                        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                   400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST
                        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
                   400);
}

static void test_smuggling_two_lengths(void **state)
{
    (void)state;
    assert_refused(
        SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 6\r\n\r\nhello"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5 6\r\n\r\nhello"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), 400);
    assert_refused(
        SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\nhello"), 400);
}

static void test_smuggling_bare_lf(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/1.1\nHost: h\n\n"), 400);
    /* llhttp accepts a bare LF at three places; we accept it nowhere. */
    assert_refused(SPAN("GET / HTTP/1.1\nHost: h\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\n\n"), 400);
    assert_refused(SPAN(CHUNKED "1\r\nx\r\n0\r\n\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost:\nX: y\r\n\r\n"), 400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\n\r\nhello"), 400);
    assert_refused(SPAN(CHUNKED "1\nx\r\n0\r\n\r\n"), 400);
    assert_refused(SPAN(CHUNKED "1\r\nx\n0\r\n\r\n"), 400);
    assert_refused(SPAN(CHUNKED "0\r\nX: y\n\r\n"), 400);
}

static void test_smuggling_bare_cr(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\rHost: h\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\n\rX"), 400);
}

static void test_smuggling_blank_before_colon(void **state)
{
    (void)state;
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\nhello"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost : h\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X y: z\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X\t: z\r\n\r\n"), 400);
}

static void test_smuggling_unknown_coding(void **state)
{
    (void)state;
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
                   501);
    assert_refused(
        SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"), 501);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"), 501);
    assert_refused(
        SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        400);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                   400);
    assert_refused(SPAN("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

static void test_bad_chunks(void **state)
{
    (void)state;
    assert_refused(SPAN(CHUNKED "x\r\n"), 400);
    assert_refused(SPAN(CHUNKED "0x1\r\nx\r\n0\r\n\r\n"), 400);
    assert_refused(SPAN(CHUNKED "-1\r\nx\r\n0\r\n\r\n"), 400);
    assert_refused(SPAN(CHUNKED "1\r\nxyz\r\n0\r\n\r\n"), 400);
    assert_refused(SPAN(CHUNKED "fffffffffffffffff\r\nx"), 400);
}

static void test_folded_lines(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\n more\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\n\tmore\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost:\r\n h\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nHost: h\r\n \r\nX: y\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), 400);
}

static void test_host_must_be_there_once(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/1.1\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.0\r\n" HOST HOST "\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\nX-Host: h\r\n\r\n"), 400);
}

static void test_versions(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/2.0\r\n" HOST "\r\n"), 505);
    assert_refused(SPAN("GET / HTTP/1.2\r\n" HOST "\r\n"), 505);
    assert_refused(SPAN("GET / HTTP/0.9\r\n" HOST "\r\n"), 505);
    assert_refused(SPAN("GET / HTTP/3.0\r\n" HOST "\r\n"), 505);
    assert_refused(SPAN("GET /\r\n\r\n"), 505);
    assert_refused(SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
    assert_refused(SPAN("GET / HTTP/11\r\n" HOST "\r\n"), 400);
}

static void test_request_line_is_exact(void **state)
{
    (void)state;
    assert_refused(SPAN("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("GET /  HTTP/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("GET / http/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("get / HTTP/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("OPTIONS / RTSP/1.0\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("SOURCE / ICE/1.0\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("GET /\xff HTTP/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("GET /\t HTTP/1.1\r\n" HOST "\r\n"), 400);
    assert_refused(SPAN("\x16\x03\x01\x02"), 400); /* TLS to a plain port */
    assert_refused(SPAN("CONNECT h:443 HTTP/1.1\r\n" HOST "\r\n"), 501);
}

static void test_bad_header_bytes(void **state)
{
    (void)state;
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"), 400);
    assert_refused(SPAN("GET / HTTP/1.1\r\n" HOST "X@: y\r\n\r\n"), 400);
}

/* --- limits --- */

/* A head of exactly `n` bytes. */
static struct buf head_of(size_t n)
{
    struct buf in = {0};
    buf_str(&in, "GET / HTTP/1.1\r\n" HOST "X: ");
    while (in.n < n - 4)
        buf_char(&in, 'x');
    buf_str(&in, "\r\n\r\n");
    return in;
}

static void test_head_size(void **state)
{
    (void)state;
    struct buf in = head_of(HTTP_MAX_HEAD);
    char *account = replay_all(replay_http, buf_view(&in), 0);
    assert_memory_equal(account, "complete at 16384\n", 18);
    assert_null(strstr(account, "cut"));
    mem_free(account);
    buf_fini(&in);

    in = head_of(HTTP_MAX_HEAD + 1);
    assert_refused(buf_view(&in), 431);
    assert_refused(span_cut(buf_view(&in), 0, HTTP_MAX_HEAD), 431);
    memset(in.p, '\n', in.n); /* blank lines before a request count as well */
    assert_refused(buf_view(&in), 431);
    buf_fini(&in);
}

static void test_number_of_headers(void **state)
{
    (void)state;
    struct buf in = {0};
    buf_str(&in, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 1; i < HTTP_MAX_HEADERS; i++)
        buf_printf(&in, "X%d: %d\r\n", i, i);
    size_t full = in.n;
    buf_str(&in, "\r\n");
    char *account = replay_all(replay_http, buf_view(&in), 0);
    assert_memory_equal(account, "complete", 8);
    assert_non_null(strstr(account, "name 3:X99\nvalue 2:99\n"));
    assert_null(strstr(account, "cut"));
    mem_free(account);

    in.n = full;
    buf_str(&in, "One: more\r\n\r\n");
    assert_refused(buf_view(&in), 431);

    /* The excess header has an invalid name. The status was 431 when the input was cut inside that
     * name, else 400. */
    in.n = full;
    buf_str(&in, "O@ne: more\r\n\r\n");
    assert_refused(buf_view(&in), 400);
    buf_fini(&in);
}

static void test_body_cap(void **state)
{
    (void)state;
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 17\r\n\r\n"), 413);
    assert_refused(SPAN("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n"),
                   413);
    assert_refused(SPAN(CHUNKED "11\r\n"), 413);
    assert_refused(SPAN(CHUNKED "8\r\n12345678\r\n9\r\n123456789\r\n"), 413);
    assert_refused(SPAN(CHUNKED "ffffffffffffffff\r\n"), 413);
}

/* Chunk extensions and trailers are not stored, but unbounded ones would keep a connection busy. */
static void test_framing_of_chunks_is_bounded(void **state)
{
    (void)state;
    struct buf in = {0};
    buf_str(&in, CHUNKED "1;x=");
    for (int i = 0; i < 2 * HTTP_MAX_HEAD; i++)
        buf_char(&in, 'y');
    assert_refused(buf_view(&in), 413);
    in.n = 0;
    buf_str(&in, CHUNKED "0\r\n");
    for (int i = 0; i < HTTP_MAX_HEAD; i++)
        buf_str(&in, "a: b\r\n");
    assert_refused(buf_view(&in), 413);
    buf_fini(&in);
}

static void test_chunks_of_one_byte_are_fine(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct buf in = {0};
    size_t used = 0;
    buf_str(&in, CHUNKED);
    for (int i = 0; i < N; i++)
        buf_str(&in, "1\r\nx\r\n");
    buf_str(&in, "0\r\n\r\n");

    struct http_parser *p = http_parser_new(N);
    assert_int_equal(http_parser_feed(p, buf_view(&in), &used), HTTP_HEAD);
    struct span rest = span_from(buf_view(&in), used);
    assert_int_equal(http_parser_feed(p, rest, &used), HTTP_COMPLETE);
    assert_int_equal(used, rest.n);
    assert_int_equal(http_parser_request(p)->body.n, N);
    http_parser_free(p);
    buf_fini(&in);
}

/* --- the parser between requests --- */

static void test_states_stay(void **state)
{
    (void)state;
    struct http_parser *p = http_parser_new(10);
    size_t used = 99;

    assert_int_equal(http_parser_feed(p, SPAN_EMPTY, &used), HTTP_MORE);
    assert_int_equal(used, 0);
    assert_int_equal(http_parser_feed(p, SPAN("GET / HTTP/1.1\r\n" HOST "\r\nmore"), &used),
                     HTTP_COMPLETE);
    assert_int_equal(used, 27);
    assert_int_equal(http_parser_feed(p, SPAN("more"), &used), HTTP_COMPLETE);
    assert_int_equal(used, 0);
    assert_true(span_is(http_parser_request(p)->path, "/"));

    http_parser_next(p);
    assert_int_equal(http_parser_feed(p, SPAN("more"), &used), HTTP_BAD);
    assert_int_equal(http_parser_status(p), 400);
    assert_non_null(http_parser_why(p));
    assert_int_equal(http_parser_feed(p, SPAN("GET / HTTP/1.1\r\n"), &used), HTTP_BAD);
    assert_int_equal(used, 0);
    http_parser_free(p);
    http_parser_free(NULL);
}

static void test_head_can_be_read_before_the_body(void **state)
{
    (void)state;
    struct http_parser *p = http_parser_new(10);
    size_t used;
    struct span in = SPAN("POST /x?y HTTP/1.1\r\n" HOST "Content-Length: 3\r\nA: b\r\n\r\nabc");

    assert_int_equal(http_parser_feed(p, in, &used), HTTP_HEAD);
    const struct http_request *r = http_parser_request(p);
    assert_true(span_is(r->path, "/x"));
    assert_true(span_is(r->target, "/x?y"));
    assert_true(span_is(http_header(r, "a"), "b"));
    assert_true(span_is(http_header(r, "HOST"), "h"));
    assert_null(http_header(r, "b").p);
    assert_int_equal(r->body.n, 0);
    assert_int_equal(http_parser_feed(p, span_from(in, used), &used), HTTP_COMPLETE);
    assert_true(span_is(r->body, "abc"));
    assert_true(span_is(http_header(r, "a"), "b"));
    http_parser_free(p);
}

static struct span query(const char *text, const char *name, struct buf *scratch)
{
    return http_query(span_str(text), name, scratch);
}

static void test_query(void **state)
{
    (void)state;
    struct buf s = {0};

    assert_true(span_is(query("a=1&b=2", "b", &s), "2"));
    assert_true(span_is(query("a=1&a=2", "a", &s), "1"));
    assert_true(span_is(query("a=x%20y+z%2B%c3%A9", "a", &s), "x y z+\xc3\xa9"));
    assert_true(span_is(query("a=%&b=%4&c=%zz&d=%4%41", "a", &s), "%"));
    assert_true(span_is(query("a=%&b=%4&c=%zz&d=%4%41", "b", &s), "%4"));
    assert_true(span_is(query("a=%&b=%4&c=%zz&d=%4%41", "c", &s), "%zz"));
    assert_true(span_is(query("a=%&b=%4&c=%zz&d=%4%41", "d", &s), "%4A"));
    assert_true(span_is(query("session%49d=7", "sessionId", &s), "7"));
    assert_true(span_is(query("a=b=c", "a", &s), "b=c"));
    assert_null(query("ab=1&A=2", "a", &s).p);
    assert_null(query("a", "ab", &s).p);
    assert_null(query("", "a", &s).p);
    buf_fini(&s);
    /* Present but empty: distinguished from absent even if `s` has no memory yet. */
    assert_non_null(query("a", "a", &s).p);
    assert_int_equal(query("x&a=&y", "a", &s).n, 0);
    assert_non_null(query("x&a=&y", "a", &s).p);
    buf_fini(&s);
}

static void test_response_heads(void **state)
{
    (void)state;
    struct buf out = {0};

    http_put_status(&out, 200);
    http_put_status(&out, 431);
    http_put_status(&out, 299);
    http_put_header(&out, "A", SPAN("b c"));
    http_put_header(&out, "Empty", SPAN_EMPTY);
    assert_string_equal(buf_cstr(&out), "HTTP/1.1 200 OK\r\n"
                                        "HTTP/1.1 431 Request Header Fields Too Large\r\n"
                                        "HTTP/1.1 299 Unknown\r\n"
                                        "A: b c\r\nEmpty: \r\n");
    out.n = 0;
    http_put_header(&out, "Location", SPAN("/\r\nSet-Cookie: evil"));
    assert_string_equal(buf_cstr(&out), "Location: /  Set-Cookie: evil\r\n");
    buf_fini(&out);
}

static void test_response_chunks(void **state)
{
    (void)state;
    struct buf out = {0};

    http_put_chunk(&out, SPAN("hello"));
    http_put_chunk(&out, SPAN_EMPTY);
    http_put_chunk(&out, SPAN("0123456789abcdef"));
    http_put_last_chunk(&out);
    assert_string_equal(buf_cstr(&out), "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
    buf_fini(&out);
}

static void test_items_of_a_list(void **state)
{
    (void)state;
    struct span list = SPAN(" a ,b,, c d\t,\t,"), item;
    assert_true(http_next_item(&list, &item));
    assert_span(item, "a");
    assert_true(http_next_item(&list, &item));
    assert_span(item, "b");
    assert_true(http_next_item(&list, &item));
    assert_span(item, "c d");
    assert_false(http_next_item(&list, &item));
    assert_false(http_next_item(&list, &item));
    list = SPAN_EMPTY;
    assert_false(http_next_item(&list, &item));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_post_with_length),
        cmocka_unit_test(test_post_without_body),
        cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_trailers_are_read_over),
        cmocka_unit_test(test_pipelined_requests_end_where_they_end),
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_upgrade_leaves_the_rest_alone),
        cmocka_unit_test(test_expect_continue),
        cmocka_unit_test(test_odd_but_legal_headers),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_smuggling_length_and_chunked),
        cmocka_unit_test(test_smuggling_two_lengths),
        cmocka_unit_test(test_smuggling_bare_lf),
        cmocka_unit_test(test_smuggling_bare_cr),
        cmocka_unit_test(test_smuggling_blank_before_colon),
        cmocka_unit_test(test_smuggling_unknown_coding),
        cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_folded_lines),
        cmocka_unit_test(test_host_must_be_there_once),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_request_line_is_exact),
        cmocka_unit_test(test_bad_header_bytes),
        cmocka_unit_test(test_head_size),
        cmocka_unit_test(test_number_of_headers),
        cmocka_unit_test(test_body_cap),
        cmocka_unit_test(test_framing_of_chunks_is_bounded),
        cmocka_unit_test(test_chunks_of_one_byte_are_fine),
        cmocka_unit_test(test_states_stay),
        cmocka_unit_test(test_head_can_be_read_before_the_body),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_response_heads),
        cmocka_unit_test(test_response_chunks),
        cmocka_unit_test(test_items_of_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
