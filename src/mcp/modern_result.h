/*
 * modern_result: what the stateless era wants on every result, put onto results that lack it.
 */
#ifndef RIALTO_MCP_MODERN_RESULT_H
#define RIALTO_MCP_MODERN_RESULT_H

#include "base/buf.h"

/* The members `"_meta":{...serverInfo...}` that say who we are. */
#define MODERN_IDENTITY                                                                            \
    "\"_meta\":{\"io.modelcontextprotocol/"                                                        \
    "serverInfo\":{\"name\":\"rialto\",\"version\":\"" RIALTO_VERSION "\"}}"
/* How long a list or a resource may be reused: not at all, for we cannot know. */
#define MODERN_NO_CACHE "\"ttlMs\":0,\"cacheScope\":\"private\""

/*
 * Append a result of a provider: resultType, identity and (if `cacheable`) the cache members are
 * added where they are missing; everything else stays byte for byte.
 */
void modern_put_result(struct buf *out, struct span result, bool cacheable);

#endif
