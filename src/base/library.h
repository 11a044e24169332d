/*
 * library: shared libraries that few users need, loaded on first use.
 *
 * A linked library costs time at each start, used or not: libcurl alone brings thirty others. So
 * these libraries are not linked (docs/decisions/011-light.md). Callers include the library's own
 * header and call its functions by their names, as usual; each name is a jump (library.c) to the
 * address that library_load found. No function may be called before library_load: the code that
 * uses a library first loads it, and reports an error if it is not installed.
 *
 * Built with -Dlibraries=linked all of them are linked, and library_load has nothing to do.
 */
#ifndef RIALTO_BASE_LIBRARY_H
#define RIALTO_BASE_LIBRARY_H

#include "base/err.h"

#include <stdbool.h>

enum library {
#define LIBRARY(id, file, package, what) LIBRARY_##id,
#define FUNCTION(name)
#include "base/library_rows.h"
    LIBRARIES,
};

/* A loaded library stays loaded. Negative when it cannot be loaded: `err` says what to install. */
MUST_CHECK int library_load(enum library id, struct err *err);

/* For people: what a library is for, and its file, which is NULL when it is linked. */
const char *library_what(enum library id);
const char *library_file(enum library id);

#endif
