/*
 * conductor_mcp: `conductor mcp PORT`, the helper that agents start as if it were an MCP server.
 *
 * It carries bytes between its standard input and output and a loopback port of the conductor. It
 * looks for line ends, so that another connection, after one that broke, begins with a whole line;
 * whatever else stands in the bytes is not its business. What was in flight on a connection that
 * broke is lost, and never sent again: a tool must not run twice. Only a greeting that nothing came
 * back to is said again. Needs nothing but libc, so that the small program of the same name can be
 * built from it.
 */
#ifndef RIALTO_CMD_CONDUCTOR_MCP_H
#define RIALTO_CMD_CONDUCTOR_MCP_H

/* `port` as it stands on the command line; the secret that it wants is in the environment. Returns
 * the exit status: 0 when a side closed, 1 when the conductor cannot be reached (any more) or the
 * agent's pipe broke, 2 for what is no port. */
int conductor_mcp(const char *port);

#endif
