/*
 * holdings: how much memory the bridge holds for its peers, in total.
 *
 * An object that grows because a peer sends much or reads slowly (output that waits, a body that is
 * being received, events kept for a client) embeds a holding and reports its size with holding_set.
 * While the sum is over the limit, the worst holdings are let go of, one after the other: large
 * ones that have not shrunk for long. A holding without `let_go` counts but is never let go of:
 * clients must not lose requests that wait for a server.
 *
 * `let_go` may be called inside any holding_set and holdings_fit, also while a function of the
 * owner is running: it may close, drop and mark, but must not free memory that the owner still
 * uses.
 *
 * Nouns: holdings_, holding_.
 */
#ifndef RIALTO_BASE_HOLDINGS_H
#define RIALTO_BASE_HOLDINGS_H

#include "base/list.h"
#include "base/timers.h"

struct holdings {
    struct list all; /* of struct holding: those with bytes != 0 */
    const struct timers *clock;
    size_t bytes, limit;
    bool relieving;
};

struct holding {
    struct list node;
    struct holdings *in;
    size_t bytes;
    uint64_t since; /* when the holding was last 0 or shrank */
    /* The holding counts as 0 already; `why` is for the log and for the peer. */
    void (*let_go)(struct holding *h, const char *why);
};

/* There is no limit at first. */
void holdings_init(struct holdings *all, const struct timers *clock);

void holding_init(struct holding *h, struct holdings *in,
                  void (*let_go)(struct holding *h, const char *why));
void holding_change(struct holding *h, size_t bytes);

/* Must be set to 0 before the object that embeds the holding is freed. */
static inline void holding_set(struct holding *h, size_t bytes)
{
    if (bytes != h->bytes)
        holding_change(h, bytes);
}

/* Let go of the worst holdings until there is room for `more` bytes; false if there still is none.
 */
bool holdings_relieve(struct holdings *all, size_t more);

/* Is there room for `more` bytes? Other holdings may be given up inside to make room. */
static inline bool holdings_fit(struct holdings *all, size_t more)
{
    return all->bytes + more <= all->limit || holdings_relieve(all, more);
}

#endif
