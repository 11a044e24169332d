/*
 * Helpers of the bus tests: they run the real loop in small steps until something has happened.
 */
#ifndef RIALTO_TESTS_BUS_TEST_H
#define RIALTO_TESTS_BUS_TEST_H

#include "../unit.h"

#include "base/buf.h"
#include "io/loop.h"

#include <unistd.h>

/* Runs the loop until `cond` is true; fails the test after 20 s. */
#define WAIT(l, cond)                                                                              \
    do {                                                                                           \
        loop_step((l), 0);                                                                         \
        uint64_t wait_end = loop_now(l) + 20000;                                                   \
        while (!(cond)) {                                                                          \
            if (loop_now(l) >= wait_end)                                                           \
                fail_msg("waited in vain for: %s", #cond);                                         \
            loop_step((l), 20);                                                                    \
        }                                                                                          \
    } while (0)

/* Runs the loop for `ms`, whatever happens. */
static inline void run_for(struct loop *l, uint64_t ms)
{
    loop_step(l, 0);
    uint64_t end = loop_now(l) + ms;
    while (loop_now(l) < end)
        loop_step(l, 5);
}

#endif
