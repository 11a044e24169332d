/*
 * legacy: results and lists of servers as agents of the initialize era know them.
 *
 * A server of the stateless era puts the type, the cache lifetime and its own identity on every
 * result; only its direct client, the bridge, needs these. Structured content may be any JSON value
 * there, but only an object in the initialize era, whose agents refuse a whole list for one tool
 * that announces another type. Such content becomes the one member `result` of an object.
 */
#ifndef RIALTO_MCP_LEGACY_H
#define RIALTO_MCP_LEGACY_H

#include "core/view.h"
#include "wire/json.h"

/* Append the result of an operation; `wrap`: the tool's outputSchema does not fit (legacy_fits). */
void legacy_put_result(struct buf *out, enum op op, struct span result, bool wrap);

/* Is this outputSchema, which may be absent, valid in the initialize era? */
bool legacy_fits(const struct json_slot *schema);
/* Flags of items because of which a list of tools must be rewritten for the initialize era. */
enum { LEGACY_REWRITES = ITEM_GIVES_ANY | ITEM_TASK_UNSAID };
/* Append the whole response to a list request. In a list of tools each outputSchema is made to fit,
 * and tools that may run as tasks say so. `marks`: the agent is a bridge, and gets the marks of
 * circle.h. */
void legacy_put_list(struct buf *out, struct span id, struct view *v, enum item_kind kind,
                     bool marks);

#endif
