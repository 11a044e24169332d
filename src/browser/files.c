/* Finds and serves the scripts and pages that are built into the program. Called by routes.c. */
#include "browser/files.h"

#include "io/http_server.h"

static const struct web_file *find(struct span path)
{
    for (size_t i = 0; i < web_files_n; i++)
        if (span_is(path, web_files[i].path))
            return &web_files[i];
    return NULL;
}

bool files_have(struct span path)
{
    return find(path) != NULL;
}

#define NO_CACHE "Cache-Control: no-cache\r\n"

/* Pages of any site may load our scripts; whether they may connect is decided when they do. */
void files_serve(struct http_exchange *x, struct span path)
{
    const struct web_file *f = find(path);
    bool page = span_starts(span_str(f->type), SPAN("text/html"));

    http_respond(x, 200, f->type,
                 page ? SPAN(NO_CACHE WEB_PAGE_HEADERS)
                      : SPAN(NO_CACHE "X-Content-Type-Options: nosniff\r\n"
                                      "Cross-Origin-Resource-Policy: cross-origin\r\n"),
                 span_of((const char *)f->bytes, f->n));
}
