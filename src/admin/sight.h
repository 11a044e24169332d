/*
 * sight: what a caller of the page and its API is shown.
 *
 * An operator is shown everything, and so is a viewer, unless the viewer's token has a view: then
 * only the servers, tools, calls and sessions of that view. The struct is made for one request and
 * is not kept; code that writes to a caller later keeps the name of the view and calls
 * sight_by_view again.
 */
#ifndef RIALTO_ADMIN_SIGHT_H
#define RIALTO_ADMIN_SIGHT_H

#include "core/call.h"
#include "core/caller.h"
#include "hub/hub.h"

struct sight {
    bool narrowed;
    const struct narrowing *narrowing; /* NULL although narrowed: the view is gone; shows nothing */
    const char *view;                  /* its name; NULL: everything is shown */
};

struct sight sight_of(const struct hub *hub, const struct caller *caller);
/* The same by the name of a viewer's view; NULL: everything. */
struct sight sight_by_view(const struct hub *hub, const char *view);
bool sight_shows_server(const struct sight *s, struct span alias);
/* An item by its own name and its label. */
bool sight_shows_item(const struct sight *s, struct span alias, enum item_kind kind,
                      const struct item *item);
/* A call, by what it does and the own name of its tool, prompt or resource. */
bool sight_shows_call(const struct sight *s, struct span alias, enum op op, struct span name);

#endif
