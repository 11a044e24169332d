/* Blocks of memory that small allocations are cut from, and that are freed all at once. Called by
 * config/, the catalogs, views and search of core/, and parts of hub/, browser/, cmd/, mcp/server/,
 * rockbot/ and wire/. */
#include "base/arena.h"

#include "base/mem.h"

/* The first block is small, for a page with three tools; each next one is twice as large, up to the
 * last size. */
enum { BLOCK_FIRST = 512 - 32, BLOCK_LAST = 4096 - 32 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

void arena_fini(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        mem_free(a->blocks);
        a->blocks = next;
    }
}

/* What the block after `b` has, unless it is for one larger piece. */
static size_t block_size(const struct arena_block *b)
{
    size_t twice = b ? 2 * b->size : BLOCK_FIRST;

    return twice < BLOCK_LAST ? twice : BLOCK_LAST;
}

void *arena_alloc(struct arena *a, size_t n)
{
    const size_t align = _Alignof(max_align_t);
    struct arena_block *b = a->blocks;

    n = (n + align - 1) / align * align;
    if (!b || b->size - b->used < n) {
        size_t usual = block_size(b);
        size_t size = n > usual ? n : usual;
        struct arena_block *fresh = mem_zalloc(sizeof *fresh + size);
        fresh->size = size;
        if (b && size > usual) {
            /* A block for one large piece goes behind the current one, whose rest stays in use. */
            fresh->next = b->next;
            b->next = fresh;
        } else {
            fresh->next = b;
            a->blocks = fresh;
        }
        b = fresh;
    }
    void *p = b->bytes + b->used;
    b->used += n;
    return p;
}

struct span arena_span(struct arena *a, struct span s)
{
    char *copy = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    return span_of(copy, s.n);
}

const char *arena_text(struct arena *a, const char *text)
{
    return text ? arena_span(a, span_str(text)).p : NULL;
}
