/* Counting the calls of a token's owner against its limits. Made by hub/auth/gate.c,
 * hub/auth/pass.c and, for operators, hub/endpoints.c and admin/replay.c; call_open.c takes, call.c
 * gives back, hub/graph/instance.c reads the limit on processes. */
#include "core/principal.h"

#include "base/mem.h"

enum { MINUTE_MS = 60 * 1000, BUSY_RETRY_MS = 1000 };

struct principal *principal_new(const char *name)
{
    struct principal *p = MEM_NEW(struct principal);

    p->name = mem_str(name);
    p->holders = 1;
    return p;
}

struct principal *principal_new_tokenless(const char *name)
{
    struct principal *p = principal_new(name);

    p->tokenless = true;
    return p;
}

struct principal *principal_hold(struct principal *p)
{
    if (p)
        p->holders++;
    return p;
}

void principal_release(struct principal *p)
{
    if (!p || --p->holders)
        return;
    mem_free(p->times);
    mem_free(p->name);
    mem_free(p);
}

const char *principal_name(const struct principal *p)
{
    return p ? p->name : NULL;
}

/* Makes a ring of another length, with the newest times of the old ring. */
static void resize_ring(struct principal *p, size_t n)
{
    uint64_t *times = n ? MEM_ARRAY(uint64_t, n) : NULL;
    size_t kept = p->n_times < n ? p->n_times : n;

    /* Entries that stay 0 mean "no call": a call at time 0 is stored as time 1. */
    for (size_t i = 0; i < kept; i++)
        times[n - kept + i] = p->times[(p->next + p->n_times - kept + i) % p->n_times];
    mem_free(p->times);
    p->times = times;
    p->n_times = n;
    p->next = 0;
}

void principal_set_limits(struct principal *p, const struct principal_limits *limits)
{
    if (p->n_times != limits->calls_per_minute)
        resize_ring(p, limits->calls_per_minute);
    p->limits = *limits;
}

/* How long until one more call is within calls_per_minute, in ms; 0: now. */
static uint64_t wait_of(const struct principal *p, uint64_t now)
{
    uint64_t oldest = p->n_times ? p->times[p->next] : 0;

    return oldest && now < oldest + MINUTE_MS ? oldest + MINUTE_MS - now : 0;
}

bool principal_take(struct principal *p, uint64_t now, size_t bytes, struct buf *why,
                    uint64_t *retry_ms)
{
    const struct principal_limits *l = &p->limits;

    if (l->in_flight && p->in_flight >= l->in_flight) {
        buf_printf(why, "the token '%s' has %zu calls in flight, and may have %llu at once",
                   p->name, p->in_flight, (unsigned long long)l->in_flight);
        *retry_ms = BUSY_RETRY_MS;
        return false;
    }
    if (l->bytes && (bytes > l->bytes || p->bytes > l->bytes - bytes)) {
        buf_printf(why, "the calls of the token '%s' may carry %llu bytes at once", p->name,
                   (unsigned long long)l->bytes);
        *retry_ms = bytes > l->bytes ? 0 : BUSY_RETRY_MS;
        return false;
    }
    *retry_ms = wait_of(p, now);
    if (*retry_ms) {
        buf_printf(why, "the token '%s' may make %llu calls per minute", p->name,
                   (unsigned long long)l->calls_per_minute);
        return false;
    }
    if (p->n_times) {
        p->times[p->next] = now ? now : 1;
        p->next = (p->next + 1) % p->n_times;
    }
    p->in_flight++;
    p->bytes += bytes;
    return true;
}

void principal_give_back(struct principal *p, size_t bytes)
{
    p->in_flight--;
    p->bytes -= bytes;
}
