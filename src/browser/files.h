/*
 * files: static files for browsers, embedded in the program when it is built.
 */
#ifndef RIALTO_BROWSER_FILES_H
#define RIALTO_BROWSER_FILES_H

#include "base/span.h"

/*
 * Headers of our own pages: they run only their own scripts, connect only to their own daemon,
 * cannot be framed, and cannot turn a text into HTML even by mistake. `media` is the part of the
 * policy for pictures and sounds.
 */
#define WEB_PAGE_HEADERS_WITH(media)                                                               \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; " media     \
    "; connect-src 'self'; base-uri 'none'; form-action 'none'; "                                  \
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"         \
    "X-Content-Type-Options: nosniff\r\n"                                                          \
    "X-Frame-Options: DENY\r\n"                                                                    \
    "Referrer-Policy: no-referrer\r\n"                                                             \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                  \
    "Cross-Origin-Resource-Policy: same-origin\r\n"
#define WEB_PAGE_HEADERS WEB_PAGE_HEADERS_WITH("img-src 'self'")

struct web_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t n;
};

/* The scripts that pages of any site may load, and the demo. */
extern const struct web_file web_files[];
extern const size_t web_files_n;
struct http_exchange;
bool files_have(struct span path);
void files_serve(struct http_exchange *x, struct span path);
/* The daemon's own page (admin/dashboard.h). */
extern const struct web_file dashboard_files[];
extern const size_t dashboard_files_n;

#endif
