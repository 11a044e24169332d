/* The wait before the next try, doubled with each failure, and its reset after a success. Called by
 * core/provider.c, browser/join.c, bus/bus.c, bus/amqp_channel.c, hub/signin/renewal.c,
 * mcp/server/http_listen.c and mcp/server/upstream_modern.c. */
#include "base/backoff.h"

uint64_t backoff_next(struct backoff *b, uint64_t random)
{
    uint64_t step = b->first;

    for (unsigned i = 0; i < b->failures && step < b->max; i++)
        step *= 2;
    if (step > b->max)
        step = b->max;
    b->failures++;
    return step / 2 + random % (step / 2 + 1);
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}
