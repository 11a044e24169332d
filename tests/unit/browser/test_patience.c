/*
 * Pages that send too little or too much, on a real port. An e2e test of this would take half a
 * minute, or need a fast machine.
 */
#include "../unit.h"
#include "browser/agent.h"
#include "browser/grants.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "browser/routes.h"
#include "browser/sender.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 20 * 1000, TOO_MANY = 5000 };

struct site {
    struct loop *loop;
    struct router *router;
    struct browser *browser;
    struct http_server *server;
    int closing;
};

/* Runs the loop until `cond` is true. */
#define WAIT(s, cond)                                                                              \
    do {                                                                                           \
        uint64_t wait_end = loop_now((s)->loop) + WAIT_MS;                                         \
        while (!(cond)) {                                                                          \
            assert_true(loop_now((s)->loop) < wait_end);                                           \
            loop_step((s)->loop, 20);                                                              \
        }                                                                                          \
    } while (0)

static void handle(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct site *s = owner;

    routes_handle(s->browser, &(struct caller){0}, x, req);
}

static void part_closed(void *arg)
{
    ((struct site *)arg)->closing--;
}

static int site_open(void **state)
{
    static const struct http_server_options http = {.max_body = 100000, .max_connections = 10};
    static const struct browser_options options = {
        .session_ttl = 3600 * 1000, .max_sessions = 8, .max_message = 100000};
    struct site *s = MEM_NEW(struct site);
    struct err err;

    s->loop = loop_new();
    s->router = router_new(loop_timers(s->loop), 1);
    s->browser = browser_new(s->loop, s->router, &options);
    s->server = http_server_new(s->loop, &http, handle, s);
    assert_int_equal(http_server_listen(s->server, "127.0.0.1:0", &err), 0);
    *state = s;
    return 0;
}

static int site_close(void **state)
{
    struct site *s = *state;

    s->closing = 2;
    browser_close(s->browser, part_closed, s);
    http_server_close(s->server, part_closed, s);
    WAIT(s, s->closing == 0);
    router_free(s->router);
    loop_free(s->loop);
    mem_free(s);
    return 0;
}

/* --- too little --- */

/* A tab with MCP-B's script. */
struct tab {
    struct ws *ws;
    char last[512];
    uint16_t code;
};

static void tab_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct tab *t = owner;

    (void)op;
    snprintf(t->last, sizeof t->last, SPAN_FMT, SPAN_ARG(payload));
}

static void tab_closed(void *owner, uint16_t code, const char *reason)
{
    struct tab *t = owner;

    (void)reason;
    t->ws = NULL;
    t->code = code;
}

static const struct ws_events tab_events = {.message = tab_message, .closed = tab_closed};

static void tab_open(struct tab *t, struct site *s)
{
    static const char *const protocols[] = {"webmcp.v1", NULL};
    static const struct ws_options options = {.max_message = 10000};
    char url[96];
    struct err err;

    snprintf(url, sizeof url, "ws://%s/", http_server_address(s->server, 0));
    t->ws = ws_connect(s->loop, &(struct ws_target){.url = url, .protocols = protocols}, &options,
                       &tab_events, t, &err);
    WAIT(s, strstr(t->last, "server-hello"));
    ws_send(t->ws, WS_TEXT, SPAN("{\"type\":\"hello\",\"tabId\":\"T\"}"));
    WAIT(s, strstr(t->last, "hello/accepted"));
}

static void tab_close(struct tab *t, struct site *s)
{
    ws_close(t->ws, 1000, "");
    WAIT(s, !t->ws);
}

/* Lets the keep-alive timer fire, as after 15 s. */
static void keep_alive(struct site *s)
{
    timer_set(loop_timers(s->loop), &s->browser->keep_alive, 0);
}

static void test_silence(void **state)
{
    struct site *s = *state;
    struct tab tab = {0};

    tab_open(&tab, s);
    struct page *page = LIST_FIRST(&s->browser->pipes, struct pipe, node)->page;
    for (int i = 0; i < 2; i++) { /* a page that answers is asked again */
        tab.last[0] = '\0';
        keep_alive(s);
        WAIT(s, strstr(tab.last, "\"ping\""));
        ws_send(tab.ws, WS_TEXT, SPAN("{\"type\":\"pong\"}"));
        WAIT(s, !page->life);
    }
    keep_alive(s);
    WAIT(s, page->life);
    timer_set(loop_timers(s->loop), &page->life->timer, 0); /* the answer times out */
    WAIT(s, page->silent);
    assert_non_null(tab.ws);
    ws_send(tab.ws, WS_TEXT, SPAN("{\"type\":\"pong\"}"));
    WAIT(s, !page->silent);
    tab_close(&tab, s);
}

