/*
 * bus_line: feeds the lines of the input to two connections of the embedded bus; the first byte of
 * a line chooses the connection. Whatever the input is, every line that a connection sends is one
 * JSON object with an op, and nothing is left in the broker when both are freed.
 */
#include "base/log.h"
#include "bus/line.h"
#include "bus/line_conn.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct wire {
    struct line_conn *conn;
    struct buf out;
};

static struct buf *wire_out(void *owner)
{
    return &((struct wire *)owner)->out;
}

static void nothing(void *owner)
{
    (void)owner;
}

static bool always(void *owner)
{
    (void)owner;
    return true;
}

static void ended(void *owner, const char *why)
{
    (void)owner;
    (void)why;
}

static const struct line_conn_events events = {wire_out, nothing, always, ended, nothing};

static void check_said(struct wire *w)
{
    struct span rest = buf_view(&w->out);
    struct line l;

    while (rest.n) {
        size_t n = span_find(rest, '\n');
        assert(n < rest.n);
        int code = line_read(&l, span_cut(rest, 0, n));
        assert(code == 0);
        (void)code;
        rest = span_from(rest, n + 1);
    }
    w->out.n = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of((const char *)data, size);
    struct loop *loop = loop_new();
    struct broker *broker =
        broker_new(loop, &(struct broker_options){.queue_messages = 8, .retry_ms = 1});
    struct wire wires[2] = {{0}};

    log_set_level(LOG_ERROR);
    for (int i = 0; i < 2; i++)
        wires[i].conn = line_conn_new(broker, i ? "token" : NULL, &events, &wires[i]);
    while (rest.n) {
        size_t n = span_find(rest, '\n');
        struct span line = span_cut(rest, 0, n);
        rest = span_from(rest, n + 1);
        if (!line.n)
            continue;
        struct wire *w = &wires[line.p[0] & 1];
        line_conn_line(w->conn, span_from(line, 1));
        loop_step(loop, 0);
        check_said(&wires[0]);
        check_said(&wires[1]);
    }
    for (int i = 0; i < 2; i++) {
        line_conn_free(wires[i].conn);
        buf_fini(&wires[i].out);
    }
    broker_free(broker);
    loop_free(loop);
    return 0;
}
