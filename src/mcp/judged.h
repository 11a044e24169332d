/*
 * judged: an argument of a call of a tool, found for a rule (core/rules.h).
 *
 * Every family opens calls of tools with the params of MCP's tools/call, so one function reads them
 * all. Looked at is what the server will be sent: the consumer's arguments with the pinned ones in
 * their places.
 */
#ifndef RIALTO_MCP_JUDGED_H
#define RIALTO_MCP_JUDGED_H

#include "core/rules.h"

rules_find_fn judged_find;

#endif
