/*
 * header_value: any text as the value of an HTTP header, as the stateless era does it.
 *
 * Printable ASCII without blanks at its ends goes as it is; every other text, and one that looks
 * like an encoded value itself, goes as =?base64?...?=.
 */
#ifndef RIALTO_MCP_HEADER_VALUE_H
#define RIALTO_MCP_HEADER_VALUE_H

#include "base/buf.h"

void header_value_put(struct buf *out, struct span text);
/* Append the text; false when the value looks encoded but is not strict base64 of UTF-8. */
bool header_value_decode(struct span value, struct buf *out);

#endif
