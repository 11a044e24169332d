/*
 * consent: the question by which a person allows a call (core/approval.h), in MCP's words.
 */
#ifndef RIALTO_MCP_CONSENT_H
#define RIALTO_MCP_CONSENT_H

#include "core/approval.h"

/* Asks by a form without fields: accepting the form is a yes, every other answer a no. */
extern const struct approver consent_approver;
/* The same, where an operator can be asked instead of the agent's user. */
extern const struct approver consent_approver_with_operator;

/* Append all arguments of the held call as JSON in one line: secrets hidden, invisible characters
 * escaped. */
void consent_put_arguments(struct buf *out, const struct call *c);

#endif
