/*
 * search_provider: two tools instead of many, for catalogs that are too large for an agent.
 *
 * The provider is a part of the bridge. `find_tools` answers from an index over the tools
 * of a view; `call_tool` opens a second call, of the named tool on that view, and relays
 * everything between the two calls: progress, logs, questions and their answers, cancellation, the
 * end. So an agent loses nothing by calling this way, in either era.
 *
 * The same provider can offer the tools of the gateway that RockBot's skills know: list_services,
 * get_service_details, and invoke_tool, which is call_tool by the names of server and tool. All of
 * them show and call only what the view has.
 */
#ifndef RIALTO_MCP_SEARCH_PROVIDER_H
#define RIALTO_MCP_SEARCH_PROVIDER_H

#include "core/router.h"
#include "core/search.h"

struct search_provider;

enum { SEARCH_OFFERS_SEARCH = 1u << 0, SEARCH_OFFERS_GATEWAY = 1u << 1 };

/* Searches the tools of the view `full`, which must outlive the provider; `offers` has
 * SEARCH_OFFERS_ bits. The caller adds the provider to a router. */
struct search_provider *search_provider_new(struct view *full, unsigned offers);
/* Offer other tools from now on; agents are notified. */
void search_provider_offer(struct search_provider *s, unsigned offers);
/* Only when down and out of the router. */
void search_provider_free(struct search_provider *s);
/* The provider comes up inside of provider_want and goes down inside of provider_unwant. */
struct provider *search_provider_core(struct search_provider *s);
/* Add a tool to an index as find_tools does: its name, and the words of its raw object. */
void search_provider_add(struct search *index, struct span name, struct span raw);

#endif
