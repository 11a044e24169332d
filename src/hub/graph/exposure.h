/*
 * exposure: a group of providers as agents see it (`expose`).
 *
 * Usually that is one view. With `expose: search` there are two: the full view, which has all
 * tools, and the view that agents see, in which two tools of our own replace all others
 * (mcp/search_provider.h); resources and prompts are in both. With `bus.gateway` there are two
 * views as well, and three tools of our own beside the others. With `expose: auto` there are also
 * two views: whenever lists change, the number of tokens that the full list costs a model decides
 * whether tools are listed or searched for.
 *
 * A server of both eras has an instance for each (decision 012), so an exposure that agents of both
 * eras use has all this twice: agents of the initialize era see their own views.
 */
#ifndef RIALTO_HUB_GRAPH_EXPOSURE_H
#define RIALTO_HUB_GRAPH_EXPOSURE_H

#include "config/config.h"
#include "core/router.h"

struct exposure;
struct bridge;

struct exposure_style {
    struct bridge *bridge; /* whose servers these are */
    const char *name;
    const char *pattern;   /* NULL: names are passed on untouched */
    const char *described; /* what stands before the server in descriptions; NULL: nothing */
    enum config_expose expose;
    uint64_t above; /* with EXPOSE_AUTO: tools that cost more tokens are searched for */
    bool gateway;   /* RockBot's three tools are listed, too */
    bool of_both_eras;
    const struct narrowing *narrowing; /* NULL: show everything. Must outlive the exposure */
};

/* The views of the new exposure are in the router from now on. */
struct exposure *exposure_new(struct router *r, const struct exposure_style *style);
/* Valid as long as the exposure. */
const struct exposure_style *exposure_style(const struct exposure *e);
/* Agents of the initialize era see `legacy` instead of `p`; both are the same for a provider that
 * serves agents of both eras. */
void exposure_add(struct exposure *e, struct provider *p, struct provider *legacy,
                  const struct filter *filter);
/* Empty the views, to be filled again; router_tell_changes tells agents the difference. */
void exposure_clear(struct exposure *e);
/* With `expose: auto`: decide now, so that the caller can tell agents about all changes at once. By
 * itself, the exposure decides one turn of the loop after a list has changed. */
void exposure_weigh(struct exposure *e);
/* Instead of exposure_add: always show what `whole` has. `whole` must outlive the exposure, and the
 * style must have a narrowing. */
void exposure_follow(struct exposure *e, const struct exposure *whole);
/* Start the search provider, if there is one. */
void exposure_open(struct exposure *e);
/* The view that agents see. */
struct view *exposure_view(const struct exposure *e);
/* The view that agents of the initialize era see. */
struct view *exposure_legacy_view(const struct exposure *e);
/* The view with everything. */
struct view *exposure_full(const struct exposure *e);
/* Stop the search provider, which ends its calls. */
void exposure_stop(struct exposure *e);
/* Call this in a later turn of the loop than a call through the exposure: a call that has ended may
 * still be on the stack. */
void exposure_free(struct exposure *e);

#endif
