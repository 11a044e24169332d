/*
 * as_tools: a server's resources and prompts as tools, for clients that can use only tools.
 *
 * `read_resource` takes the uri of a resource, `get_prompt_NAME` the arguments of the prompt NAME.
 * A call of such a tool is sent to the server as resources/read or prompts/get, so questions,
 * progress and cancellation work as usual; only the result is turned into that of a tool.
 */
#ifndef RIALTO_MCP_SERVER_AS_TOOLS_H
#define RIALTO_MCP_SERVER_AS_TOOLS_H

#include "mcp/server/upstream.h"

struct made_tool;

/* Make the tools from the catalog that is being collected, and add them to that catalog. */
void as_tools_make(struct mcp_provider *p);
void as_tools_fini(struct mcp_provider *p);

/* The made tool that this request calls; NULL when the tool is the server's own. */
const struct made_tool *as_tools_find(const struct mcp_provider *p, const struct request *r);
enum op as_tools_op(const struct made_tool *t);
/*
 * Turn the call of a made tool into the request that the tool stands for; `params` holds the text.
 * NULL, or what is wrong with the arguments.
 */
const char *as_tools_redirect(const struct made_tool *t, struct request *r, struct buf *params);
/* The server's answer as the result of the made tool; `body` holds the text. */
struct outcome as_tools_outcome(enum op op, const struct outcome *outcome, struct buf *body);

#endif
