/*
 * offer: how the dialects P0 and P1 make a component a proxy. The conductor adds an offer to plain
 * initialize, and the component adds an echo of the offer to the result.
 *
 * Nouns: offer_, echo_.
 */
#ifndef RIALTO_ACP_OFFER_H
#define RIALTO_ACP_OFFER_H

#include "base/buf.h"

/* Is the offer in these params, in any of the places where it has ever stood? */
bool offer_in(struct span params);
/* Append the params with the offer, without any offer. */
void offer_add(struct buf *out, struct span params);
void offer_remove(struct buf *out, struct span params);

/* The same for the echo in a result. */
bool echo_in(struct span result);
void echo_add(struct buf *out, struct span result);
void echo_remove(struct buf *out, struct span result);

#endif
