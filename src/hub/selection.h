/*
 * selection: what a configured view (`views.NAME`) leaves of a view of the bridge, for the agents
 * of whoever has been given it.
 *
 * It has views of its own, which follow the bridge's: allow and deny hold for lists and for calls,
 * whether tools are listed or searched for, and for instances that serve one session.
 */
#ifndef RIALTO_HUB_SELECTION_H
#define RIALTO_HUB_SELECTION_H

#include "hub/bridge.h"

struct selection;

/* Of all servers, or, with `server`, of that one with its own names. All must outlive it. */
struct selection *selection_new(struct bridge *b, const struct bridge_server *server,
                                const struct narrowing *narrowing);
/* When no session looks at it any more. */
void selection_free(struct selection *s);
/* What an agent needs that sees it. */
struct mcp_host selection_host(struct selection *s);

#endif
