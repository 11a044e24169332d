/* libcurl's multi handle on the loop: its sockets, its timer, and the lists of fetches to start and
 * cancel at the end of a turn. Called by http_client.c only. */
#include "io/http_engine.h"

#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/authorities.h"

#include <stdlib.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    BUFFER_SIZE = 16 * 1024,
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_PROBE_S = 10,
    IDLE_CONNECTIONS = 64,
    /*
     * A connection that was idle for longer is not reused. Node's servers close idle connections
     * after five seconds, and a request sent at that moment is lost: we cannot know whether the
     * server acted on it, so it is not repeated.
     */
    REUSE_WITHIN_S = 4,
    /* Times that libcurl may run in a row before other sockets get their turn. */
    ROUNDS = 8,
};

/* One socket of libcurl. */
struct socket {
    uv_poll_t poll;
    struct http_engine *engine;
    curl_socket_t fd;
};

/* --- libcurl's results --- */

static void take_results(struct http_engine *e)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(e->multi, &left))) {
        struct http_fetch *f = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &f);
        curl_multi_remove_handle(e->multi, f->easy);
        http_fetch_finish(f, result);
    }
}

static void run_curl(struct http_engine *e, curl_socket_t fd, int events)
{
    int running;

    curl_multi_socket_action(e->multi, fd, events, &running);
}

/* --- sockets and time --- */

static void on_socket_closed(uv_handle_t *handle)
{
    mem_free(CONTAINER_OF(handle, struct socket, poll));
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct socket *s = CONTAINER_OF(poll, struct socket, poll);
    struct http_engine *e = s->engine;
    int flags = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
                (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

    loop_enter(e->loop);
    run_curl(e, s->fd, status < 0 ? CURL_CSELECT_ERR : flags);
    take_results(e);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    static const int events[] = {[CURL_POLL_IN] = UV_READABLE,
                                 [CURL_POLL_OUT] = UV_WRITABLE,
                                 [CURL_POLL_INOUT] = UV_READABLE | UV_WRITABLE};
    struct http_engine *e = arg;
    struct socket *s = known;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (s)
            uv_close((uv_handle_t *)&s->poll, on_socket_closed);
        curl_multi_assign(e->multi, fd, NULL);
        return 0;
    }
    if (what < 0 || (size_t)what >= COUNT_OF(events))
        return 0;
    if (!s) {
        s = MEM_NEW(struct socket);
        s->engine = e;
        s->fd = fd;
        if (uv_poll_init_socket(&e->loop->uv, &s->poll, fd) < 0) {
            mem_free(s);
            return -1;
        }
        curl_multi_assign(e->multi, fd, s);
    }
    uv_poll_start(&s->poll, events[what], on_ready);
    return 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct http_engine *e = CONTAINER_OF(timer, struct http_engine, timer);

    loop_enter(e->loop);
    run_curl(e, CURL_SOCKET_TIMEOUT, 0);
    take_results(e);
}

/* The timeout is usually 0: libcurl then runs in this turn, since a timer would cost a
 * millisecond. */
static int on_timeout(CURLM *multi, long ms, void *arg)
{
    struct http_engine *e = arg;

    (void)multi;
    e->due = ms == 0;
    if (ms <= 0)
        uv_timer_stop(&e->timer);
    else
        uv_timer_start(&e->timer, on_timer, (uint64_t)ms, 0);
    if (e->due && !e->working)
        http_engine_wake(e);
    return 0;
}

/* --- the end of a turn --- */

static struct http_fetch *move_first(struct list *from, struct list *to)
{
    struct http_fetch *f = LIST_FIRST(from, struct http_fetch, node);

    if (f) {
        list_remove(&f->node);
        list_append(to, &f->node);
    }
    return f;
}

static void engine_close(struct http_engine *e);

static void work(struct deferred *d)
{
    struct http_engine *e = CONTAINER_OF(d, struct http_engine, work);
    struct http_fetch *f;

    e->working = true;
    while ((f = LIST_FIRST(&e->cancelled, struct http_fetch, node))) {
        if (f->easy)
            curl_multi_remove_handle(e->multi,
                                     f->easy); /* harmless for a handle that was never added */
        http_fetch_free(f);
    }
    while ((f = move_first(&e->starting, &e->running)))
        if (f->easy)
            curl_multi_add_handle(e->multi, f->easy);
        else
            http_fetch_finish(f, CURLE_FAILED_INIT);
    for (int i = 0; e->due && i < ROUNDS; i++) {
        e->due = false;
        run_curl(e, CURL_SOCKET_TIMEOUT, 0);
    }
    e->working = false;
    if (e->multi)
        take_results(e);
    if (e->due)
        http_engine_wake(e);
    /* A client that is freed cancels its fetches, which may not have ended yet. */
    if (!e->clients && list_empty(&e->cancelled))
        engine_close(e);
}

void http_engine_wake(struct http_engine *e)
{
    loop_defer(e->loop, &e->work, work);
}

/* --- handles --- */

static void set_up(CURL *easy)
{
    const char *authorities = authorities_file();

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_PROBE_S);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)REUSE_WITHIN_S);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "rialto/" RIALTO_VERSION);
    /* The program's exit must not wait for a name server that does not answer. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    if (authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
}

CURL *http_engine_lend(struct http_engine *e)
{
    if (e->n_spare)
        return e->spare[--e->n_spare];
    CURL *easy = curl_easy_init();
    if (!easy) {
        log_error("http", "libcurl gives no handle");
        abort();
    }
    set_up(easy);
    return easy;
}

void http_engine_return(struct http_engine *e, CURL *easy)
{
    if (e->n_spare < COUNT_OF(e->spare))
        e->spare[e->n_spare++] = easy;
    else
        curl_easy_cleanup(easy);
}

/* --- life --- */

static void start_curl(struct http_engine *e)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(e->multi = curl_multi_init())) {
        log_error("http", "libcurl cannot be used");
        abort();
    }
    curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e);
    curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e);
    curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS);
}

struct http_engine *http_engine_ref(struct loop *l)
{
    struct http_engine *e = l->http;

    if (!e) {
        e = l->http = MEM_NEW(struct http_engine);
        e->loop = l;
        list_init(&e->starting);
        list_init(&e->running);
        list_init(&e->cancelled);
        uv_timer_init(&l->uv, &e->timer);
        if (library_load(LIBRARY_CURL, &e->missing) == 0)
            start_curl(e);
    }
    e->clients++;
    return e;
}

void http_engine_unref(struct http_engine *e)
{
    if (--e->clients == 0)
        http_engine_wake(e);
}

static void on_engine_closed(uv_handle_t *timer)
{
    mem_free(CONTAINER_OF(timer, struct http_engine, timer));
}

static void engine_close(struct http_engine *e)
{
    e->loop->http = NULL;
    while (e->n_spare)
        curl_easy_cleanup(e->spare[--e->n_spare]);
    if (e->multi) {
        curl_multi_cleanup(e->multi);
        curl_global_cleanup();
    }
    loop_undefer(&e->work); /* closing the connections may have scheduled work again */
    uv_close((uv_handle_t *)&e->timer, on_engine_closed);
}
