/* The HTTP server of --serve, which keeps the last events and serves the page and the events.
 * Called by conductor_trace.c. */
#include "cmd/conductor_viewer.h"

#include "base/mem.h"
#include "browser/files.h"
#include "io/http_server.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    EVENTS_MAX = 20000,
    BYTES_MAX = 32 * 1024 * 1024,
    EVENT_MAX = 256 * 1024,
    MEMBER_MAX = 1024, /* of an event longer than EVENT_MAX */
    ANSWER_MAX = 500,
};

struct event_text {
    struct list node;
    size_t n;
    char text[];
};

struct conductor_viewer {
    struct http_server *server;
    struct list events;
    size_t n, bytes;
    uint64_t forgotten; /* how many events were dropped before the first kept one */
};

static void forget_first(struct conductor_viewer *v)
{
    struct event_text *e = LIST_FIRST(&v->events, struct event_text, node);

    list_remove(&e->node);
    v->n--;
    v->bytes -= e->n;
    v->forgotten++;
    mem_free(e);
}

/* A long event without its long members: sender, receiver and method are still shown. */
static void put_short(struct buf *out, struct span event)
{
    struct json_iter it = json_iter(event);

    buf_char(out, '{');
    while (json_next(&it)) {
        json_out(out, NULL);
        if (it.value.n <= MEMBER_MAX)
            buf_span(out, it.member);
        else
            buf_printf(out, SPAN_FMT ":\"(%zu bytes, too long to be shown)\"", SPAN_ARG(it.key),
                       it.value.n);
    }
    buf_char(out, '}');
}

void conductor_viewer_add(struct conductor_viewer *v, struct span event)
{
    BUF_SCOPED brief = {0};

    if (event.n > EVENT_MAX) {
        put_short(&brief, event);
        event = buf_view(&brief);
    }
    struct event_text *e = mem_alloc(sizeof *e + event.n);
    e->n = event.n;
    memcpy(e->text, event.p, event.n);
    list_append(&v->events, &e->node);
    v->n++;
    v->bytes += event.n;
    while (v->n > EVENTS_MAX || v->bytes > BYTES_MAX)
        forget_first(v);
}

/* {"events": [...], "next": N}, with at most ANSWER_MAX events. */
static void put_events(struct conductor_viewer *v, struct buf *out, uint64_t from)
{
    uint64_t number = v->forgotten;
    size_t told = 0;

    if (from < number)
        from = number;
    buf_str(out, "{\"events\":[");
    LIST_EACH (&v->events, it) {
        const struct event_text *e = LIST_ENTRY(it, struct event_text, node);
        if (number++ < from || told == ANSWER_MAX)
            continue;
        told++;
        json_out_raw(out, NULL, span_of(e->text, e->n));
    }
    buf_char(out, ']');
    json_out_number(out, "next", from + told);
    buf_char(out, '}');
}

static bool serve_file(struct http_exchange *x, struct span path)
{
    static const struct {
        const char *path, *type, *text;
    } files[] = {
        {"/", "text/html; charset=utf-8", conductor_page},
        {"/page.css", "text/css; charset=utf-8", conductor_style},
        {"/page.js", "text/javascript; charset=utf-8", conductor_script},
    };

    for (size_t i = 0; i < COUNT_OF(files); i++)
        if (span_is(path, files[i].path)) {
            http_respond(x, 200, files[i].type, SPAN(WEB_PAGE_HEADERS), span_str(files[i].text));
            return true;
        }
    return false;
}

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    struct conductor_viewer *v = owner;

    if (!http_server_is_meant(v->server, req)) {
        http_respond(x, 403, "text/plain", SPAN_EMPTY, SPAN("Host or Origin not allowed\n"));
    } else if (serve_file(x, req->path)) {
        return;
    } else if (span_is(req->path, "/events")) {
        BUF_SCOPED scratch = {0};
        struct span from = http_query(req->query, "from", &scratch);
        char number[24];
        snprintf(number, sizeof number, SPAN_FMT, SPAN_ARG(span_cut(from, 0, 20)));
        put_events(v, http_respond_begin(x, 200, "application/json", SPAN_EMPTY),
                   strtoull(number, NULL, 10));
        http_respond_end(x);
    } else {
        http_respond(x, 404, "text/plain", SPAN_EMPTY, SPAN("the page is at /\n"));
    }
}

static void free_viewer(void *arg)
{
    conductor_viewer_free(arg);
}

struct conductor_viewer *conductor_viewer_new(struct loop *loop, struct err *err)
{
    struct conductor_viewer *v = MEM_NEW(struct conductor_viewer);
    const struct http_server_options options = {.max_body = 4096,
                                                .head_timeout = 10000,
                                                .body_timeout = 10000,
                                                .idle_timeout = 60000,
                                                .max_connections = 64};

    list_init(&v->events);
    v->server = http_server_new(loop, &options, on_request, v);
    if (http_server_listen(v->server, "127.0.0.1:0", err)) {
        http_server_close(v->server, free_viewer, v);
        return NULL;
    }
    fprintf(stderr, "conductor: watch at http://%s/\n", http_server_address(v->server, 0));
    return v;
}

void conductor_viewer_close(struct conductor_viewer *v, void (*done)(void *arg), void *arg)
{
    http_server_close(v->server, done, arg);
    v->server = NULL;
}

void conductor_viewer_free(struct conductor_viewer *v)
{
    while (!list_empty(&v->events))
        forget_first(v);
    mem_free(v);
}
