/* One connection of a page or an agent (WebSocket, event stream or Unix socket): sending,
 * receiving, the rate limit, closing; and the Unix socket that we listen on. Called by routes.c,
 * relay.c and the other files of browser/. */
#include "browser/pipe.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/join.h"
#include "browser/sender.h"
#include "io/listen.h"
#include "wire/json.h"

/* Messages that one connection may send in a second; time to send the rest before closing. */
enum { MESSAGES_PER_SECOND = 5000, FINISH_MS = 500 };

struct pipe *pipe_new(struct browser *b, const struct dialect *d, struct span origin)
{
    struct pipe *p = MEM_NEW(struct pipe);

    p->browser = b;
    p->dialect = d;
    p->window = loop_now(b->loop);
    p->origin = origin.n ? mem_span(origin) : NULL;
    list_init(&p->in_owner);
    list_init(&p->in_join);
    list_append(&b->pipes, &p->node);
    b->n_pipes++;
    browser_keep_alive(b);
    return p;
}

/* Detaches the pipe from its page, which outlives it if it has a key; an agent is freed. */
static void leave_owner(struct pipe *p)
{
    struct page *page = p->page;
    struct agent *agent = p->agent;

    list_remove(&p->in_owner);
    p->page = NULL;
    p->agent = NULL;
    if (page)
        page_pipe_gone(page, p);
    if (agent)
        agent_free(agent);
}

void pipe_free(struct pipe *p)
{
    struct browser *b = p->browser;

    leave_owner(p);
    if (p->join)
        join_pipe_gone(p->join, p);
    loop_undefer(&p->end);
    list_remove(&p->node);
    b->n_pipes--;
    principal_release(p->principal);
    mem_free(p->origin);
    mem_free(p);
    browser_check_ended(b);
}

/* Some clients decode the UTF-8 of each chunk separately, so events are sent as ASCII. */
static void put_ascii(struct buf *out, struct span json)
{
    for (size_t i = 0; i < json.n;) {
        unsigned char c = (unsigned char)json.p[i];
        if (c < 0x80) {
            if (c != '\n' && c != '\r')
                buf_char(out, (char)c);
            i++;
            continue;
        }
        size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        uint32_t point = c & (0xffu >> (n + 1));
        for (size_t k = 1; k < n && i + k < json.n; k++)
            point = point << 6 | ((unsigned char)json.p[i + k] & 0x3f);
        if (point >= 0x10000)
            buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                       0xdc00 + ((point - 0x10000) & 0x3ff));
        else
            buf_printf(out, "\\u%04x", point);
        i += n;
    }
}

static void end_later(struct deferred *d)
{
    pipe_free(CONTAINER_OF(d, struct pipe, end));
}

/* Functions that use the pipe, its page or its agent may be on the stack, so the pipe is freed at
 * the end of the turn of the loop. */
static void cut(struct pipe *p, const char *why)
{
    struct http_exchange *x = p->x;

    p->x = NULL;
    http_exchange_on_gone(x, NULL, NULL);
    http_exchange_abort(x, why);
    loop_defer(p->browser->loop, &p->end, end_later);
}

static void write_event(struct pipe *p, struct span event)
{
    if (!p->x)
        return;
    http_stream_write(p->x, event);
    if (http_exchange_queued(p->x) > p->browser->options.max_message + event.n)
        cut(p, "reader too slow");
}

void pipe_send(struct pipe *p, struct span json, bool request)
{
    BUF_SCOPED event = {0};

    if (p->ws) {
        ws_send(p->ws, WS_TEXT, json);
        return;
    }
    if (p->join) {
        join_send(p->join, p, json);
        return;
    }
    if (p->stream) {
        json_one_line(stream_out(p->stream), json);
        buf_char(stream_out(p->stream), '\n');
        stream_wrote(p->stream);
        return;
    }
    if (request && p->dialect->request_event)
        buf_printf(&event, "event: %s\n", p->dialect->request_event);
    buf_str(&event, "data: ");
    put_ascii(&event, json);
    buf_str(&event, "\n\n");
    write_event(p, buf_view(&event));
}

