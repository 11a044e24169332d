/* replay_unit: the unit tests' side of replay.h: whole, byte by byte, and in random pieces. */
#ifndef RIALTO_TESTS_REPLAY_UNIT_H
#define RIALTO_TESTS_REPLAY_UNIT_H

#include "../unit.h"
#include "replay.h"

/*
 * The output for `in` fed whole, followed by another output if feeding it byte by byte or in random
 * pieces gives a different one. The caller owns the text.
 */
static inline char *replay_all(replay_fn *replay, struct span in, size_t cap)
{
    enum { RANDOM_WAYS = 60, SIZES = 16 };
    static const uint8_t one = 1;
    struct buf log = {0};
    uint64_t seed = in.n;

    replay(&log, in, (struct cuts){0}, cap);
    bool same = replay_agrees(replay, in, (struct cuts){.sizes = &one, .n = 1}, cap, &log);
    for (unsigned way = 0; same && way < RANDOM_WAYS; way++) {
        /* Small pieces and large ones: the largest size doubles from way to way. */
        uint8_t sizes[SIZES];
        for (size_t i = 0; i < SIZES; i++)
            sizes[i] = (uint8_t)(1 + unit_below(&seed, 2u << way % 7));
        same = replay_agrees(replay, in, (struct cuts){.sizes = sizes, .n = SIZES}, cap, &log);
    }
    return buf_take(&log);
}

/* `in`, however it is cut, must come out of the codec as `expected`. */
#define assert_replay(replay, in, cap, expected)                                                   \
    do {                                                                                           \
        char *account = replay_all((replay), (in), (cap));                                         \
        assert_string_equal(account, (expected));                                                  \
        mem_free(account);                                                                         \
    } while (0)

#endif
