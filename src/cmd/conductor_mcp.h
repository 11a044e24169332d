/*
 * conductor_mcp: `conductor mcp PORT`, the helper that agents start as if it were an MCP server.
 *
 * It carries bytes between its standard input and output and a loopback port of the conductor. It
 * looks for line ends only, so that a new connection, after one that broke, begins with a whole
 * line. Messages in flight on a connection that broke are lost and never sent again, because a tool
 * must not run twice; only an initialize request without an answer is sent again. Needs nothing but
 * libc, so that the small program of the same name can be built from conductor_mcp.c.
 */
#ifndef RIALTO_CMD_CONDUCTOR_MCP_H
#define RIALTO_CMD_CONDUCTOR_MCP_H

/* `port` as on the command line; the port's secret is in the environment. Returns the exit status:
 * 0 when a side closed, 1 when the conductor cannot be reached (any more) or the agent's pipe
 * broke, 2 when `port` is no port. */
int conductor_mcp(const char *port);

#endif
