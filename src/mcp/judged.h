/*
 * judged: finds an argument of a tool call for a rule (core/rules.h).
 *
 * Every family opens calls of tools with the params of MCP's tools/call, so one function reads them
 * all. It looks at what will be sent to the server: the consumer's arguments, with each pinned
 * argument instead of the consumer's.
 */
#ifndef RIALTO_MCP_JUDGED_H
#define RIALTO_MCP_JUDGED_H

#include "core/rules.h"

rules_find_fn judged_find;

#endif
