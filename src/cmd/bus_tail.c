/* Prints the messages of a bus as they pass, and writes a message as text or JSON. Called by
 * cmd/bus.c for `rialto bus tail`; bus_dead.c and bus_pub.c call bus_look_print. */
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "cmd/bus_look.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <signal.h>
#include <stdio.h>

enum { PREFETCH = 100 };

struct tail {
    const struct command *self;
    const struct bus_tail *what;
    struct loop *loop;
    struct bus *bus; /* NULL once closed */
    uint64_t seen;
    bool was_up, closing;
    int code;
};

static void put_json(struct buf *out, struct span topic, const struct message *m)
{
    buf_char(out, '{');
    json_out_text(out, "topic", topic);
    json_out(out, "env");
    message_put_json(out, m);
    buf_str(out, "}\n");
}

/* "RockBot.Tools.ToolError" -> "ToolError" */
static struct span last_name(struct span type)
{
    for (size_t i = type.n; i > 0; i--)
        if (type.p[i - 1] == '.')
            return span_from(type, i);
    return type;
}

static void put_head(struct buf *out, struct span topic, const struct message *m)
{
    stamp_put(out, m->sent_ms);
    buf_printf(out, "  " SPAN_FMT "  " SPAN_FMT "  from " SPAN_FMT, SPAN_ARG(topic),
               SPAN_ARG(last_name(m->type)), SPAN_ARG(m->source));
    if (m->correlation.n)
        buf_printf(out, "  for " SPAN_FMT, SPAN_ARG(m->correlation));
    if (m->reply_to.n)
        buf_printf(out, "  reply to " SPAN_FMT, SPAN_ARG(m->reply_to));
}

static void put_body(struct buf *out, struct span body)
{
    if (json_skim(body, NULL, NULL, NULL, NULL) == 0)
        json_one_line(out, body);
    else
        buf_printf(out, "(%zu bytes that are not JSON)", body.n);
}

void bus_look_put_line(struct buf *out, struct buf *text)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, buf_view(text));
    cmd_put_plain(out, buf_view(&shown));
    buf_char(out, '\n');
    buf_fini(text);
}

void bus_look_print(struct span topic, const struct message *m, bool json)
{
    struct buf text = {0}, shown = {0};

    if (json) {
        put_json(&text, topic, m);
        log_redact(&shown, buf_view(&text));
        buf_fini(&text);
    } else {
        put_head(&text, topic, m);
        bus_look_put_line(&shown, &text);
        buf_str(&text, "    ");
        put_body(&text, m->body);
        bus_look_put_line(&shown, &text);
    }
    cmd_print(&shown);
    fflush(stdout);
}

static void leave(struct tail *t)
{
    if (t->closing)
        return;
    t->closing = true;
    bus_close(t->bus);
}

static void on_message(void *owner, const struct bus_delivery *d)
{
    struct tail *t = owner;

    bus_settle(d->sub, d->tag, BUS_ACK);
    if (t->closing)
        return;
    bus_look_print(d->topic, d->message, t->what->json);
    if (++t->seen == t->what->most || ferror(stdout))
        leave(t);
}

static void on_up(void *owner)
{
    ((struct tail *)owner)->was_up = true;
}

static void on_down(void *owner, const char *why)
{
    struct tail *t = owner;

    if (t->was_up)
        return; /* wait until the bus is back, or for Ctrl-C */
    cmd_error(t->self, "cannot join %s: %s", bus_describe(t->bus), why);
    t->code = CMD_FAILED;
    leave(t);
}

static void on_closed(void *owner)
{
    struct tail *t = owner;

    t->bus = NULL;
    loop_stop(t->loop);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    leave(arg);
}

static const struct bus_events events = {on_up, on_down, on_closed};

int bus_look_tail(const struct command *self, struct bus_settings *s, const struct bus_tail *tail)
{
    struct tail t = {.self = self, .what = tail, .loop = loop_new()};
    struct err err = {0};
    char group[ID_TOKEN_SIZE + 5] = "tail.";

    s->options.join_only = true;
    t.bus = bus_open(t.loop, &s->options, &events, &t, &err);
    if (!t.bus) {
        cmd_error(self, "%s", err.text);
        if (err.hint[0])
            cmd_hint("%s", err.hint);
        loop_free(t.loop);
        return CMD_FAILED;
    }
    /* A group of its own gets copies, so that no other reader loses a message. */
    id_token(group + 5);
    bus_subscribe(t.bus,
                  &(struct bus_subscription){.topic = tail->pattern,
                                             .group = group,
                                             .prefetch = PREFETCH,
                                             .ephemeral = true,
                                             .lossy = true},
                  on_message, &t);
    if (loop_on_signal(t.loop, SIGINT, on_signal, &t) < 0 ||
        loop_on_signal(t.loop, SIGTERM, on_signal, &t) < 0)
        log_warn("bus", "cannot handle signals");
    loop_run(t.loop);
    loop_free(t.loop);
    return t.code;
}
