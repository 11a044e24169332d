/*
 * json_sorted: JSON in one form, whatever form it came in: for digests and comparisons.
 *
 * Members are sorted by name, byte by byte, at every depth; white space and needless escapes are
 * gone. Numbers stay as they were written. Of members that stand twice, both stay, in their order.
 */
#ifndef RIALTO_WIRE_JSON_SORTED_H
#define RIALTO_WIRE_JSON_SORTED_H

#include "wire/json.h"

/* Append a validated value. */
void json_sorted_put(struct buf *out, struct span value);

#endif
