/*
 * Helpers of the io/ tests: they run the real loop in small steps until something has happened.
 */
#ifndef RIALTO_TESTS_IO_TEST_H
#define RIALTO_TESTS_IO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/loop.h"
#include "io/stream.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs the loop until `cond` is true; fails the test after `ms`. */
#define WAIT_MS(l, cond, ms)                                                                       \
    do {                                                                                           \
        loop_step((l), 0);                                                                         \
        uint64_t wait_end = loop_now(l) + (ms);                                                    \
        while (!(cond)) {                                                                          \
            if (loop_now(l) >= wait_end)                                                           \
                fail_msg("waited %d ms in vain for: %s", (int)(ms), #cond);                        \
            loop_step((l), 20);                                                                    \
        }                                                                                          \
    } while (0)
#define WAIT(l, cond) WAIT_MS(l, cond, 20000)

/* Runs the loop for `ms`, whatever happens. */
static inline void run_for(struct loop *l, uint64_t ms)
{
    loop_step(l, 0);
    uint64_t end = loop_now(l) + ms;
    while (loop_now(l) < end)
        loop_step(l, 5), usleep(1000);
}

/* One end of a stream that records its events. */
struct party {
    struct stream *stream;
    struct buf got;
    int n_eof, n_drained, n_closed;
    char reason[128];
};

static inline void party_data(void *owner, struct span chunk)
{
    struct party *p = owner;
    buf_span(&p->got, chunk);
}

static inline void party_eof(void *owner)
{
    ((struct party *)owner)->n_eof++;
}

static inline void party_drained(void *owner)
{
    ((struct party *)owner)->n_drained++;
}

static inline void party_closed(void *owner, const char *reason)
{
    struct party *p = owner;
    p->n_closed++;
    p->stream = NULL;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
}

static const struct stream_events party_events = {party_data, party_eof, party_drained,
                                                  party_closed};
/* The same without `eof`, so that EOF closes. */
static const struct stream_events party_plain = {party_data, NULL, NULL, party_closed};

static inline void party_join(struct party *p, struct stream *s)
{
    *p = (struct party){.stream = s};
    stream_start(s, &party_events, p);
}

static inline void party_fini(struct party *p)
{
    buf_fini(&p->got);
}

static inline bool party_has(const struct party *p, const char *text)
{
    return p->got.n && memmem(p->got.p, p->got.n, text, strlen(text));
}

/* How often `text` occurs in the received bytes. */
static inline int party_count(const struct party *p, const char *text)
{
    int n = 0;
    size_t at = 0, len = strlen(text);
    for (const char *hit; at < p->got.n && (hit = memmem(p->got.p + at, p->got.n - at, text, len));
         n++)
        at = (size_t)(hit - p->got.p) + len;
    return n;
}

static inline void on_party_connected(void *owner, struct stream *s, int code)
{
    struct party *p = owner;
    assert_int_equal(code, 0);
    party_join(p, s);
}

/* Connects and waits until the stream is there. */
static inline void party_connect(struct party *p, struct loop *l, const char *address)
{
    *p = (struct party){0};
    stream_connect(l, address, on_party_connected, p);
    WAIT(l, p->stream);
}

static inline void party_leave(struct party *p, struct loop *l)
{
    if (p->stream)
        stream_close(p->stream, "test over");
    WAIT(l, !p->stream);
    party_fini(p);
}

static inline int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A new empty folder; the test removes what it puts there and calls rmdir. */
static inline void make_folder(char path[32])
{
    strcpy(path, "/tmp/rialto-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

#endif
