/* The page at the end of a sign-in, and a small server for it. Called by hub/hub.c for the route,
 * and by signin.c for logins that listen by themselves. */
#include "hub/signin/callback.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/signin/client_metadata.h"
#include "hub/signin/login.h"
#include "wire/host.h"
#include "wire/json_out.h"

#include <stdio.h>

/* --- the page --- */

#define HEADERS                                                                                    \
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"                                  \
    "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"                                 \
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "                     \
    "frame-ancestors 'none'\r\n"

enum outcome_page { PAGE_SIGNED_IN, PAGE_FAILED, PAGE_UNKNOWN, PAGE_STRANGER };

/* No page contains text from the request. */
static const struct {
    int status;
    const char *mark, *title, *text;
} pages[] = {
    [PAGE_SIGNED_IN] = {200, "fine", "Signed in",
                        "Rialto has what it needs. You can close this window."},
    [PAGE_FAILED] = {400, "bad", "The sign-in did not work",
                     "Where you started it, Rialto says why: in the terminal, on its page, or with "
                     "<code>rialto status</code>."},
    [PAGE_UNKNOWN] = {400, "bad", "Nothing waits for this",
                      "This address was used before, has expired, or is not from Rialto. Start the "
                      "sign-in again."},
    [PAGE_STRANGER] = {403, "bad", "This browser did not begin the sign-in",
                       "Nothing was done. If somebody sent you here, they would have got what is "
                       "yours. To sign in yourself, ask for it again, and open the address that "
                       "you get in this browser."},
};

static void put_page(struct http_exchange *x, enum outcome_page page)
{
    struct buf *out =
        http_respond_begin(x, pages[page].status, "text/html; charset=utf-8", SPAN(HEADERS));

    buf_printf(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<meta name=\"color-scheme\" content=\"light dark\"><title>%s - Rialto</title><style>"
        ":root{color-scheme:light dark}"
        "body{font:16px/1.5 system-ui,sans-serif;margin:0;min-height:100vh;display:grid;"
        "place-items:center;background:Canvas;color:CanvasText}"
        "main{max-width:26rem;margin:1.5rem;padding:1.75rem 2rem;border:1px solid;"
        "border-color:color-mix(in srgb,CanvasText 20%%,Canvas);border-radius:12px}"
        "h1{font-size:1.25rem;margin:0 0 .5rem}p{margin:0}"
        ".fine h1{color:light-dark(#116329,#56d364)}.bad h1{color:light-dark(#a40e26,#ff7b72)}"
        "code{font-size:.95em}</style>"
        "<main class=\"%s\"><h1>%s</h1><p>%s</p></main></html>\n",
        pages[page].title, pages[page].mark, pages[page].title, pages[page].text);
    http_respond_end(x);
}

/* A browser that waits for the end of a login. */
struct waiting_browser {
    struct identity_wait wait;
    struct http_exchange *x;
};

static void on_address(struct identity_wait *w, const char *url, const char *code)
{
    (void)w, (void)url, (void)code;
}

static void on_done(struct identity_wait *w, const struct err *err)
{
    struct waiting_browser *b = CONTAINER_OF(w, struct waiting_browser, wait);

    put_page(b->x, err ? PAGE_FAILED : PAGE_SIGNED_IN);
    mem_free(b);
}

static void on_gone(void *owner)
{
    struct waiting_browser *b = owner;

    identity_leave(&b->wait);
    mem_free(b);
}

