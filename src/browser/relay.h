/*
 * relay: pages that speak the protocol of MCP-B's local relay, and relays that use their tools.
 *
 * A *source* is a page as MCP-B describes it. A *relay peer* is a process of MCP-B's relay that
 * found the port taken: it offers its agent the tools of all pages, through us.
 */
#ifndef RIALTO_BROWSER_RELAY_H
#define RIALTO_BROWSER_RELAY_H

#include "browser/inside.h"
#include "io/ws.h"

bool relay_is_wanted(const struct http_request *req);
/* Append the pages that offer tools, as an array of sources. */
void relay_put_sources(struct buf *out, const struct browser *b);
/* Append the tools of pages in the view, as an array; `sourced`: each with its name and source. */
void relay_put_tools(struct buf *out, struct view *v, bool sourced);
struct pipe *relay_open(struct browser *b, struct http_exchange *x, const struct http_request *req,
                        const struct ws_options *options);

#endif
