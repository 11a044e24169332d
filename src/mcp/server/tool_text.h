/*
 * tool_text: what of a tool a person approves, in one form.
 *
 * The members that agents and models go by (name, description, both schemas, annotations), as the
 * server sent them, before overrides: sorted, so that the same tool has the same text and the same
 * digest whatever order and spacing its server writes.
 */
#ifndef RIALTO_MCP_SERVER_TOOL_TEXT_H
#define RIALTO_MCP_SERVER_TOOL_TEXT_H

#include "base/buf.h"

enum { TOOL_TEXT_DIGEST = 65 }; /* SHA-256 in hexadecimal, and a NUL */

/* `tool`: a validated object, as it stands in a list. */
void tool_text_put(struct buf *out, struct span tool);
void tool_text_digest(char digest[TOOL_TEXT_DIGEST], struct span text);
/* Append one line for each member in which the two texts differ. `was` may be empty. */
void tool_text_put_difference(struct buf *out, struct span was, struct span is);
/* Does the tool's description have characters that nobody sees? */
bool tool_text_hides(struct span tool);

#endif
