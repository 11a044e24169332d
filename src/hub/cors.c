/* The headers by which browsers let pages of another origin send us requests and read the answers.
 * Called by front.c, after it has checked that the origin is let in. */
#include "hub/cors.h"

static const char *const cors_headers[] = {
    "Authorization",        "Content-Type",  "Accept",        "Mcp-Session-Id",
    "MCP-Protocol-Version", "Last-Event-ID", "Mcp-Method",    "Mcp-Name",
    "X-Session-ID",         "X-Client-ID",   "X-Client-Type",
};

static bool may_send(struct span header)
{
    static const struct span params = {"Mcp-Param-", 10};

    for (size_t i = 0; i < COUNT_OF(cors_headers); i++)
        if (span_eq_nocase(header, span_str(cors_headers[i])))
            return true;
    return span_eq_nocase(span_cut(header, 0, params.n), params);
}

void cors_allow_origin(struct http_exchange *x, struct span origin)
{
    BUF_SCOPED lines = {0};

    http_put_header(&lines, "Access-Control-Allow-Origin", origin);
    http_put_header(&lines, "Access-Control-Expose-Headers",
                    SPAN("Mcp-Session-Id, WWW-Authenticate"));
    http_put_header(&lines, "Vary", SPAN("Origin"));
    http_exchange_add_headers(x, buf_view(&lines));
}

bool cors_is_preflight(const struct http_request *req)
{
    return span_is(req->method, "OPTIONS") && http_header(req, "origin").p &&
           http_header(req, "access-control-request-method").p;
}

/* Append the headers that the page may send, out of those it asks for; all if it names none. */
static void put_allowed_headers(struct buf *lines, struct span wanted)
{
    BUF_SCOPED allowed = {0};
    struct span item;

    for (size_t i = 0; !wanted.p && i < COUNT_OF(cors_headers); i++)
        buf_printf(&allowed, "%s%s", i ? ", " : "", cors_headers[i]);
    while (http_next_item(&wanted, &item))
        if (may_send(item))
            buf_printf(&allowed, "%s" SPAN_FMT, allowed.n ? ", " : "", SPAN_ARG(item));
    http_put_header(lines, "Access-Control-Allow-Headers", buf_view(&allowed));
}

void cors_answer_preflight(struct http_exchange *x, const struct http_request *req)
{
    BUF_SCOPED lines = {0};

    http_put_header(&lines, "Access-Control-Allow-Methods", SPAN("GET, POST, DELETE"));
    put_allowed_headers(&lines, http_header(req, "access-control-request-headers"));
    http_put_header(&lines, "Access-Control-Max-Age", SPAN("600"));
    /* A page of a public network asks whether it may reach this private one. */
    if (http_header(req, "access-control-request-private-network").p)
        http_put_header(&lines, "Access-Control-Allow-Private-Network", SPAN("true"));
    http_respond(x, 204, NULL, buf_view(&lines), SPAN_EMPTY);
}
