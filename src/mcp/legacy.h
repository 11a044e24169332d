/*
 * legacy: results and lists of servers as agents of the initialize era know them.
 *
 * A server of the stateless era says on every result of what type it is, how long it may be kept
 * and who says so, which is for its own client only. It may also give any value as structured
 * content, where the initialize era has objects alone and agents refuse a whole list for one tool
 * that announces something else. Such content becomes the one member `result` of an object.
 */
#ifndef RIALTO_MCP_LEGACY_H
#define RIALTO_MCP_LEGACY_H

#include "core/peer.h"
#include "wire/json.h"

/* Append the result of an operation; `wrap`: the tool's outputSchema is no legacy_fits. */
void legacy_put_result(struct buf *out, enum op op, struct span result, bool wrap);

/* Is this outputSchema, which may be absent, one that the initialize era knows? */
bool legacy_fits(const struct json_slot *schema);
/* Append a list of tools in which each outputSchema fits. */
void legacy_put_tools(struct buf *out, struct span list);

#endif
