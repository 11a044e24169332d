/*
 * library: shared libraries that few users need, loaded when somebody does.
 *
 * A program that is linked with a library pays for it at each start, used or not: libcurl alone
 * brings thirty others. So these are not linked (docs/decisions/011-light.md). Callers include the
 * library's own header and call its functions by their names, as ever; what they reach is a jump of
 * ours (library.c) to where library_load found the function. Before that none may be called: who
 * opens the door to a library loads it there, and says so if it is not installed.
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

/* Once it is loaded it stays. Negative when it cannot be: `err` says what to install. */
MUST_CHECK int library_load(enum library id, struct err *err);

/* For people: what a library is for, and its file, which is NULL when it is linked. */
const char *library_what(enum library id);
const char *library_file(enum library id);

#endif
