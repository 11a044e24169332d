/*
 * result: what a page answers to tools/call, as MCP says it.
 *
 * An answer that is already MCP-shaped passes through, with small mistakes corrected; anything else
 * becomes one text with its JSON. Errors get MCP's code by the table of BTCP's names, which
 * data.btcpCode keeps.
 */
#ifndef RIALTO_BROWSER_RESULT_H
#define RIALTO_BROWSER_RESULT_H

#include "base/buf.h"
#include "base/span.h"

/* Append the MCP result, with `structured` also as structuredContent where it is an object that
 * was wrapped; true when it says that the tool failed. */
bool result_put(struct buf *out, struct span result, bool structured);
/* Append the MCP error object of a page's raw error object. */
void result_put_error(struct buf *out, struct span error);
/* Append an error object of our own; `code` is one of BTCP's names. */
void result_put_failure(struct buf *out, const char *code, struct span message);

#endif
