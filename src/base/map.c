/* Both hash tables: SipHash with a random key for map, and lookup, insertion, removal and iteration
 * for map and idmap. Called by every folder but io/ and wire/. */
#include "base/map.h"

#include "base/id.h"
#include "base/mem.h"

struct map_slot {
    const char *key; /* NULL marks a free slot */
    size_t key_n;
    uint64_t hash;
    void *value;
};

static uint64_t rotl(uint64_t x, int b)
{
    return (x << b) | (x >> (64 - b));
}

/* Inlined, so that the four words stay in registers. */
static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static const uint64_t *process_key(void)
{
    static uint64_t key[2];
    static bool ready;

    if (!ready) {
        id_random_bytes(key, sizeof key);
        ready = true;
    }
    return key;
}

uint64_t map_hash(struct span key)
{
    const uint64_t *k = process_key();
    uint64_t v[4] = {k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du,
                     k[0] ^ 0x6c7967656e657261u, k[1] ^ 0x7465646279746573u};
    size_t left = key.n;
    const char *p = key.p;
    uint64_t word;

    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)key.n << 56;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)(unsigned char)p[i] << (8 * i);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_fini(struct map *m)
{
    for (size_t i = 0; !m->borrows && i < m->cap; i++)
        mem_free((char *)m->slots[i].key);
    mem_free(m->slots);
    *m = (struct map){0};
}

static size_t map_find(const struct map *m, struct span key, uint64_t hash)
{
    size_t mask = m->cap - 1, i = hash & mask;

    while (m->slots[i].key &&
           !(m->slots[i].hash == hash && span_eq(span_of(m->slots[i].key, m->slots[i].key_n), key)))
        i = (i + 1) & mask;
    return i;
}

void *map_get(const struct map *m, struct span key)
{
    if (!m->n)
        return NULL;
    return m->slots[map_find(m, key, map_hash(key))].value;
}

void map_reserve(struct map *m, size_t n)
{
    struct map old = *m;

    if (n * 4 <= m->cap * 3)
        return;
    for (m->cap = old.cap ? old.cap : 16; n * 4 > m->cap * 3;)
        m->cap *= 2;
    m->slots = MEM_ARRAY(struct map_slot, m->cap);
    for (size_t i = 0; i < old.cap; i++) {
        const struct map_slot *s = &old.slots[i];
        if (s->key)
            m->slots[map_find(m, span_of(s->key, s->key_n), s->hash)] = *s;
    }
    mem_free(old.slots);
}

void *map_put(struct map *m, struct span key, void *value)
{
    map_reserve(m, m->n + 1);
    uint64_t hash = map_hash(key);
    struct map_slot *s = &m->slots[map_find(m, key, hash)];
    void *before = s->value;
    if (!s->key) {
        s->key = m->borrows ? key.p : mem_span(key);
        s->key_n = key.n;
        s->hash = hash;
        m->n++;
    }
    s->value = value;
    return before;
}

void *map_del(struct map *m, struct span key)
{
    if (!m->n)
        return NULL;
    size_t mask = m->cap - 1, hole = map_find(m, key, map_hash(key));
    void *value = m->slots[hole].value;
    if (!m->slots[hole].key)
        return NULL;
    if (!m->borrows)
        mem_free((char *)m->slots[hole].key);
    m->n--;
    /* Close the gap: lookups stop at a free slot, so every following entry that they could not
     * reach any more moves back. */
    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){0};
    return value;
}

bool map_next(const struct map *m, size_t *at, struct span *key, void **value)
{
    for (; *at < m->cap; ++*at) {
        const struct map_slot *s = &m->slots[*at];
        if (s->key) {
            if (key)
                *key = span_of(s->key, s->key_n);
            if (value)
                *value = s->value;
            ++*at;
            return true;
        }
    }
    return false;
}

void idmap_fini(struct idmap *m)
{
    mem_free(m->slots);
    *m = (struct idmap){0};
}

static size_t idmap_home(const struct idmap *m, uint64_t id)
{
    return (size_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (m->cap - 1);
}

static size_t idmap_find(const struct idmap *m, uint64_t id)
{
    size_t i = idmap_home(m, id);

    while (m->slots[i].id && m->slots[i].id != id)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *idmap_get(const struct idmap *m, uint64_t id)
{
    if (!m->n || !id)
        return NULL;
    return m->slots[idmap_find(m, id)].value;
}

void idmap_put(struct idmap *m, uint64_t id, void *value)
{
    if (m->n * 4 >= m->cap * 3) {
        struct idmap old = *m;
        m->cap = old.cap ? old.cap * 2 : 16;
        m->slots = MEM_ARRAY(struct idmap_slot, m->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.slots[i].id)
                m->slots[idmap_find(m, old.slots[i].id)] = old.slots[i];
        mem_free(old.slots);
    }
    m->slots[idmap_find(m, id)] = (struct idmap_slot){id, value};
    m->n++;
}

void *idmap_take(struct idmap *m, uint64_t id)
{
    if (!m->n || !id)
        return NULL;
    size_t mask = m->cap - 1, hole = idmap_find(m, id);
    if (!m->slots[hole].id)
        return NULL;
    void *value = m->slots[hole].value;
    m->n--;
    for (size_t i = (hole + 1) & mask; m->slots[i].id; i = (i + 1) & mask) {
        size_t home = idmap_home(m, m->slots[i].id);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct idmap_slot){0};
    return value;
}

bool idmap_next(const struct idmap *m, size_t *at, uint64_t *id, void **value)
{
    for (; *at < m->cap; ++*at) {
        if (m->slots[*at].id) {
            if (id)
                *id = m->slots[*at].id;
            if (value)
                *value = m->slots[*at].value;
            ++*at;
            return true;
        }
    }
    return false;
}
