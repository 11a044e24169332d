/*
 * side_request: an HTTP request to a server's host outside of MCP, such as the upload of a file.
 *
 * The request goes only to the host of the server's url, with the headers, the token, the
 * certificates and the bounds of the server's entry. It holds the plan of the server until it ends.
 * Made by hub/bus_host.c.
 */
#ifndef RIALTO_HUB_GRAPH_SIDE_REQUEST_H
#define RIALTO_HUB_GRAPH_SIDE_REQUEST_H

#include "base/list.h"
#include "hub/signin/signin.h"
#include "rockbot/host.h"

/* The request is in the list `all` until it ends. NULL when the server is not reached by HTTP. */
struct side_request *side_request_start(struct signin *signin, struct list *all,
                                        struct server_plan *plan, const struct bus_request *request,
                                        bus_answer_fn *done, void *owner);
void side_request_cancel(struct side_request *r);
void side_request_cancel_all(struct list *all);

#endif
