/*
 * tool_text: the parts of a tool that a person approves, as one text.
 *
 * The members that agents and models rely on (name, description, both schemas, annotations),
 * sorted, so that the same tool has the same text and the same digest whatever order and spacing
 * its server writes. hub/graph/lock.c passes tools as the server sent them, lists.c tools with
 * overrides.
 */
#ifndef RIALTO_MCP_SERVER_TOOL_TEXT_H
#define RIALTO_MCP_SERVER_TOOL_TEXT_H

#include "base/buf.h"

enum { TOOL_TEXT_DIGEST = 65 }; /* SHA-256 in hexadecimal, and a NUL */

/* `tool`: a validated object, as it is in a list. */
void tool_text_put(struct buf *out, struct span tool);
void tool_text_digest(char digest[TOOL_TEXT_DIGEST], struct span text);
/* Append a line with - and one with + for each member that differs. `was` may be empty. */
void tool_text_put_difference(struct buf *out, struct span was, struct span is);
/* Does the tool's description have invisible characters? */
bool tool_text_hides(struct span tool);

#endif
