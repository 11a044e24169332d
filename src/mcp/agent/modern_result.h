/*
 * modern_result: adds the members that the stateless era requires on every result.
 */
#ifndef RIALTO_MCP_AGENT_MODERN_RESULT_H
#define RIALTO_MCP_AGENT_MODERN_RESULT_H

#include "base/buf.h"

/* The member of `_meta` that says who we are, and a `_meta` with only that member. */
#define MODERN_SERVER_INFO                                                                         \
    "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"rialto\",\"version\":\"" RIALTO_VERSION    \
    "\"}"
#define MODERN_IDENTITY "\"_meta\":{" MODERN_SERVER_INFO "}"
/* Lists and resources may not be cached: we cannot know for how long they are valid. */
#define MODERN_NO_CACHE "\"ttlMs\":0,\"cacheScope\":\"private\""

/*
 * Append a result of a provider: resultType and (if `cacheable`) the cache members are added where
 * they are missing, the identity becomes ours; everything else stays byte for byte.
 */
void modern_result_put(struct buf *out, struct span result, bool cacheable);

#endif
