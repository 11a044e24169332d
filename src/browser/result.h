/*
 * result: converts what a page answers to tools/call to MCP's form.
 *
 * An answer that already has MCP's form passes through, with small mistakes corrected; any other
 * becomes one text item with its JSON. Errors get MCP's codes; data.btcpCode keeps the page's code.
 */
#ifndef RIALTO_BROWSER_RESULT_H
#define RIALTO_BROWSER_RESULT_H

#include "base/buf.h"
#include "base/span.h"

/* Append the MCP result; `structured`: an object that becomes a text is added as structuredContent
 * too. True when the result says that the tool failed. */
bool result_put(struct buf *out, struct span result, bool structured);
/* Append the MCP error object for a page's raw error object. */
void result_put_error(struct buf *out, struct span error);
/* Append an error object of our own; `code` is one of BTCP's names. */
void result_put_failure(struct buf *out, const char *code, struct span message);

#endif
