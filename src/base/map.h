/*
 * map: bytes -> pointer, and idmap: number -> pointer.
 *
 * `map` copies its keys, or borrows them, and hashes them with a per-process random key
 * (SipHash-1-3), so a peer that chooses keys cannot choose collisions. `idmap` is for numbers that
 * we hand out ourselves, such as request ids on a hop. Both are open-addressed, grow as needed, and
 * a zeroed struct is an empty map.
 *
 * Nouns: map_, idmap_.
 */
#ifndef RIALTO_BASE_MAP_H
#define RIALTO_BASE_MAP_H

#include "base/span.h"

#include <stdint.h>

struct map_slot;

struct map {
    struct map_slot *slots;
    size_t n, cap;
    bool borrows; /* keys are the caller's: never NULL, and there for as long as their entries */
};

/* The values stay the caller's. */
void map_fini(struct map *m);
void *map_get(const struct map *m, struct span key);
/* Returns the value that was there before, or NULL. `value` must not be NULL. */
void *map_put(struct map *m, struct span key, void *value);
void *map_del(struct map *m, struct span key);
/* Makes room for `n` entries in all, which then need no more. */
void map_reserve(struct map *m, size_t n);
/* Iteration in no particular order: start with *at = 0; false at the end. No changes meanwhile. */
bool map_next(const struct map *m, size_t *at, struct span *key, void **value);

struct idmap_slot {
    uint64_t id; /* 0 marks a free slot */
    void *value;
};

struct idmap {
    struct idmap_slot *slots;
    size_t n, cap;
};

void idmap_fini(struct idmap *m);
void *idmap_get(const struct idmap *m, uint64_t id);
/* `id` must not be 0 and not be there yet. */
void idmap_put(struct idmap *m, uint64_t id, void *value);
void *idmap_take(struct idmap *m, uint64_t id);
bool idmap_next(const struct idmap *m, size_t *at, uint64_t *id, void **value);

/* SipHash-1-3 under the process key; also used where a stable-in-process keyed digest is enough. */
uint64_t map_hash(struct span key);

#endif
