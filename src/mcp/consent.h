/*
 * consent: the question by which a person allows a call (core/approval.h), in MCP's words.
 */
#ifndef RIALTO_MCP_CONSENT_H
#define RIALTO_MCP_CONSENT_H

#include "core/approval.h"

/* Asks by a form without fields: accepting it is a yes, everything else a no. */
extern const struct approver mcp_approver;
/* The same where an operator can be asked instead. */
extern const struct approver mcp_approver_with_operator;

/* Append what the held call wants to do, as a JSON object: its arguments, secrets hidden. */
void mcp_put_held_arguments(struct buf *out, const struct call *c);

#endif
