/*
 * decimal: numbers as JSON writes them, compared by value and exactly.
 *
 * A decision about a number must not depend on rounding: 9007199254740993 is larger than
 * 9007199254740992, but both are the same double. Called by core/rules.c and config/check_rule.c.
 */
#ifndef RIALTO_BASE_DECIMAL_H
#define RIALTO_BASE_DECIMAL_H

#include "base/span.h"

/*
 * Compare two numbers of the JSON grammar: *order is below, at or above 0 as `a` is less than,
 * equal to or greater than `b`. False when an exponent has more than 15 digits, which no program
 * needs.
 */
bool decimal_compare(struct span a, struct span b, int *order);

#endif
