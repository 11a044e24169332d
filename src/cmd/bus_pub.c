/* Sends one message to a topic of the bus and, with --wait, waits for the reply and prints it.
 * Called by cmd/bus.c for `rialto bus pub`. */
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/bus_look.h"

#include <signal.h>
#include <stdio.h>

/* How long to try to send the message, and how often to send a probe to the reply topic. */
enum { SEND_MS = 10000, KNOCK_MS = 100 };

struct pub {
    const struct command *self;
    const struct bus_pub *what;
    struct loop *loop;
    struct bus *bus;
    char correlation[ID_TOKEN_SIZE];
    char own_topic[ID_TOKEN_SIZE + 32];
    const char *reply_topic;
    struct timer knock, late;
    bool heard; /* a probe came back: the subscription of the reply topic works */
    bool closing;
    int code;
};

static void leave(struct pub *p, int code)
{
    if (p->closing)
        return;
    p->closing = true;
    p->code = code;
    timer_clear(loop_timers(p->loop), &p->knock);
    timer_clear(loop_timers(p->loop), &p->late);
    bus_close(p->bus);
}

static void on_sent(void *owner, enum bus_sent how)
{
    struct pub *p = owner;

    if (p->closing)
        return;
    if (how != BUS_SENT) {
        cmd_error(p->self, "not sent: %s", bus_sent_name(how));
        leave(p, CMD_FAILED);
    } else if (!p->what->wait) {
        leave(p, CMD_FINE);
    }
}

static void send(struct pub *p)
{
    const struct bus_pub *w = p->what;
    struct message m = {.type = span_str(w->type ? w->type : "unknown"),
                        .source = span_str(w->source),
                        .reply_to = span_str(w->reply_to),
                        .body = w->body};

    if (w->wait) {
        m.reply_to = span_str(p->reply_topic);
        m.correlation = span_str(p->correlation);
        timer_set(loop_timers(p->loop), &p->late, w->wait);
    }
    for (size_t i = 0; i < w->n_headers; i++)
        m.headers[m.n_headers++] = w->headers[i];
    bus_publish(p->bus, span_str(w->topic), &m, SEND_MS, on_sent, p);
}

/*
 * A reply that comes before the bus has made our subscription would be lost. So probes are sent to
 * the reply topic, and the message only after one of them came back.
 */
static void on_knock(struct timer *t)
{
    struct pub *p = CONTAINER_OF(t, struct pub, knock);

    bus_publish(p->bus, span_str(p->reply_topic),
                &(struct message){.type = SPAN("rialto.knock"), .body = SPAN("null")}, KNOCK_MS,
                NULL, NULL);
    timer_set(loop_timers(p->loop), t, KNOCK_MS);
}

static void on_message(void *owner, const struct bus_delivery *d)
{
    struct pub *p = owner;

    bus_settle(d->sub, d->tag, BUS_ACK);
    if (p->closing)
        return;
    if (span_is(d->message->type, "rialto.knock")) {
        timer_clear(loop_timers(p->loop), &p->knock);
        if (p->heard)
            return;
        p->heard = true;
        send(p);
    } else if (span_is(d->message->correlation, p->correlation)) {
        bus_look_print(d->topic, d->message, p->what->json);
        leave(p, CMD_FINE);
    }
}

static void on_late(struct timer *t)
{
    struct pub *p = CONTAINER_OF(t, struct pub, late);

    if (p->heard)
        cmd_error(p->self, "no reply came in time");
    else if (bus_is_up(p->bus))
        cmd_error(p->self, "not sent: the bus does not let us listen for the reply");
    else
        cmd_error(p->self, "not sent: %s does not answer", bus_describe(p->bus));
    leave(p, CMD_FAILED);
}

static void on_up(void *owner)
{
    struct pub *p = owner;

    if (p->what->wait && !p->heard)
        timer_set(loop_timers(p->loop), &p->knock, 0);
}

static void on_down(void *owner, const char *why)
{
    struct pub *p = owner;

    cmd_error(p->self, "%s: %s", bus_describe(p->bus), why);
    leave(p, CMD_FAILED);
}

static void on_closed(void *owner)
{
    loop_stop(((struct pub *)owner)->loop);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    leave(arg, CMD_FAILED);
}

static const struct bus_events events = {on_up, on_down, on_closed};

/* The reply topic is that of --reply-to, or a random one. */
static void listen_for_reply(struct pub *p)
{
    char group[ID_TOKEN_SIZE + 4] = "pub.";

    id_token(p->correlation);
    id_token(group + 4);
    snprintf(p->own_topic, sizeof p->own_topic, "rialto.reply.%s", group + 4);
    p->reply_topic = p->what->reply_to ? p->what->reply_to : p->own_topic;
    bus_subscribe(p->bus,
                  &(struct bus_subscription){
                      .topic = p->reply_topic, .group = group, .ephemeral = true, .lossy = true},
                  on_message, p);
}

int bus_look_send(const struct command *self, struct bus_settings *s, const struct bus_pub *pub)
{
    struct pub p = {.self = self, .what = pub, .loop = loop_new()};
    struct err err = {0};

    s->options.join_only = true;
    p.knock.fire = on_knock;
    p.late.fire = on_late;
    p.bus = bus_open(p.loop, &s->options, &events, &p, &err);
    if (!p.bus) {
        cmd_error(self, "%s", err.text);
        if (err.hint[0])
            cmd_hint("%s", err.hint);
        loop_free(p.loop);
        return CMD_FAILED;
    }
    if (pub->wait) {
        listen_for_reply(&p);
        timer_set(loop_timers(p.loop), &p.late, SEND_MS);
    } else {
        send(&p);
    }
    if (loop_on_signal(p.loop, SIGINT, on_signal, &p) < 0 ||
        loop_on_signal(p.loop, SIGTERM, on_signal, &p) < 0)
        log_warn("bus", "cannot handle signals");
    loop_run(p.loop);
    loop_free(p.loop);
    return p.code;
}