void pipe_comment(struct pipe *p, struct span text)
{
    if (p->x)
        write_event(p, text);
}

bool pipe_counts(struct pipe *p)
{
    uint64_t now = loop_now(p->browser->loop);

    if (now - p->window >= 1000) {
        p->window = now;
        p->in_window = 0;
    }
    return ++p->in_window <= MESSAGES_PER_SECOND;
}

void pipe_close(struct pipe *p, uint16_t code, const char *why)
{
    if (p->ws) {
        ws_close(p->ws, code, why);
    } else if (p->stream) {
        stream_finish(p->stream, why, FINISH_MS);
    } else if (p->x) {
        http_exchange_on_gone(p->x, NULL, NULL);
        http_stream_end(p->x);
        p->x = NULL;
        loop_defer(p->browser->loop, &p->end, end_later);
    } else if (p->join) {
        loop_defer(p->browser->loop, &p->end, end_later);
    }
}

/* --- receiving --- */

static void receive(struct pipe *p, struct span text)
{
    struct sender s = {.browser = p->browser, .pipe = p, .page = p->page, .agent = p->agent};

    if (!pipe_counts(p)) {
        pipe_close(p, 1008, "too many messages");
        return;
    }
    s.dialect = p->dialect;
    s.offers_only = p->offers_only;
    s.origin = span_str(p->origin);
    s.session = p->page ? p->page->session : p->agent ? p->agent->session : NULL;
    if (s.session)
        session_touch(s.session);
    if (p->page)
        page_heard(p->page);
    (void)sender_receive(&s, text);
    if (s.reply.n)
        pipe_send(p, buf_view(&s.reply), false);
    buf_fini(&s.reply);
}

static void on_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct pipe *p = owner;

    if (op == WS_TEXT)
        receive(p, payload);
    else
        ws_close(p->ws, 1003, "messages are text frames");
}

static void on_closed(void *owner, uint16_t code, const char *reason)
{
    struct pipe *p = owner;

    log_debug("browser", "a WebSocket was closed: %u %s", code, reason);
    p->ws = NULL;
    pipe_free(p);
}

const struct ws_events pipe_ws_events = {.message = on_message, .closed = on_closed};

static void on_gone(void *owner)
{
    struct pipe *p = owner;

    p->x = NULL;
    pipe_free(p);
}

void pipe_take_stream(struct pipe *p, struct http_exchange *x)
{
    p->x = x;
    p->is_events = true;
    http_exchange_on_gone(x, on_gone, p);
    http_stream_begin(x, 200, "text/event-stream",
                      SPAN("Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"));
}

/* --- the Unix socket: one message a line --- */

static void on_line(void *owner, struct span line)
{
    receive(owner, line);
}

static void on_too_long(void *owner, struct span head)
{
    (void)head;
    pipe_close(owner, 1009, "message too large");
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct pipe *p = owner;

    lines_feed(p->lines, chunk, &line_events, p);
}

static void on_socket_closed(void *owner, const char *reason)
{
    struct pipe *p = owner;

    log_debug("browser", "a Unix connection was closed: %s", reason);
    p->stream = NULL;
    lines_fini(p->lines);
    mem_free(p->lines);
    pipe_free(p);
}

static const struct stream_events socket_events = {.data = on_data, .closed = on_socket_closed};

static void on_accept(void *owner, struct stream *stream)
{
    struct browser *b = owner;
    struct pipe *p = pipe_new(b, &dialect_d8, SPAN_EMPTY);

    p->stream = stream;
    p->lines = MEM_NEW(struct lines);
    lines_init(p->lines, b->options.max_message);
    stream_set_limit(stream, b->options.max_message * 2);
    stream_start(stream, &socket_events, p);
}

int pipe_listen(struct browser *b, const char *address, struct err *err)
{
    b->listener = listener_open(b->loop, address, on_accept, b, err);
    return b->listener ? 0 : ERR_CONFIG;
}
