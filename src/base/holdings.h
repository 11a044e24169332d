/*
 * holdings: how much memory peers make us hold, over all of them.
 *
 * What grows because a peer sends much or reads slowly (output that waits, a body that is being
 * received, events kept for a client) has a holding embedded and says with holding_set how large it
 * is. Within the limit that is all. Over it the worst holdings are let go of, one after the other:
 * large ones that have not become smaller for long. A holding without `let_go` counts but stays:
 * what waits for our own servers is not their clients' to lose.
 *
 * `let_go` may come inside any holding_set and holdings_fit, also while its owner is at work: it
 * may close, drop and mark, but nothing is freed that its owner still looks at.
 *
 * Nouns: holdings_, holding_.
 */
#ifndef RIALTO_BASE_HOLDINGS_H
#define RIALTO_BASE_HOLDINGS_H

#include "base/list.h"
#include "base/timers.h"

struct holdings {
    struct list all; /* of struct holding: those that are not 0 */
    const struct timers *clock;
    size_t bytes, limit;
    bool relieving;
};

struct holding {
    struct list node;
    struct holdings *in;
    size_t bytes;
    uint64_t since; /* when the holding was last 0 or became smaller */
    /* The holding counts as 0 already; `why` is for the log and for the peer. */
    void (*let_go)(struct holding *h, const char *why);
};

/* Without a limit at first. */
void holdings_init(struct holdings *all, const struct timers *clock);

void holding_init(struct holding *h, struct holdings *in,
                  void (*let_go)(struct holding *h, const char *why));
void holding_change(struct holding *h, size_t bytes);

/* Set to 0 before the object that has the holding is freed. */
static inline void holding_set(struct holding *h, size_t bytes)
{
    if (bytes != h->bytes)
        holding_change(h, bytes);
}

/* Let go of the worst until there is room for `more` bytes; false if there still is none. */
bool holdings_relieve(struct holdings *all, size_t more);

/* Is there room for `more` bytes? Other holdings may be given up inside to make room. */
static inline bool holdings_fit(struct holdings *all, size_t more)
{
    return all->bytes + more <= all->limit || holdings_relieve(all, more);
}

#endif
