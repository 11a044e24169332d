/*
 * legacy: results of servers as agents of the initialize era know them.
 *
 * A server of the stateless era says on every result of what type it is, how long it may be kept
 * and who says so, which is for its own client only.
 */
#ifndef RIALTO_MCP_LEGACY_H
#define RIALTO_MCP_LEGACY_H

#include "core/peer.h"
#include "wire/json.h"

/* Append the result of an operation. */
void legacy_put_result(struct buf *out, enum op op, struct span result);

#endif
