/*
 * route: which provider a request goes to, and the name of the item at that provider.
 */
#ifndef RIALTO_CORE_ROUTE_H
#define RIALTO_CORE_ROUTE_H

#include "core/peer.h"
#include "core/view.h"

struct route {
    struct provider *provider;
    struct span own_name; /* valid until the provider publishes again; may be a part of the name in
                           * the request */
    bool repeatable;
    struct span why; /* when nothing was found: a text for people */
};

bool route_find(struct view *v, const struct request *request, struct route *out);

/*
 * May this resource of the provider be read, subscribed to and completed in the view? A listed
 * resource: if the view shows it. Any other, if the view has an allow list: if the list allows the
 * URI, or the view shows a template that expands to it. If the view has a deny list: if the list
 * does not deny the URI and, where templates expand to it, the view shows one of them. Other
 * spellings of a denied URI are denied, too.
 */
bool route_may_read(const struct view *v, const struct provider *p, struct span uri);

/*
 * Could `uri` be an expansion of `uri_template` (RFC 6570)? Expressions are taken to expand to any
 * text, those without an operator to text without a slash: enough to choose a route, not to extract
 * values.
 */
bool route_template_matches(struct span uri_template, struct span uri);

#endif
