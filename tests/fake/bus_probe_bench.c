#include "bus_probe.h"

#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- echo --- */

struct answer {
    struct bus_sub *sub;
    uint64_t tag;
};

/* Like a worker: settles the request when its answer is confirmed. */
static void on_answered(void *owner, enum bus_sent how)
{
    struct answer *a = owner;
    if (how != BUS_CLOSED)
        bus_settle(a->sub, a->tag, how == BUS_SENT ? BUS_ACK : BUS_DEAD);
    mem_free(a);
}

static void on_request(void *owner, const struct bus_delivery *d)
{
    struct probe *p = owner;
    struct answer *a = MEM_NEW(struct answer);
    struct message m = *d->message;

    *a = (struct answer){d->sub, d->tag};
    m.id = SPAN_EMPTY;
    m.sent_ms = 0;
    m.source = SPAN_EMPTY;
    m.reply_to = SPAN_EMPTY;
    bus_publish(p->bus, d->message->reply_to, &m, 0, on_answered, a);
}

static void on_up_quietly(void *owner)
{
    (void)owner;
    fprintf(stderr, "up\n");
}

static int start_echo(struct probe *p)
{
    const struct bus_subscription what = {.topic = p->arguments[0],
                                          .group = p->arguments[1],
                                          .prefetch = (unsigned)atoi(p->arguments[2])};
    bus_subscribe(p->bus, &what, on_request, p);
    return 0;
}

const struct probe_role probe_echo = {
    "echo", 3, {on_up_quietly, probe_down, probe_closed}, start_echo, NULL};

/* --- bench --- */

static struct bench {
    struct probe *probe;
    struct bus_sub *sub;
    struct timer end, first;
    const char *topic;
    char reply_to[64], group[64];
    uint64_t *sent; /* times, by call */
    uint64_t *took; /* of the calls that ended, ns */
    size_t n_sent, n_took, cap, in_flight;
    uint64_t began;
    bool warm, over;
    struct buf body;
} the_bench;

static void request(struct bench *b, struct span correlation, uint64_t wait_ms)
{
    struct message m = {.type = SPAN("RockBot.Tools.ToolInvokeRequest"),
                        .correlation = correlation,
                        .reply_to = span_str(b->reply_to),
                        .body = buf_view(&b->body)};
    message_add_header(&m, "rb-content-trust", SPAN("tool-request"));
    message_add_header(&m, "rb-tool-provider", SPAN("mcp"));
    message_add_header(&m, "rb-timeout-ms", SPAN("60000"));
    message_add_header(&m, "rb-mcp-server", SPAN("echo"));
    bus_publish(b->probe->bus, span_str(b->topic), &m, wait_ms, NULL, NULL);
}

static void call_once(struct bench *b)
{
    char id[24];
    if (b->n_sent == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 4096;
        b->sent = mem_resize(b->sent, b->cap * sizeof *b->sent);
        b->took = mem_resize(b->took, b->cap * sizeof *b->took);
    }
    snprintf(id, sizeof id, "%zu", b->n_sent);
    b->sent[b->n_sent++] = now_ns();
    request(b, span_str(id), 0);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void finish(struct timer *t)
{
    struct bench *b = CONTAINER_OF(t, struct bench, end);
    double seconds = (double)(now_ns() - b->began) / 1e9;

    b->over = true;
    qsort(b->took, b->n_took, sizeof *b->took, by_size);
    if (b->n_took)
        printf("rate=%.0f p50=%.0f p99=%.0f\n", (double)b->n_took / seconds,
               (double)b->took[b->n_took / 2] / 1e3, (double)b->took[b->n_took * 99 / 100] / 1e3);
    fflush(stdout);
    probe_close(b->probe);
}

/* The first answer shows that both sides are connected: the measurement starts now. */
static void warm_up(struct bench *b)
{
    b->warm = true;
    timer_clear(loop_timers(b->probe->loop), &b->first);
    b->n_sent = b->n_took = 0;
    b->began = now_ns();
    timer_set(loop_timers(b->probe->loop), &b->end,
              (uint64_t)(atof(b->probe->arguments[1]) * 1000));
    for (size_t i = 0; i < b->in_flight; i++)
        call_once(b);
}

static void on_reply(void *owner, const struct bus_delivery *d)
{
    struct bench *b = owner;
    bus_settle(d->sub, d->tag, BUS_ACK);
    if (b->over)
        return;
    if (span_is(d->message->type, "RockBot.Tools.ToolError")) {
        fprintf(stderr, "a call failed: " SPAN_FMT "\n", SPAN_ARG(d->message->body));
        return; /* an error comes back faster than a result */
    }
    if (!b->warm) {
        warm_up(b);
        return;
    }
    char *id = mem_span(d->message->correlation);
    size_t n = (size_t)strtoull(id, NULL, 10);
    bool ours = id[0] != 'w' && n < b->n_sent;
    mem_free(id);
    if (!ours)
        return;
    b->took[b->n_took++] = now_ns() - b->sent[n];
    call_once(b);
}

/* Repeats the first request each second until it is answered. */
static void ask_first(struct timer *t)
{
    struct bench *b = CONTAINER_OF(t, struct bench, first);

    request(b, SPAN("w"), 900);
    timer_set(loop_timers(b->probe->loop), &b->first, 1000);
}

static void on_bench_up(void *owner)
{
    struct probe *p = owner;
    if (!the_bench.warm)
        timer_set(loop_timers(p->loop), &the_bench.first, 50);
}

static int start_bench(struct probe *p)
{
    struct bench *b = &the_bench;
    char token[ID_TOKEN_SIZE];

    id_token(token);
    b->probe = p;
    b->topic = p->arguments[0];
    b->in_flight = (size_t)atol(p->arguments[2]);
    b->end.fire = finish;
    b->first.fire = ask_first;
    snprintf(b->reply_to, sizeof b->reply_to, "bench.result.%s", token);
    snprintf(b->group, sizeof b->group, "bench.%s", token);
    buf_str(&b->body, "{\"toolCallId\":\"1\",\"toolName\":\"echo\","
                      "\"arguments\":\"{\\\"message\\\":\\\"");
    for (long i = atol(p->arguments[3]); i > 0; i--)
        buf_char(&b->body, 'x');
    buf_str(&b->body, "\\\"}\",\"sessionId\":null}");
    const struct bus_subscription what = {
        .topic = b->reply_to, .group = b->group, .prefetch = 256, .ephemeral = true};
    b->sub = bus_subscribe(p->bus, &what, on_reply, b);
    return 0;
}

static void end_bench(struct probe *p)
{
    (void)p;
    mem_free(the_bench.sent);
    mem_free(the_bench.took);
    buf_fini(&the_bench.body);
}

const struct probe_role probe_bench = {
    "bench", 4, {on_bench_up, probe_down, probe_closed}, start_bench, end_bench};
