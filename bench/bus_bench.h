/*
 * What the raw ping-pong programs share: the clock, the times of calls, and the line of figures
 * in the form that bus_probe prints. A call is answered by an echo of the same kind in another
 * process.
 */
#ifndef RIALTO_BENCH_BUS_BENCH_H
#define RIALTO_BENCH_BUS_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct calls {
    uint64_t *sent, *took;
    size_t n_sent, n_took, cap;
    uint64_t began, ends;
};

static inline void calls_begin(struct calls *c, double seconds)
{
    c->n_sent = c->n_took = 0;
    c->began = now_ns();
    c->ends = c->began + (uint64_t)(seconds * 1e9);
}

/* Records that a call is sent now; returns its number. */
static inline size_t calls_send(struct calls *c)
{
    if (c->n_sent == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 4096;
        c->sent = realloc(c->sent, c->cap * sizeof *c->sent);
        c->took = realloc(c->took, c->cap * sizeof *c->took);
        if (!c->sent || !c->took)
            abort();
    }
    c->sent[c->n_sent] = now_ns();
    return c->n_sent++;
}

/* Records the answer to a call; false when the time is over. */
static inline int calls_answered(struct calls *c, size_t number)
{
    uint64_t now = now_ns();
    if (now >= c->ends)
        return 0;
    if (number < c->n_sent)
        c->took[c->n_took++] = now - c->sent[number];
    return 1;
}

static inline int calls_by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static inline void calls_print(struct calls *c)
{
    double seconds = (double)(now_ns() - c->began) / 1e9;
    qsort(c->took, c->n_took, sizeof *c->took, calls_by_size);
    if (c->n_took)
        printf("rate=%.0f p50=%.0f p99=%.0f\n", (double)c->n_took / seconds,
               (double)c->took[c->n_took / 2] / 1e3, (double)c->took[c->n_took * 99 / 100] / 1e3);
    free(c->sent);
    free(c->took);
}

/* The body of a request; the caller frees it. */
static inline char *request_body(long bytes)
{
    static const char head[] = "{\"toolCallId\":\"1\",\"toolName\":\"echo\","
                               "\"arguments\":\"{\\\"message\\\":\\\"",
                      tail[] = "\\\"}\",\"sessionId\":null}";
    char *body = malloc(sizeof head + sizeof tail + (size_t)bytes);
    if (!body)
        abort();
    char *end = body + sizeof head - 1;
    memcpy(body, head, sizeof head - 1);
    memset(end, 'x', (size_t)bytes);
    memcpy(end + bytes, tail, sizeof tail);
    return body;
}

#endif
