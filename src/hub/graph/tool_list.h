/*
 * tool_list: all tools of a bridge with what they cost, for operators: `rialto tools` and
 * /api/tools show the same list.
 */
#ifndef RIALTO_HUB_GRAPH_TOOL_LIST_H
#define RIALTO_HUB_GRAPH_TOOL_LIST_H

#include "hub/graph/bridge.h"

/*
 * Append a JSON object: `tools`, each as agents see it with `server`, `own_name` and `tokens` added
 * (wire/tokens.h), their sum as `tokens`, and `views`: the same sums for each configured view. The
 * tools are those of all servers, whatever the setting `expose` says.
 */
void tool_list_put(struct buf *out, const struct bridge *b);

#endif
