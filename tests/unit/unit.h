/*
 * unit: cmocka with the headers that must be included before it, a seeded random source, and
 * blocks of exactly the size of their contents, so that the sanitizer catches reads past the end.
 */
#ifndef RIALTO_TESTS_UNIT_H
#define RIALTO_TESTS_UNIT_H

#include "base/mem.h"
#include "base/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* splitmix64: small, good enough, and the same on every machine. */
static inline uint64_t unit_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 to n - 1. */
static inline size_t unit_below(uint64_t *seed, size_t n)
{
    return (size_t)(unit_random(seed) % n);
}

/* A copy in a block of exactly its size; the caller frees it with unit_free. */
static inline struct span unit_exact(struct span s)
{
    char *copy = mem_alloc(s.n ? s.n : 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    return span_of(copy, s.n);
}

static inline void unit_free(struct span s)
{
    mem_free((char *)(uintptr_t)s.p);
}

#define assert_span(span, text)                                                                    \
    do {                                                                                           \
        char *got = mem_span(span);                                                                \
        assert_string_equal(got, (text));                                                          \
        mem_free(got);                                                                             \
    } while (0)

#endif
