/*
 * exposure: a group of providers as agents see it (`expose`).
 *
 * Usually that is one view. With `search` there are two: the full one, which has all tools, and the
 * one that agents see, in which two tools of our own stand for them (mcp/search_provider.h);
 * resources and prompts are in both.
 */
#ifndef RIALTO_HUB_EXPOSURE_H
#define RIALTO_HUB_EXPOSURE_H

#include "core/router.h"

struct exposure;
struct bridge;

struct exposure_style {
    struct bridge *bridge; /* whose servers these are */
    const char *name;
    const char *pattern; /* NULL: names are passed on untouched */
    bool described;      /* descriptions name the server */
    bool search;
    const struct narrowing *narrowing; /* what is left of it all; NULL: everything. Outlives it */
};

/* Its views are in the router from now on. */
struct exposure *exposure_new(struct router *r, const struct exposure_style *style);
/* Good as long as the exposure is. */
const struct exposure_style *exposure_style(const struct exposure *e);
void exposure_add(struct exposure *e, struct provider *p, const struct filter *filter);
/* Empty again, to be filled again; router_tell_changes tells what came of it. */
void exposure_clear(struct exposure *e);
/* Instead of adding: show what `whole`, which must outlive it, has at any time. With a narrowing.
 */
void exposure_follow(struct exposure *e, struct view *whole);
/* The tools of our own, if any, may be used. */
void exposure_open(struct exposure *e);
/* What agents see. */
struct view *exposure_view(const struct exposure *e);
/* Everything there is. */
struct view *exposure_full(const struct exposure *e);
/* Nobody shall call any more: ends what is under way. */
void exposure_stop(struct exposure *e);
/* In a later turn of the loop than a call of it: what has ended may still be on the stack. */
void exposure_free(struct exposure *e);

#endif
