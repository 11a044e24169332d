/*
 * Commands, one JSON object per line:
 *   {"op":"sub","name":"s","topic":"a.#","group":"g","prefetch":3,"ephemeral":true,"lossy":true,
 *    "verdict":"ack"|"retry"|"dead"|"hold"}       what is done with its messages
 *   {"op":"unsub","name":"s"}
 *   {"op":"settle","name":"s","tag":"7","verdict":"ack"}
 *   {"op":"pub","topic":"a.b","env":{...},"wait":5000}
 * At the end of the input the bus is closed. Events: up, down, message, sent, in the same form.
 */
#include "bus_probe.h"

#include "base/map.h"
#include "base/mem.h"
#include "io/stream.h"
#include "wire/json.h"
#include "wire/lines.h"

#include <stdlib.h>

struct drive {
    struct probe *probe;
    struct stream *stdio;
    struct lines lines;
    struct map subs;
    struct buf scratch;
    uint64_t published;
    bool gone; /* the bus is closed; the last event is still to be written */
};

struct drive_sub {
    struct drive *drive;
    struct bus_sub *sub;
    char *name, *verdict;
};

/* There is only one, as there is one stdin and one stdout. */
static struct drive the_drive;

static void emit(struct buf *line)
{
    buf_char(line, '\n');
    if (the_drive.stdio)
        stream_write(the_drive.stdio, buf_view(line));
    buf_fini(line);
}

static void put_member(struct buf *out, const char *key, struct span text)
{
    buf_printf(out, ",\"%s\":", key);
    json_quote(out, text);
}

/* --- events --- */

static void on_up(void *owner)
{
    struct buf line = {0};
    (void)owner;
    buf_str(&line, "{\"event\":\"up\"}");
    emit(&line);
}

static void on_down(void *owner, const char *why)
{
    struct buf line = {0};
    (void)owner;
    buf_str(&line, "{\"event\":\"down\"");
    put_member(&line, "why", span_str(why));
    buf_char(&line, '}');
    emit(&line);
}

static void settle(struct bus_sub *sub, uint64_t tag, const char *verdict)
{
    static const char *const words[] = {
        [BUS_ACK] = "ack", [BUS_RETRY] = "retry", [BUS_DEAD] = "dead"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(words[i], verdict) == 0)
            bus_settle(sub, tag, (enum bus_verdict)i);
}

static void on_message(void *owner, const struct bus_delivery *d)
{
    struct drive_sub *s = owner;
    struct buf line = {0};

    buf_printf(&line, "{\"event\":\"message\",\"tag\":\"%llu\",\"redelivered\":%s",
               (unsigned long long)d->tag, d->redelivered ? "true" : "false");
    put_member(&line, "name", span_str(s->name));
    put_member(&line, "topic", d->topic);
    buf_str(&line, ",\"env\":");
    message_put_json(&line, d->message);
    buf_char(&line, '}');
    emit(&line);
    settle(d->sub, d->tag, s->verdict);
}

static void on_sent(void *owner, enum bus_sent how)
{
    struct buf line = {0};
    buf_printf(&line, "{\"event\":\"sent\",\"n\":%llu", (unsigned long long)(uintptr_t)owner);
    put_member(&line, "how", span_str(bus_sent_name(how)));
    buf_char(&line, '}');
    emit(&line);
}

/* --- commands --- */

/* The value of a string member, owned by the caller; NULL when it is no string. */
static char *text_of(struct drive *d, struct span command, const char *key)
{
    struct json_slot slot = json_get(command, key);
    d->scratch.n = 0;
    return slot.type == JSON_STRING ? mem_span(json_text(slot.value, &d->scratch)) : NULL;
}

static uint64_t number_of(struct span command, const char *key)
{
    int64_t number = 0;
    struct json_slot slot = json_get(command, key);
    if (slot.type == JSON_NUMBER && !json_int(slot.value, &number))
        number = 0;
    return (uint64_t)number;
}

static void sub_free(struct drive_sub *s)
{
    mem_free(s->name);
    mem_free(s->verdict);
    mem_free(s);
}

