/* One HTTP request by libcurl: options, redirects, head and chunks, cancelling. Called by
 * mcp/server/http_*.c, browser/join.c, cmd/daemon.c and document.c, and by http_engine.c at the end
 * of a transfer. */
#include "io/http_engine.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { HEAD_MAX = 64 * 1024, REDIRECTS_MAX = 3 };

/* The next header of this name in `rest`, case ignored; p == NULL when there is none. */
static struct span next_value(struct span *rest, const char *name)
{
    while (rest->n) {
        struct span line = span_cut(*rest, 0, span_find(*rest, '\n'));
        size_t colon = span_find(line, ':');

        *rest = span_from(*rest, line.n + 1);
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        if (colon < line.n && span_eq_nocase(span_cut(line, 0, colon), span_str(name)))
            return span_trim(span_from(line, colon + 1));
    }
    return SPAN_EMPTY;
}

struct span http_head_value(const struct http_head *head, const char *name)
{
    struct span rest = head->lines;

    return next_value(&rest, name);
}

void http_head_put_all(struct buf *out, const struct http_head *head, const char *name)
{
    struct span rest = head->lines, value;

    for (const char *comma = ""; (value = next_value(&rest, name)).p; comma = ", ") {
        buf_str(out, comma);
        buf_span(out, value);
    }
}

/* --- the answer, as libcurl hands it over --- */

/* The URL that the answer redirects to; NULL when the redirect is not followed or there is none. */
static char *redirected_to(const struct http_fetch *f, const struct http_head *head)
{
    int s = head->status;
    struct span location = http_head_value(head, "Location");

    if (f->direct || (s != 301 && s != 302 && s != 307 && s != 308) || !location.n)
        return NULL;
    char *next = f->redirects < REDIRECTS_MAX ? http_url_resolve(f->url, location) : NULL;
    if (next && f->reach && !reach_has_url(f->reach, next)) {
        mem_free(next);
        return NULL;
    }
    return next;
}

static void head_complete(struct http_fetch *f)
{
    struct http_head head = {.lines = buf_view(&f->head)};
    char *ip = NULL;
    long status = 0;

    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(f->easy, CURLINFO_PRIMARY_IP, &ip);
    head.ip = ip ? ip : "";
    head.status = (int)status;
    if (status < 200)
        return; /* "100 Continue" and the like: the answer is still to come */
    f->next = redirected_to(f, &head);
    if (f->next)
        return;
    f->head_given = true;
    f->on->head(f->owner, &head);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct http_fetch *f = arg;
    struct span line = span_of(bytes, size * n);

    if (f->cancelled || f->head.n + line.n > HEAD_MAX)
        return 0;
    if (f->head_given || f->next)
        return line.n; /* a trailer */
    if (span_starts(line, SPAN("HTTP/")))
        f->head.n = 0;
    else if (span_is(line, "\r\n") || span_is(line, "\n"))
        head_complete(f);
    else
        buf_span(&f->head, line);
    return f->cancelled ? 0 : line.n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct http_fetch *f = arg;
    struct span chunk = span_of(bytes, size * n);

    if (f->cancelled)
        return 0;
    if (f->next)
        return chunk.n; /* the body of a redirect */
    f->on->chunk(f->owner, chunk);
    return f->cancelled ? 0 : chunk.n;
}

