/*
 * param_headers: arguments of a tool that its schema wants repeated as HTTP headers (x-mcp-header).
 *
 * We send these headers to HTTP servers of the stateless era, and check those that agents of that
 * era send. Tools whose annotations break the rules are not offered.
 */
#ifndef RIALTO_MCP_PARAM_HEADERS_H
#define RIALTO_MCP_PARAM_HEADERS_H

#include "base/buf.h"

/* Cheap: may this tool (raw JSON) have annotations at all? */
bool param_headers_possible(struct span tool);
/* Are the annotations valid? Names are tokens, unique, on plain types, in properties only. */
bool param_headers_valid(struct span tool);
/* Append "Mcp-Param-Name: value\r\n" for each annotated argument that is given. */
void param_headers_put(struct buf *out, struct span tool, struct span arguments);

/* Looks up a header of the request by name; p == NULL when it is absent. */
typedef struct span param_header_fn(void *arg, struct span name);
/* Do the headers say what the arguments say? */
bool param_headers_match(struct span tool, struct span arguments, param_header_fn *header,
                         void *arg);

#endif
