/*
 * files: what is served to browsers as it is, put into the program when it is built.
 */
#ifndef RIALTO_BROWSER_FILES_H
#define RIALTO_BROWSER_FILES_H

#include "base/span.h"

struct web_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t n;
};

/* For web pages of any site. */
extern const struct web_file web_files[];
extern const size_t web_files_n;
/* The daemon's own page (admin/dashboard.h). */
extern const struct web_file dashboard_files[];
extern const size_t dashboard_files_n;

#endif