static void do_sub(struct drive *d, struct span command)
{
    struct drive_sub *s = MEM_NEW(struct drive_sub);
    char *topic = text_of(d, command, "topic"), *group = text_of(d, command, "group");

    s->drive = d;
    s->name = text_of(d, command, "name");
    s->verdict = text_of(d, command, "verdict");
    const struct bus_subscription what = {
        .topic = topic,
        .group = group,
        .prefetch = (unsigned)number_of(command, "prefetch"),
        .ephemeral = json_get(command, "ephemeral").type == JSON_TRUE,
        .lossy = json_get(command, "lossy").type == JSON_TRUE,
    };
    s->sub = bus_subscribe(d->probe->bus, &what, on_message, s);
    map_put(&d->subs, span_str(s->name), s);
    mem_free(topic);
    mem_free(group);
}

static void do_unsub(struct drive *d, struct span command)
{
    char *name = text_of(d, command, "name");
    struct drive_sub *s = map_del(&d->subs, span_str(name));
    if (s) {
        bus_unsubscribe(s->sub);
        sub_free(s);
    }
    mem_free(name);
}

static void do_settle(struct drive *d, struct span command)
{
    char *name = text_of(d, command, "name"), *tag = text_of(d, command, "tag"),
         *verdict = text_of(d, command, "verdict");
    struct drive_sub *s = map_get(&d->subs, span_str(name));
    if (s)
        settle(s->sub, strtoull(tag, NULL, 10), verdict);
    mem_free(name);
    mem_free(tag);
    mem_free(verdict);
}

static void do_pub(struct drive *d, struct span command)
{
    char *topic = text_of(d, command, "topic");
    struct buf scratch = {0};
    struct message m;
    struct err err;

    if (message_from_json(&m, json_get(command, "env").value, &scratch, &err) == 0)
        bus_publish(d->probe->bus, span_str(topic), &m, number_of(command, "wait"), on_sent,
                    (void *)(uintptr_t)++d->published);
    else
        on_down(d, err.text);
    buf_fini(&scratch);
    mem_free(topic);
}

static const struct {
    const char *op;
    void (*run)(struct drive *d, struct span command);
} ops[] = {{"sub", do_sub}, {"unsub", do_unsub}, {"settle", do_settle}, {"pub", do_pub}};

static void on_line(void *owner, struct span line)
{
    struct drive *d = owner;
    if (json_skim(line, NULL, NULL, NULL, NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        if (json_string_is(json_get(line, "op").value, span_str(ops[i].op)))
            ops[i].run(d, line);
}

static void on_too_long(void *owner, struct span head)
{
    (void)owner;
    (void)head;
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct drive *d = owner;
    lines_feed(&d->lines, chunk, &line_events, d);
}

static void on_eof(void *owner)
{
    struct drive *d = owner;
    probe_close(d->probe);
}

static void on_stdio_closed(void *owner, const char *reason)
{
    struct drive *d = owner;
    (void)reason;
    d->stdio = NULL;
    if (d->gone)
        loop_stop(d->probe->loop);
}

static const struct stream_events stdio_events = {
    .data = on_data, .eof = on_eof, .closed = on_stdio_closed};

static int start(struct probe *p)
{
    struct drive *d = &the_drive;
    d->probe = p;
    lines_init(&d->lines, 64 * 1024 * 1024);
    d->stdio = stream_stdio(p->loop);
    stream_set_limit(d->stdio, (size_t)1 << 30);
    stream_start(d->stdio, &stdio_events, d);
    return 0;
}

static void on_closed(void *owner)
{
    struct buf line = {0};
    buf_str(&line, "{\"event\":\"closed\"}");
    emit(&line);
    the_drive.gone = true;
    if (the_drive.stdio)
        stream_finish(the_drive.stdio, "the end", 2000);
    else
        probe_closed(owner);
}

static void end(struct probe *p)
{
    struct drive *d = &the_drive;
    size_t at = 0;
    struct span key;
    void *value;
    (void)p;
    while (map_next(&d->subs, &at, &key, &value))
        sub_free(value);
    map_fini(&d->subs);
    lines_fini(&d->lines);
    buf_fini(&d->scratch);
}

const struct probe_role probe_drive = {"drive", 0, {on_up, on_down, on_closed}, start, end};
