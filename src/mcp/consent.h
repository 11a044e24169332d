/*
 * consent: the question by which a person allows a call (core/approval.h), in MCP's words.
 */
#ifndef RIALTO_MCP_CONSENT_H
#define RIALTO_MCP_CONSENT_H

#include "core/approval.h"

/* Asks by a form without fields: accepting it is a yes, everything else a no. */
extern const struct approver consent_approver;
/* The same where an operator can be asked instead. */
extern const struct approver consent_approver_with_operator;

/* Append what the held call wants to do, all of it: its arguments as JSON in one line, secrets
 * hidden, what would not show escaped. */
void consent_put_arguments(struct buf *out, const struct call *c);

#endif
