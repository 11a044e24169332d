/*
 * overrides: changes that the configuration makes to single tools of a server.
 *
 * A tool can be renamed, get another description, be hidden, or have arguments pinned. A pinned
 * argument has the configured value whatever the agent says, and the schema the agent sees does not
 * have that argument.
 *
 * Nouns: overrides_, override_.
 */
#ifndef RIALTO_MCP_SERVER_OVERRIDES_H
#define RIALTO_MCP_SERVER_OVERRIDES_H

#include "base/buf.h"
#include "core/peer.h"

struct mcp_override {
    const char *own;         /* the server's name for the tool */
    const char *name;        /* ours, or NULL */
    const char *description; /* or NULL */
    const char *arguments;   /* pinned ones, a valid JSON object, or NULL */
    bool hide;
};

struct mcp_overrides {
    const struct mcp_override *rows;
    size_t n;
};

/* Do the overrides keep agents from any tool or argument? */
bool overrides_restrict(const struct mcp_overrides *all);
const struct mcp_override *override_find(const struct mcp_overrides *all, struct span own);
/* Append the tool's JSON as agents are to see it. */
void override_put_tool(struct buf *out, const struct mcp_override *o, struct span raw);
/* Does an argument have a name that a lenient server takes for that of a pinned argument? */
bool override_is_evaded(const struct mcp_override *o, const struct request *r);
/*
 * The request with the pinned arguments in place; its params are in `params`. The same request when
 * nothing is pinned.
 */
struct request override_request(const struct mcp_override *o, const struct request *r,
                                struct buf *params);

#endif