static bool was_sent(const struct http_fetch *f)
{
    long bytes = 0;

    if (f->easy)
        curl_easy_getinfo(f->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

/*
 * Called before each attempt. libcurl repeats a request when a reused connection ends without an
 * answer. But the server may have acted on the request: one with a body is repeated only if no byte
 * of it was sent.
 */
static int on_attempt(void *arg, char *to_ip, char *from_ip, int to_port, int from_port)
{
    struct http_fetch *f = arg;

    (void)from_ip, (void)from_port;
    f->found = true;
    /* A reused connection may have been opened by another client, with another reach. */
    f->barred = f->reach && !reach_has_ip(f->reach, to_ip, to_port);
    if (f->barred)
        return CURL_PREREQFUNC_ABORT;
    return f->has_body && was_sent(f) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* Called with each address that libcurl tries, whatever name led to the address. libcurl itself
 * would make a socket that a program started by us inherits. */
static curl_socket_t on_address(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_fetch *f = arg;

    (void)purpose;
    f->found = true;
    f->barred = f->reach && !reach_has_address(f->reach, &a->addr);
    return f->barred ? CURL_SOCKET_BAD : socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* --- the end --- */

static const struct {
    CURLcode result;
    int code;
    const char *text; /* NULL: libcurl's own text is better */
} failures[] = {
    {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH, "there is no host of that name"},
    {CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH, "there is no proxy of that name"},
    {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT, "no connection within 10 s"},
    {CURLE_GOT_NOTHING, -ECONNRESET, "the connection was closed without an answer"},
    {CURLE_ABORTED_BY_CALLBACK, -ECONNRESET, "the connection was closed without an answer"},
    {CURLE_RECV_ERROR, -ECONNRESET, "the connection broke before the answer was complete"},
    {CURLE_PARTIAL_FILE, -ECONNRESET, "the connection was closed within the answer"},
    {CURLE_SEND_ERROR, -ECONNRESET, "the connection broke while the request was sent"},
    {CURLE_HTTP2_STREAM, -ECONNRESET, "the stream was closed within the answer"},
    {CURLE_WRITE_ERROR, ERR_SIZE, "the head of the answer is too large"},
    {CURLE_PEER_FAILED_VERIFICATION, -EPROTO, NULL},
    {CURLE_SSL_CONNECT_ERROR, -EPROTO, NULL},
    {CURLE_URL_MALFORMAT, -EINVAL, "the URL is not valid"},
};

static int describe(const struct http_fetch *f, CURLcode result, struct buf *why)
{
    long os = 0;

    if (result == CURLE_OK)
        return 0;
    if (!f->easy) {
        buf_str(why, f->engine->missing.text);
        return -ELIBACC;
    }
    buf_printf(why, "%s: ", f->host);
    if (f->barred) {
        buf_str(why, err_name(ERR_REACH));
        return ERR_REACH;
    }
    curl_easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &os);
    if (result == CURLE_COULDNT_CONNECT) {
        int code = os ? -(int)os : -ECONNREFUSED;
        buf_str(why, err_name(code));
        return code;
    }
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        if (failures[i].result == result && (failures[i].text || f->why[0])) {
            buf_str(why, failures[i].text ? failures[i].text : f->why);
            return failures[i].code;
        }
    }
    buf_str(why, f->why[0] ? f->why : curl_easy_strerror(result));
    return -EIO;
}

void http_fetch_free(struct http_fetch *f)
{
    list_remove(&f->node);
    list_remove(&f->in_client);
    if (f->own_trust)
        curl_easy_cleanup(f->easy);
    else if (f->easy)
        http_engine_return(f->engine, f->easy);
    if (f->headers)
        curl_slist_free_all(f->headers);
    buf_fini(&f->body);
    buf_fini(&f->head);
    mem_free(f->next);
    mem_free(f->url);
    mem_free(f->host);
    mem_free(f);
}

static void follow(struct http_fetch *f)
{
    mem_free(f->url);
    f->url = f->next;
    f->next = NULL;
    f->redirects++;
    f->found = false;
    f->head.n = 0;
    curl_easy_setopt(f->easy, CURLOPT_URL, f->url);
    list_remove(&f->node);
    list_append(&f->engine->starting, &f->node);
    http_engine_wake(f->engine);
}

void http_fetch_finish(struct http_fetch *f, CURLcode result)
{
    if (!f->cancelled && f->next && result == CURLE_OK) {
        follow(f);
        return;
    }
    if (!f->cancelled) {
        BUF_SCOPED why = {0};
        int code = describe(f, result, &why);
        bool delivered = was_sent(f);

        list_remove(&f->in_client);
        f->on->done(f->owner, code, buf_cstr(&why), delivered);
    }
    http_fetch_free(f);
}

/* --- requests --- */

static void add_header(struct http_fetch *f, const char *line)
{
    size_t colon = span_find(span_str(line), ':');
    struct span value = span_trim(span_from(span_str(line), colon + 1));
    BUF_SCOPED empty = {0};

    if (!value.n) {
        /* To libcurl "Name:" means "do not send this header"; "Name;" sends it without a value. */
        buf_bytes(&empty, line, colon);
        buf_char(&empty, ';');
        line = buf_cstr(&empty);
    }
    f->headers = curl_slist_append(f->headers, line);
}

static void set_method(struct http_fetch *f, const char *method)
{
    bool post = strcmp(method, "POST") == 0, get = strcmp(method, "GET") == 0;

    curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(f->easy, CURLOPT_CUSTOMREQUEST, post || get ? NULL : method);
    if (!f->has_body) {
        curl_easy_setopt(f->easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl_easy_setopt(f->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)f->body.n);
    curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, f->body.n ? f->body.p : "");
}

static void set_options(struct http_fetch *f, const struct http_fetch_spec *spec)
{
    curl_easy_setopt(f->easy, CURLOPT_PRIVATE, f);
    f->barred = f->reach && !reach_has_url(f->reach, f->url);
    /* Without a URL the transfer fails. */
    curl_easy_setopt(f->easy, CURLOPT_URL, f->barred ? NULL : f->url);
    curl_easy_setopt(f->easy, CURLOPT_OPENSOCKETFUNCTION, on_address);
    curl_easy_setopt(f->easy, CURLOPT_OPENSOCKETDATA, f);
    curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->headers);
    curl_easy_setopt(f->easy, CURLOPT_ERRORBUFFER, f->why);
    curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
    curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(f->easy, CURLOPT_PREREQFUNCTION, on_attempt);
    curl_easy_setopt(f->easy, CURLOPT_PREREQDATA, f);
    curl_easy_setopt(f->easy, CURLOPT_UNIX_SOCKET_PATH, spec->unix_path);
    if (spec->ca) {
        /* Only these authorities are trusted; the handle is not reused for another fetch. */
        curl_easy_setopt(f->easy, CURLOPT_CAINFO, spec->ca);
        curl_easy_setopt(f->easy, CURLOPT_CAPATH, NULL);
        f->own_trust = true;
    }
    /* No proxy for a server on this machine, which a proxy elsewhere cannot reach; and none with
     * `reach`, because we cannot check where a proxy connects to. */
    bool direct = f->reach || http_url_is_local(f->url);
    curl_easy_setopt(f->easy, CURLOPT_PROXY, direct ? "" : NULL);
}

static void prepare(struct http_fetch *f, const struct http_fetch_spec *spec)
{
    /* Waiting for "100 Continue" would cost each large request a second with most servers. */
    f->headers = curl_slist_append(NULL, "Expect:");
    for (const char *const *line = spec->headers; line && *line; line++)
        add_header(f, *line);
    f->easy = http_engine_lend(f->engine);
    set_method(f, spec->method);
    set_options(f, spec);
}

struct http_fetch *http_fetch_start(struct http_client *c, const struct http_fetch_spec *spec,
                                    const struct http_fetch_events *on, void *owner)
{
    struct http_fetch *f = MEM_NEW(struct http_fetch);

    f->engine = c->engine;
    f->on = on;
    f->owner = owner;
    f->url = mem_str(spec->url);
    f->host = http_url_host(spec->url);
    f->reach = spec->reach;
    f->direct = spec->direct;
    if (spec->body) {
        f->has_body = true;
        f->body = *spec->body;
        *spec->body = (struct buf){0};
    }
    if (f->engine->multi)
        prepare(f, spec);
    list_append(&f->engine->starting, &f->node);
    list_append(&c->fetches, &f->in_client);
    http_engine_wake(f->engine);
    return f;
}

void http_fetch_cancel(struct http_fetch *f)
{
    f->cancelled = true;
    list_remove(&f->in_client);
    list_remove(&f->node);
    list_append(&f->engine->cancelled, &f->node);
    http_engine_wake(f->engine);
}

struct buf http_fetch_take_body(struct http_fetch *f)
{
    struct buf body = f->body;

    f->body = (struct buf){0};
    return body;
}

/* --- clients --- */

struct http_client *http_client_new(struct loop *l)
{
    struct http_client *c = MEM_NEW(struct http_client);

    c->engine = http_engine_ref(l);
    list_init(&c->fetches);
    return c;
}

static bool has_lookup(const struct list *fetches)
{
    LIST_EACH (fetches, it)
        if (!LIST_ENTRY(it, struct http_fetch, node)->found)
            return true;
    return false;
}

bool http_client_has_lookups(const struct loop *l)
{
    const struct http_engine *e = l->http;

    return e && (has_lookup(&e->starting) || has_lookup(&e->running));
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    LIST_EACH_SAFE (&c->fetches, it)
        http_fetch_cancel(LIST_ENTRY(it, struct http_fetch, in_client));
    http_engine_unref(c->engine);
    mem_free(c);
}
