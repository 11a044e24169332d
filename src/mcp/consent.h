/*
 * consent: the elicitation that asks a person to allow a call (core/approval.h).
 */
#ifndef RIALTO_MCP_CONSENT_H
#define RIALTO_MCP_CONSENT_H

#include "core/approval.h"

/* Asks with a form without fields: accepting the form is a yes, every other result a no. */
extern const struct approver consent_approver;
/* The same, where an operator can be asked instead of the agent's user. */
extern const struct approver consent_approver_with_operator;

/* Append all arguments of the held call, as its server will get them, as JSON in one line: secrets
 * hidden, invisible characters escaped. */
void consent_put_arguments(struct buf *out, const struct call *c);

#endif
