/*
 * mem: allocation that cannot fail.
 *
 * Running out of memory ends the program with a message: error paths that no test reaches are
 * worse. This is safe only because every size a peer controls is bounded before it gets here.
 */
#ifndef RIALTO_BASE_MEM_H
#define RIALTO_BASE_MEM_H

#include "base/span.h"

#include <stddef.h>

/*
 * Called once at the start. Large messages come and go all the time: without this the C library
 * maps and unmaps fresh pages for each of them, which costs more than all the copying.
 */
void mem_tune(void);

void *mem_alloc(size_t n);
void *mem_zalloc(size_t n);
void *mem_resize(void *p, size_t n);
void mem_free(void *p);

/* NUL-terminated copies, owned by the caller. */
char *mem_str(const char *s);
char *mem_span(struct span s);

#define MEM_NEW(type)         ((type *)mem_zalloc(sizeof(type)))
#define MEM_ARRAY(type, n)    ((type *)mem_zalloc(sizeof(type) * (n)))
#define CONTAINER_OF(p, t, m) ((t *)(void *)((char *)(p)-offsetof(t, m)))
#define COUNT_OF(a)           (sizeof(a) / sizeof((a)[0]))

#endif
