/* The sum of all holdings, and which holding is let go of when the sum is over the limit. Called by
 * streams, HTTP and WebSocket connections, sessions and the router. */
#include "base/holdings.h"

#include <stdio.h>

/* A holding counts as no older than this. */
enum { AGE_MAX_MS = 60 * 60 * 1000, MIB = 1024 * 1024 };

void holdings_init(struct holdings *all, const struct timers *clock)
{
    *all = (struct holdings){.clock = clock, .limit = SIZE_MAX / 2};
    list_init(&all->all);
}

void holding_init(struct holding *h, struct holdings *in,
                  void (*let_go)(struct holding *h, const char *why))
{
    *h = (struct holding){.in = in, .let_go = let_go};
    list_init(&h->node);
}

void holding_change(struct holding *h, size_t bytes)
{
    struct holdings *in = h->in;

    if (!h->bytes)
        list_append(&in->all, &h->node);
    else if (!bytes)
        list_remove(&h->node);
    if (!h->bytes || bytes < h->bytes)
        h->since = in->clock->now;
    in->bytes += bytes - h->bytes;
    h->bytes = bytes;
    if (in->bytes > in->limit)
        holdings_relieve(in, 0);
}

/* Bytes times age. The output of a peer that reads keeps shrinking, so it is never old. */
static uint64_t badness(const struct holding *h)
{
    uint64_t age = h->in->clock->now - h->since;

    return h->bytes * (1 + (age < AGE_MAX_MS ? age : AGE_MAX_MS));
}

static struct holding *worst_of(const struct holdings *all)
{
    struct holding *worst = NULL;

    LIST_EACH (&all->all, it) {
        struct holding *h = LIST_ENTRY(it, struct holding, node);
        if (h->let_go && (!worst || badness(h) > badness(worst)))
            worst = h;
    }
    return worst;
}

bool holdings_relieve(struct holdings *all, size_t more)
{
    struct holding *worst;
    char why[160];

    if (all->relieving)
        return false; /* called inside a `let_go`, for a last message: the outer call goes on */
    all->relieving = true;
    while (all->bytes + more > all->limit && more <= all->limit && (worst = worst_of(all))) {
        snprintf(why, sizeof why,
                 "the bridge held %zu MiB of what its peers do not take or do not finish, "
                 "%zu KiB of it for this one (limits.memory)",
                 all->bytes / MIB, worst->bytes / 1024);
        holding_set(worst, 0);
        worst->let_go(worst, why);
    }
    all->relieving = false;
    return all->bytes + more <= all->limit;
}
