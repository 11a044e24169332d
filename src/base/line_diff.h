/*
 * line_diff: what differs between two texts, line by line.
 *
 * The lines that both texts begin and end with are left out but for a few next to the difference.
 * Between them the longest common run of lines is kept; texts that are too long for that are shown
 * as one that goes and one that comes, so that the work is bounded.
 */
#ifndef RIALTO_BASE_LINE_DIFF_H
#define RIALTO_BASE_LINE_DIFF_H

#include "base/buf.h"

/* Appends "-old\n", "+new\n" and " same\n"; nothing when all lines are the same. */
void line_diff_put(struct buf *out, struct span before, struct span after);

#endif
