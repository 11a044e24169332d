/* Building a catalog within its limit of bytes, copying from another one, and finding an item by
 * name. Called by the families that fill catalogs (mcp/, browser/, rockbot/), hub/, provider.c and
 * route.c. */
#include "core/catalog.h"

#include "base/mem.h"

struct catalog *catalog_new(void)
{
    struct catalog *c = MEM_NEW(struct catalog);

    c->max_bytes = SIZE_MAX;
    return c;
}

/* Counts `n` more bytes; false, with `cut` set, when they do not fit. */
static bool take_room(struct catalog *c, size_t n)
{
    bool fits = n <= c->max_bytes - c->bytes;

    c->cut |= !fits;
    c->bytes += fits ? n : 0;
    return fits;
}

bool catalog_count(struct catalog *c, size_t n)
{
    return take_room(c, sizeof(struct item) + n);
}

void catalog_free(struct catalog *c)
{
    if (!c)
        return;
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        mem_free(c->items[kind]);
    arena_fini(&c->arena);
    mem_free(c);
}

bool catalog_add(struct catalog *c, enum item_kind kind, const struct item *item)
{
    if (!catalog_count(c, item->name.n + item->own.n + item->raw.n + item->listed.n))
        return false;
    if (c->n[kind] == c->cap[kind]) {
        c->cap[kind] = c->cap[kind] ? c->cap[kind] * 2 : 16;
        c->items[kind] = mem_resize(c->items[kind], c->cap[kind] * sizeof(struct item));
    }
    struct item *copy = &c->items[kind][c->n[kind]++];
    *copy = *item;
    copy->name = arena_span(&c->arena, item->name);
    copy->own = item->own.n ? arena_span(&c->arena, item->own) : copy->name;
    copy->label = item->label.n ? arena_span(&c->arena, item->label) : SPAN_EMPTY;
    copy->raw = arena_span(&c->arena, item->raw);
    copy->listed = item->listed.n ? arena_span(&c->arena, item->listed) : SPAN_EMPTY;
    return true;
}

void catalog_fit(struct catalog *c)
{
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        if (c->cap[kind] == c->n[kind] || !c->n[kind])
            continue;
        c->cap[kind] = c->n[kind];
        c->items[kind] = mem_resize(c->items[kind], c->n[kind] * sizeof(struct item));
    }
}

void catalog_set_declares(struct catalog *c, struct span raw)
{
    if (take_room(c, raw.n))
        c->declares = arena_span(&c->arena, raw);
}

void catalog_set_instructions(struct catalog *c, struct span text)
{
    if (take_room(c, text.n))
        c->instructions = arena_span(&c->arena, text);
}

void catalog_copy_kind(struct catalog *to, const struct catalog *from, enum item_kind kind)
{
    if (!from)
        return;
    for (size_t i = 0; i < from->n[kind]; i++)
        catalog_add(to, kind, &from->items[kind][i]);
}

static bool is_same_item(const struct item *a, const struct item *b)
{
    return a->flags == b->flags && span_eq(a->own, b->own) && span_eq(a->label, b->label) &&
           span_eq(a->raw, b->raw) && span_eq(a->listed, b->listed);
}

bool catalog_same(const struct catalog *a, const struct catalog *b)
{
    if (a->offers != b->offers || a->cut != b->cut || !span_eq(a->instructions, b->instructions) ||
        !span_eq(a->declares, b->declares))
        return false;
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        if (a->n[kind] != b->n[kind])
            return false;
        for (size_t i = 0; i < a->n[kind]; i++)
            if (!is_same_item(&a->items[kind][i], &b->items[kind][i]))
                return false;
    }
    return true;
}

const struct item *catalog_find(const struct catalog *c, enum item_kind kind, struct span name)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n[kind]; i++)
        if (span_eq(c->items[kind][i].name, name))
            return &c->items[kind][i];
    return NULL;
}
