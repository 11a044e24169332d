/*
 * offer: how the dialects P0 and P1 make a component a proxy. The conductor adds an offer to plain
 * initialize, and the component adds an echo of the offer to the result.
 *
 * Nouns: offer_, echo_.
 */
#ifndef RIALTO_ACP_OFFER_H
#define RIALTO_ACP_OFFER_H

#include "base/buf.h"

/* Is the offer in these params, in any of the places where an offer has ever been? */
bool offer_in(struct span params);
/* Append the params: with the offer; without any offer. */
void offer_add(struct buf *out, struct span params);
void offer_remove(struct buf *out, struct span params);

/* Is the echo in this result? Append the result: with the echo; without any echo. */
bool offer_echoed(struct span result);
void offer_add_echo(struct buf *out, struct span result);
void offer_remove_echo(struct buf *out, struct span result);

#endif
