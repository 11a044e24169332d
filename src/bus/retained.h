/*
 * retained: which servers were announced on the embedded bus, for subscribers that come later.
 *
 * Of every McpServersIndexed each server's entry is kept, as a message of its own, until the server
 * is announced again or as removed. An index of no servers at all is kept, too: it tells an agent
 * that there is a bridge.
 */
#ifndef RIALTO_BUS_RETAINED_H
#define RIALTO_BUS_RETAINED_H

#include "base/list.h"
#include "base/map.h"
#include "bus/parcel.h"

enum { RETAINED_MOST = 4096, RETAINED_BYTES = 64 * 1024 * 1024 };

struct retained {
    struct list parcels; /* in the order they were announced */
    struct map by_key;   /* topic and server */
    size_t n, bytes;
};

void retained_init(struct retained *r);
void retained_fini(struct retained *r);
/* Called with everything that is published. */
void retained_look(struct retained *r, struct parcel *p);
/* Do subscribers of this pattern get the retained messages? */
bool retained_wanted(struct span pattern);
void retained_each(const struct retained *r, struct span pattern,
                   void (*fn)(void *arg, struct parcel *p), void *arg);

#endif
