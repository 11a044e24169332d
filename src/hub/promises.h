/*
 * promises: the servers that an old daemon has promised to its successor (upgrade.h).
 *
 * The successor knows of them before it serves. A server is handed over, with its pipes and its
 * parked calls, when no other call is open at it. If a server ends before that, the successor is
 * told that it will not come.
 */
#ifndef RIALTO_HUB_PROMISES_H
#define RIALTO_HUB_PROMISES_H

#include "hub/hub.h"
#include "io/handover.h"

struct promises {
    struct hub *hub;
    struct list all;
    size_t moved; /* parked calls that went with their servers */
};

void promises_init(struct promises *p, struct hub *hub);
/* Promise every server that runs. */
void promises_make(struct promises *p, struct handover *b);
/* Hand over the servers that can go now. */
void promises_keep(struct promises *p, struct handover *b);
bool promises_are_kept(const struct promises *p);
/* There is no successor any more. */
void promises_forget(struct promises *p);

#endif
