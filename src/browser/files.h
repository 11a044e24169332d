/*
 * files: what is served to browsers as it is, put into the program when it is built.
 */
#ifndef RIALTO_BROWSER_FILES_H
#define RIALTO_BROWSER_FILES_H

#include "base/span.h"

/*
 * Of every page of ours: it runs nothing but its own scripts, talks to nobody but its own daemon,
 * stands in no frame, and cannot turn a text into HTML even by mistake.
 */
#define WEB_PAGE_HEADERS                                                                           \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "           \
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "                    \
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"         \
    "X-Content-Type-Options: nosniff\r\n"                                                          \
    "X-Frame-Options: DENY\r\n"                                                                    \
    "Referrer-Policy: no-referrer\r\n"                                                             \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                  \
    "Cross-Origin-Resource-Policy: same-origin\r\n"

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