/* A page has 10 s to answer the ping that keeps its connection alive. A call that came meanwhile
 * had to wait for the rest of that time, although a page that does not answer shows within 2 s. */
static void test_call_after_keep_alive(void **state)
{
    struct site *s = *state;
    struct tab tab = {0};

    tab_open(&tab, s);
    struct page *page = LIST_FIRST(&s->browser->pipes, struct pipe, node)->page;
    keep_alive(s);
    WAIT(s, strstr(tab.last, "\"ping\""));
    ws_send(tab.ws, WS_TEXT, SPAN("{\"type\":\"pong\"}"));
    WAIT(s, page->answers_pings && !page->life);
    keep_alive(s);
    WAIT(s, page->life);
    uint64_t began = loop_now(s->loop);
    struct page_request *r = page_request_call(page, SPAN("{\"name\":\"t\"}"), 60 * 1000);
    assert_true(r->held.n > 0);
    WAIT(s, page->silent);
    assert_in_range(loop_now(s->loop) - began, 1000, 5000);
    tab_close(&tab, s);
}

/* --- too much --- */

struct talk {
    int fd;
    char got[4096];
    size_t n;
};

static void talk_open(struct talk *t, const struct site *s)
{
    const char *address = http_server_address(s->server, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(t->fd >= 0);
    assert_int_equal(connect(t->fd, (struct sockaddr *)&to, sizeof to), 0);
}

/* Reads what has arrived; true at EOF. */
static bool talk_hear(struct talk *t)
{
    ssize_t n = recv(t->fd, t->got + t->n, sizeof t->got - 1 - t->n, MSG_DONTWAIT);

    assert_true(n >= 0 || errno == EAGAIN);
    t->n += n > 0 ? (size_t)n : 0;
    t->got[t->n] = '\0';
    return n == 0;
}

static void talk_send(struct talk *t, const char *request)
{
    assert_int_equal(write(t->fd, request, strlen(request)), strlen(request));
}

/* A page in its own session, connected by an event stream. */
static struct pipe *events_open(struct talk *t, struct site *s, const char *session)
{
    char request[256];

    talk_open(t, s);
    snprintf(request, sizeof request,
             "GET /events?sessionId=%s&clientType=browser HTTP/1.1\r\nHost: localhost\r\n\r\n",
             session);
    talk_send(t, request);
    WAIT(s, !talk_hear(t) && strstr(t->got, "\"connected\""));
    struct browser_session *b = browser_session(s->browser, span_str(session), false);
    return page_pipe(LIST_FIRST(&b->pages, struct page, node));
}

/* Sends a POST with a ping and returns the status. */
static int post(struct site *s, const char *session)
{
    struct talk t = {0};
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}";
    char request[256];
    int status = 0;

    snprintf(request, sizeof request,
             "POST /message?sessionId=%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n%s",
             session, sizeof body - 1, body);
    talk_open(&t, s);
    talk_send(&t, request);
    WAIT(s, talk_hear(&t));
    close(t.fd);
    assert_int_equal(sscanf(t.got, "HTTP/1.1 %d", &status), 1);
    return status;
}

static void test_too_many_posts(void **state)
{
    struct site *s = *state;
    struct talk streams[2] = {0};
    struct pipe *pipe = events_open(&streams[0], s, "S");
    int status = 0;

    (void)events_open(&streams[1], s, "T");
    assert_int_equal(post(s, "S"), 200);
    /* All must arrive within a second; a slow machine may need several attempts. */
    for (int i = 0; status != 429 && i < 20; i++) {
        while (pipe_counts(pipe) && pipe->in_window < TOO_MANY)
            continue;
        status = post(s, "S");
    }
    assert_int_equal(status, 429);
    assert_int_equal(post(s, "T"), 200);
    pipe->window -= 1000;
    assert_int_equal(post(s, "S"), 200);
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        close(streams[i].fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_silence, site_open, site_close),
        cmocka_unit_test_setup_teardown(test_call_after_keep_alive, site_open, site_close),
        cmocka_unit_test_setup_teardown(test_too_many_posts, site_open, site_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
