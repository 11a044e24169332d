/*
 * view: what one consumer (or many alike) sees.
 *
 * An ordered list of members: (provider, naming rule, filter). One member with bare names is a
 * transparent pass-through; many with a prefix is the aggregator. The view maps public names to
 * (provider, own name) by table, never by splitting, and keeps the merged list as ready JSON.
 *
 * URIs are passed on untouched. If two providers have the same URI, as a resource or as a template,
 * the later provider's is shown as VIEW_URI_FMT followed by the URI (docs/decisions/013).
 *
 * Names: pattern with {server} and {tool}; outside bare views they are limited to [A-Za-z0-9_-] and
 * VIEW_MAX_NAME bytes (a longer one is cut and gets a hash). A clash is resolved by config order:
 * the later item gets a suffix made from its provider and own name. Both are logged. Names are kept
 * for providers that are down, so that names never depend on which provider connected first. A
 * provider with bare_names is not subject to the pattern, but a tool of such a provider is renamed
 * if the pattern could have made its name for another member ("bank__transfer", whether or not
 * `bank` has such a tool).
 *
 * A view can be narrowed to some providers and tools, and can show a part of another view (its
 * base), including members that the base gets later: so consumers see different parts of one view.
 *
 * A provider knows the views that have it, so a change of the provider costs the same however many
 * other views there are. A provider that ends leaves its views; views may be freed in any order.
 */
#ifndef RIALTO_CORE_VIEW_H
#define RIALTO_CORE_VIEW_H

#include "base/buf.h"
#include "base/map.h"
#include "core/catalog.h"
#include "core/filter.h"

struct provider;

/* How a view offers its tools, except those of exempt members. */
enum view_tools {
    VIEW_TOOLS_LISTED,
    VIEW_TOOLS_UNLISTED, /* agents that know a name can call the tool */
    VIEW_TOOLS_HIDDEN,
};

/* What a narrowed view still shows. Borrowed: must outlive the view. */
struct narrowing {
    const struct span *providers; /* by alias; none = all */
    size_t n_providers;
    struct filter filters[ITEM_KINDS]; /* for tools, in addition to each member's filter;
                                        * resources and templates pass by URI or by name */
    enum view_tools tools;
    int expose; /* for the hub: how to offer tools (enum config_view_expose); 0 = global setting */
    uint64_t expose_above; /* for the hub: tokens, with `expose`; 0 = global setting */
    int errors; /* for the hub: how to report failures (enum config_errors); 0 = global setting */
    const char *name; /* for the hub: name of the configured view */
};

enum { VIEW_MAX_NAME = 64 };
#define VIEW_URI_FMT "rialto://%s/" /* %s: the alias; the provider's own URI follows */

struct view;

/* `pattern` NULL = bare: names are passed on untouched. */
struct view *view_new(const char *name, const char *pattern);
void view_free(struct view *v);
const char *view_name(const struct view *v);
const char *view_pattern(const struct view *v);
/* Descriptions of tools begin with `before`, the server's alias and a bracket: "[" or "[MCP: ";
 * with NULL they stay as they are. Borrowed. */
void view_set_described(struct view *v, const char *before);
void view_add(struct view *v, struct provider *p, const struct filter *filter);
/* Add a member that is shown with all its tools however the view is narrowed. */
void view_add_exempt(struct view *v, struct provider *p);
void view_remove(struct view *v, const struct provider *p);
/* Remove the provider from every view that has it. */
void view_remove_everywhere(struct provider *p);
/* Show only a part of the members, and of the members of `base` (NULL: none), which must outlive
 * `v`. */
void view_narrow(struct view *v, struct view *base, const struct narrowing *narrowing);
bool view_has(const struct view *v, const struct provider *p);
/* The kinds (bits) of the provider's items that the view may list: without its tools if agents have
 * to search for them. */
unsigned view_kinds(const struct view *v, const struct provider *p);
/* Calls of tools that no member offers go to the member `p`, which answers with its own error. */
void view_set_fallback(struct view *v, struct provider *p);
struct provider *view_fallback(const struct view *v);
/* Who answers calls of an unknown tool whose name, by the pattern, belongs to a server that needs a
 * sign-in (then its `sign_in`) or that refuses all calls (then the server itself). NULL: no such
 * server. */
struct provider *view_answerer(const struct view *v, struct span name);
/*
 * The provider of a view that is a mere pass-through: the view is bare, this is its one member, no
 * item is hidden, no tool needs a person's approval and no rule concerns it. NULL for other views.
 */
struct provider *view_only(const struct view *v);
/* Does the narrowing hide no item of the providers that are shown? It may hide providers. */
bool view_is_whole(const struct view *v);
/* The filter for items of this kind; NULL: no item of the kind is hidden. */
const struct filter *view_filter(const struct view *v, enum item_kind kind);
/* The n-th member's provider in order, or NULL. */
struct provider *view_member(const struct view *v, size_t n);

/* What a public name stands for. `item` is valid until the provider publishes again. */
struct target {
    struct provider *provider;
    const struct item *item;
    struct span public_name;
};

/* Also finds items of providers that are not running: a call may wake them. */
const struct target *view_find(struct view *v, enum item_kind kind, struct span public_name);
/* The n-th of the advertised items, or NULL past the end. */
const struct target *view_item(struct view *v, enum item_kind kind, size_t n);
/* JSON array of the advertised items, names replaced. Valid until the view changes. */
struct span view_list(struct view *v, enum item_kind kind);

/* The flags of all items of that list, combined with or. */
unsigned view_flags(struct view *v, enum item_kind kind);

/* The digest of the bytes of view_list: equal digests mean equal lists. */
uint64_t view_digest(struct view *v, enum item_kind kind);

/* The provider's items may have changed: the lists that have them are built again at their next
 * use. */
void view_touch(const struct provider *p);

#endif
