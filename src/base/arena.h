/*
 * arena: many small allocations with one end of life (a parsed config, a catalog generation).
 */
#ifndef RIALTO_BASE_ARENA_H
#define RIALTO_BASE_ARENA_H

#include "base/span.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
};

void arena_fini(struct arena *a);
/* Zeroed and aligned for any type. */
void *arena_alloc(struct arena *a, size_t n);
/* A copy that lives as long as the arena, NUL-terminated behind its end. */
struct span arena_span(struct arena *a, struct span s);
/* The same for a C string; NULL stays NULL. */
const char *arena_text(struct arena *a, const char *text);

#define ARENA_NEW(a, type)      ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))

#endif
