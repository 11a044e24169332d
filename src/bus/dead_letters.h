/*
 * dead_letters: the last dead letters of the embedded bus, in a ring.
 */
#ifndef RIALTO_BUS_DEAD_LETTERS_H
#define RIALTO_BUS_DEAD_LETTERS_H

#include "base/list.h"
#include "bus/broker.h"
#include "bus/parcel.h"

enum { DEAD_LETTERS_MOST = 1000, DEAD_LETTERS_BYTES = 64 * 1024 * 1024 };

struct dead_letters {
    struct list letters; /* oldest first */
    size_t n, bytes;
    uint64_t last_number;
};

void dead_letters_init(struct dead_letters *d);
void dead_letters_fini(struct dead_letters *d);
/* `why` must be a constant. */
void dead_letters_add(struct dead_letters *d, struct parcel *p, const char *group, const char *why);
bool dead_letters_next(const struct dead_letters *d, uint64_t after, struct dead_letter *out);
/* The parcel of this number, referenced for the caller; NULL when there is none. */
struct parcel *dead_letters_find(const struct dead_letters *d, uint64_t number);
void dead_letters_drop(struct dead_letters *d, uint64_t number);

#endif
