/* Listens on the Unix socket, and reads one message a line from each connection. Called by
 * browser.c at the start. */
#include "base/log.h"
#include "base/mem.h"
#include "browser/inside.h"
#include "io/listen.h"

static void on_line(void *owner, struct span line)
{
    pipe_receive(owner, line);
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

static void on_closed(void *owner, const char *reason)
{
    struct pipe *p = owner;

    log_debug("browser", "a Unix connection was closed: %s", reason);
    p->stream = NULL;
    lines_fini(p->lines);
    mem_free(p->lines);
    pipe_free(p);
}

static const struct stream_events events = {.data = on_data, .closed = on_closed};

static void on_accept(void *owner, struct stream *stream)
{
    struct browser *b = owner;
    struct pipe *p = pipe_new(b, &dialect_d8, SPAN_EMPTY);

    p->stream = stream;
    p->lines = MEM_NEW(struct lines);
    lines_init(p->lines, b->options.max_message);
    stream_set_limit(stream, b->options.max_message * 2);
    stream_start(stream, &events, p);
}

int unix_open(struct browser *b, const char *address, struct err *err)
{
    b->listener = listener_open(b->loop, address, on_accept, b, err);
    return b->listener ? 0 : ERR_CONFIG;
}
