/* Whether a method that MCP does not define is passed on to the server. Called by session.c and
 * modern.c. */
#include "mcp/agent/host.h"

bool mcp_host_passes(const struct mcp_host *host, const struct mcp_message *m)
{
    const struct provider *only = view_only(host->view);

    return only && only->takes_any && !mcp_is_own_method(&m->rpc);
}
