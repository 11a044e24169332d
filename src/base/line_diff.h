/*
 * line_diff: what differs between two texts, line by line.
 *
 * The lines that both texts begin and end with are left out, except for a few next to the
 * difference. In the middle, the longest common subsequence of lines is kept. If the middle is too
 * long for that, all its old lines are shown as removed and all its new lines as added, so that the
 * work is bounded.
 */
#ifndef RIALTO_BASE_LINE_DIFF_H
#define RIALTO_BASE_LINE_DIFF_H

#include "base/buf.h"

/* Appends "-old\n", "+new\n" and " same\n"; nothing when all lines are the same. */
void line_diff_put(struct buf *out, struct span before, struct span after);

#endif
