/*
 * search_provider: two tools in place of many, for catalogs that are too large for an agent.
 *
 * The provider is a part of the bridge. `find_tools` answers from an index over the tools
 * of a view; `call_tool` opens the named tool on that view as a consumer of its own and relays
 * everything that happens to the call, both ways: progress, logs, questions and their answers,
 * cancellation, the end. So an agent loses nothing by calling this way, in either era.
 */
#ifndef RIALTO_MCP_SEARCH_PROVIDER_H
#define RIALTO_MCP_SEARCH_PROVIDER_H

#include "core/router.h"

struct search_provider;

/* Searches the tools of the view `full`, which must outlive the provider. Not in any router yet. */
struct search_provider *search_provider_new(struct view *full);
/* Only when down and out of the router. */
void search_provider_free(struct search_provider *s);
/* The provider comes up inside of provider_want and goes down inside of provider_unwant. */
struct provider *search_provider_core(struct search_provider *s);

#endif
