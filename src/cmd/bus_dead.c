/* Asks an embedded bus for its dead letters, one by one over the line protocol, and prints them.
 * Called by cmd/bus.c for `rialto bus tail --dead`. */
#include "base/log.h"
#include "base/mem.h"
#include "bus/line.h"
#include "cmd/bus_look.h"
#include "io/runtime_folder.h"
#include "io/stream.h"
#include "wire/lines.h"

#include <stdio.h>

/* Reads dead letters: each request is sent after the answer to the one before. */
struct reader {
    const struct command *self;
    const struct bus_settings *settings;
    struct loop *loop;
    struct stream *stream;
    struct lines lines;
    struct timer late;
    int64_t after, seen;
    bool json, done;
    int code;
};

enum { ANSWER_MS = 10000 };

static void stop(struct reader *r, const char *trouble)
{
    if (trouble) {
        cmd_error(r->self, "%s", trouble);
        r->code = CMD_FAILED;
    }
    r->done = true;
    timer_clear(loop_timers(r->loop), &r->late);
    if (r->stream)
        stream_close(r->stream, "done");
    else
        loop_stop(r->loop);
}

static void ask(struct reader *r)
{
    buf_printf(stream_out(r->stream), "{\"op\":\"dead\",\"id\":1,\"after\":%lld}\n",
               (long long)r->after);
    stream_wrote(r->stream);
    timer_set(loop_timers(r->loop), &r->late, ANSWER_MS);
}

static void show(struct reader *r, const struct line *l, struct span text)
{
    BUF_SCOPED scratch = {0}, texts = {0};
    struct buf out = {0}, head = {0};
    struct message m;
    struct err err;

    r->after = line_number(l, LINE_NUMBER, r->after + 1);
    r->seen++;
    if (r->json) {
        log_redact(&out, text);
        buf_char(&out, '\n');
        cmd_print(&out);
    } else if (message_from_json(&m, l->slots[LINE_ENV].value, &texts, &err) == 0) {
        buf_printf(&head, "#%lld  ", (long long)r->after);
        buf_span(&head, line_text(l, LINE_AT, &scratch));
        buf_str(&head, "  for group ");
        buf_span(&head, line_text(l, LINE_GROUP, &scratch));
        buf_char(&head, ' ');
        buf_span(&head, line_text(l, LINE_REASON, &scratch));
        bus_look_put_line(&out, &head);
        cmd_print(&out);
        bus_look_print(line_text(l, LINE_TOPIC, &scratch), &m, false);
    }
}

static void on_line(void *owner, struct span text)
{
    struct reader *r = owner;
    struct line l;

    if (r->done || line_read(&l, text) < 0)
        return;
    if (line_op_is(&l, "dead")) {
        show(r, &l, text);
        ask(r);
    } else if (line_op_is(&l, "ok")) {
        stop(r, NULL);
    } else {
        stop(r, "the bus did not let us look at its dead letters");
    }
}

static void on_too_long(void *owner, struct span head)
{
    (void)head;
    stop(owner, "the bus sent a line that is too long");
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct reader *r = owner;

    lines_feed(&r->lines, chunk, &line_events, r);
}

static void on_closed(void *owner, const char *reason)
{
    struct reader *r = owner;

    r->stream = NULL;
    if (r->done)
        loop_stop(r->loop);
    else
        stop(r, reason);
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_closed};

static void on_connected(void *owner, struct stream *s, int code)
{
    struct reader *r = owner;

    if (!s) {
        stop(r, err_name(code));
        cmd_hint("dead letters are kept by a bus that runs, and only as long as it runs");
        return;
    }
    r->stream = s;
    stream_start(s, &stream_events, r);
    if (r->settings->options.token) {
        struct buf *out = stream_out(s);
        buf_str(out, "{\"op\":\"hello\",\"token\":");
        json_quote(out, span_str(r->settings->options.token));
        buf_str(out, "}\n");
        stream_wrote(s);
    }
    ask(r);
}

static void on_late(struct timer *t)
{
    stop(CONTAINER_OF(t, struct reader, late), "the bus does not answer");
}

/* The address in the URL, which the caller frees; NULL when the URL is of another kind of bus. */
static char *address_of(const char *url)
{
    if (strncmp(url, "embedded:", 9) == 0)
        return runtime_folder_address("bus.sock");
    if (strncmp(url, "unix:", 5) == 0)
        return mem_str(url);
    return strncmp(url, "tcp://", 6) == 0 ? mem_str(url + 6) : NULL;
}

int bus_look_dead(const struct command *self, struct bus_settings *s, bool json)
{
    char *address = address_of(s->options.url);

    if (!address) {
        cmd_error(self, "only the embedded bus keeps its dead letters for us");
        cmd_hint("RabbitMQ has them in the queues rockbot.*.dlq, NATS under the subjects dlq.>");
        return CMD_USAGE;
    }
    struct reader r = {.self = self, .settings = s, .loop = loop_new(), .json = json};
    lines_init(&r.lines, 2ul * LINE_MOST);
    r.late.fire = on_late;
    stream_connect(r.loop, address, on_connected, &r);
    loop_run(r.loop);
    loop_free(r.loop);
    lines_fini(&r.lines);
    mem_free(address);
    if (!json && r.code == CMD_FINE && !r.seen)
        fprintf(stderr, "no dead letters\n");
    return r.code;
}
