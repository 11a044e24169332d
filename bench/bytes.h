/* bytes: a growing byte buffer for the programs that measure; they link nothing of Rialto. */
#ifndef RIALTO_BENCH_BYTES_H
#define RIALTO_BENCH_BYTES_H

#include <stdlib.h>
#include <string.h>

struct bytes {
    char *p;
    size_t n, cap;
};

static inline void bytes_add(struct bytes *b, const char *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2;
        b->p = realloc(b->p, b->cap);
        if (!b->p)
            abort();
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void bytes_add_text(struct bytes *b, const char *s)
{
    bytes_add(b, s, strlen(s));
}

/* Forget the first `n` bytes. */
static inline void bytes_drop(struct bytes *b, size_t n)
{
    b->n -= n;
    memmove(b->p, b->p + n, b->n);
}

#endif
