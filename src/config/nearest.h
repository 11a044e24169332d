/*
 * nearest: "did you mean ...?"
 *
 * Offer every valid word: the nearest is kept, counted in typing slips (a letter missing, added,
 * wrong, or two swapped), ignoring case.
 */
#ifndef RIALTO_CONFIG_NEAREST_H
#define RIALTO_CONFIG_NEAREST_H

#include "base/span.h"

struct nearest {
    struct span word; /* what was written */
    struct span best; /* empty while nothing is near enough */
    unsigned slips;
};

struct nearest nearest_to(struct span word);
void nearest_offer(struct nearest *n, struct span candidate);

#endif
