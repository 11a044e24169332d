/*
 * variables: what one caller has brought for ${NAME}: values of its own environment, and the folder
 * of its project as PROJECT (docs/decisions/022-callers-variables.md).
 *
 * They are read once, never changed, and reference-counted. A caller whose variables change gets a
 * new set.
 */
#ifndef RIALTO_CONFIG_VARIABLES_H
#define RIALTO_CONFIG_VARIABLES_H

#include "base/span.h"

/* Bounds of what one caller may bring: names, bytes of one name and of its value, bytes in all. */
enum {
    VARIABLES_MAX = 256,
    VARIABLES_NAME_MAX = 128,
    VARIABLES_VALUE_MAX = 32 * 1024,
    VARIABLES_BYTES_MAX = 256 * 1024,
};

/* The one variable that does not come from the environment: the caller's project folder. */
#define VARIABLES_PROJECT "PROJECT"

struct variables;

/*
 * From a valid JSON object of texts, with one holder; NULL when it exceeds the bounds. Values that
 * make no sense are left out: empty ones, those with control characters (a line end would begin
 * another header), and a project that is no clean absolute path.
 */
struct variables *variables_read(struct span json);
struct variables *variables_hold(struct variables *v);
void variables_drop(struct variables *v);
/* The value of this name; empty when the caller has none. */
struct span variables_get(const struct variables *v, struct span name);

#endif