void callback_answer(struct signin *s, struct http_exchange *x, const struct http_request *req)
{
    if (!span_is(req->method, "GET")) {
        http_refuse_with(x, 405, SPAN("Allow: GET\r\n"), "method not allowed",
                         "browsers come here after a sign-in");
        return;
    }
    struct identity *id = signin_find_back(s, req->query);
    if (!id) {
        put_page(x, PAGE_UNKNOWN);
        return;
    }
    struct login *login = identity_waiting(id);
    const struct begin *begin = login_begin(login);
    if (begin && !begin_knows(begin, req)) {
        log_warn(login_spec(login)->settings->alias,
                 "a browser came back from a sign-in that it did not begin: not used");
        put_page(x, PAGE_STRANGER);
        return;
    }
    login_come_back(login, req->query);
    struct waiting_browser *b = MEM_NEW(struct waiting_browser);
    b->x = x;
    b->wait.address = on_address;
    b->wait.done = on_done;
    http_exchange_on_gone(x, on_gone, b);
    identity_join(id, &b->wait);
}

void callback_describe(const struct signin *s, struct http_exchange *x)
{
    struct span redirect = span_str(signin_redirect(s));
    BUF_SCOPED id = {0};

    if (!redirect.n) {
        http_refuse(x, 404, "no such path", "set public_url, and this describes us as a client");
        return;
    }
    buf_span(&id, span_cut(redirect, 0, redirect.n - strlen(CALLBACK_PATH)));
    buf_str(&id, CALLBACK_CLIENT_PATH);
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_char(out, '{');
    json_out_str(out, "client_id", buf_cstr(&id));
    client_metadata_put(out, redirect.p, OAUTH_NONE, false);
    buf_str(out, "}\n");
    http_respond_end(x);
}

/* --- a server of its own --- */

enum { MAX_BODY = 4096, TIMEOUT_MS = 10 * 1000, MAX_CONNECTIONS = 16 };

struct callback {
    struct list node; /* in the signin's list */
    struct signin *signin;
    struct http_server *server;
    char uri[96];
};

/* A page of another site may have rebound its host name to this machine (DNS rebinding). */
static bool is_for_us(const struct http_request *req)
{
    return host_is_loopback(host_name(http_header(req, "host")));
}

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    const struct callback *c = owner;

    if (!is_for_us(req))
        http_refuse(x, 421, "this Host is not served here", NULL);
    else if (!span_is(req->path, CALLBACK_PATH))
        http_refuse(x, 404, "no such path", NULL);
    else
        callback_answer(c->signin, x, req);
}

/* The port of the first TCP address in the configuration; 0 when there is none. */
static unsigned long usual_port(const struct config *c)
{
    for (size_t i = 0; i < c->listen.n; i++) {
        struct span address = span_str(c->listen.items[i].address);
        struct span port = span_from(address, host_name(address).n + 1);
        uint64_t n;
        if (!span_starts(address, SPAN("unix:")) && ascii_number(port, &n))
            return (unsigned long)n;
    }
    return 0;
}

struct callback *callback_new(struct signin *s, const struct config *config, struct err *err)
{
    static const struct http_server_options options = {.max_body = MAX_BODY,
                                                       .head_timeout = TIMEOUT_MS,
                                                       .body_timeout = TIMEOUT_MS,
                                                       .idle_timeout = TIMEOUT_MS,
                                                       .max_connections = MAX_CONNECTIONS};
    struct callback *c = MEM_NEW(struct callback);
    const unsigned long ports[] = {usual_port(config), 0};
    int code = -1;

    c->signin = s;
    list_append(signin_callbacks(s), &c->node);
    c->server = http_server_new(signin_loop(s), &options, on_request, c);
    for (size_t i = 0; code && i < COUNT_OF(ports); i++) {
        char address[32];
        snprintf(address, sizeof address, "127.0.0.1:%lu", ports[i]);
        code = http_server_listen(c->server, address, err);
    }
    if (code) {
        callback_close(c);
        return NULL;
    }
    snprintf(c->uri, sizeof c->uri, "http://%s" CALLBACK_PATH, http_server_address(c->server, 0));
    return c;
}

const char *callback_uri(const struct callback *c)
{
    return c->uri;
}

static void on_closed(void *arg)
{
    struct callback *c = arg;

    list_remove(&c->node);
    mem_free(c);
}

void callback_close(struct callback *c)
{
    http_server_close(c->server, on_closed, c);
}
