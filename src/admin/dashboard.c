/* Answers requests for the embedded files of the dashboard, and decides which requests for / want
 * the page. Called by cmd/serve.c, which adds the routes. */
#include "admin/dashboard.h"

#include "admin/inside.h"
#include "browser/files.h"
#include "io/ws.h"

/* Browsers must not cache the page: after an update an old page would ask a new daemon. blob: is
 * for pictures and sounds of results, which the page has in memory. */
#define HEADERS                                                                                    \
    "Cache-Control: no-store\r\nVary: Accept\r\n" WEB_PAGE_HEADERS_WITH(                           \
        "img-src 'self' blob:; media-src blob:")

static bool asks_for_html(const struct http_request *req)
{
    struct span list = http_header(req, "accept"), item;

    while (http_next_item(&list, &item)) {
        struct span type = span_trim(span_cut(item, 0, span_find(item, ';')));
        if (span_eq_nocase(type, SPAN("text/html")))
            return true;
    }
    return false;
}

static const struct web_file *find(struct span path)
{
    for (size_t i = 0; i < dashboard_files_n; i++)
        if (span_is(path, dashboard_files[i].path))
            return &dashboard_files[i];
    return NULL;
}

const char *const dashboard_paths[] = {
    "/", "/dashboard.css", "/dashboard.svg", "/dashboard.js", "/dashboard_theme.js", NULL};

bool dashboard_is_wanted(const struct http_request *req)
{
    bool looks = span_is(req->method, "GET") || span_is(req->method, "HEAD");

    if (span_is(req->path, "/"))
        return looks && !ws_is_wanted(req) && asks_for_html(req);
    return find(req->path) != NULL;
}

void dashboard_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    const struct web_file *file = find(req->path);

    (void)owner, (void)caller, (void)rest;
    if (!file)
        http_refuse(x, 404, "no such path", "the page is at /");
    else if (admin_wants_get(x, req))
        http_respond(x, 200, file->type, SPAN(HEADERS),
                     span_of((const char *)file->bytes, file->n));
}
