/*
 * conductor_mcp: `conductor mcp PORT`, the helper that agents start as if it were an MCP server.
 *
 * It carries bytes between its standard input and output and a loopback port of the conductor, and
 * looks into none of them. Needs nothing but libc, so that the small program of the same name can
 * be built from it.
 */
#ifndef RIALTO_CMD_CONDUCTOR_MCP_H
#define RIALTO_CMD_CONDUCTOR_MCP_H

/* `port` as it stands on the command line. Returns the exit status: 0 when a side closed, 1 when
 * the conductor cannot be reached or a pipe broke, 2 for what is no port. */
int conductor_mcp(const char *port);

#endif
