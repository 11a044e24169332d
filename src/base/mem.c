/* malloc, calloc and realloc that abort when there is no memory, copies of strings, and the tuning
 * of malloc. Called by every folder; mem_tune by main.c. */
#include "base/mem.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAPPED_FROM = 32 * 1024 * 1024, KEPT_FREE = 8 * 1024 * 1024 };

void mem_tune(void)
{
#ifdef M_MMAP_THRESHOLD /* musl's malloc cannot be tuned */
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
    mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
#endif
}

static void *or_die(void *p, size_t n)
{
    if (!p && n) {
        fprintf(stderr, "rialto: out of memory (%zu bytes)\n", n);
        abort();
    }
    return p;
}

void *mem_alloc(size_t n)
{
    return or_die(malloc(n), n);
}

void *mem_zalloc(size_t n)
{
    return or_die(calloc(1, n), n);
}

void *mem_resize(void *p, size_t n)
{
    return or_die(realloc(p, n), n);
}

void mem_free(void *p)
{
    free(p);
}

char *mem_str(const char *s)
{
    return s ? mem_span(span_str(s)) : NULL;
}

char *mem_span(struct span s)
{
    char *copy = mem_alloc(s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}
