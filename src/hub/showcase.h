/*
 * showcase: the providers that belong together, as agents see them.
 *
 * Usually that is one view. With `search` there are two: the full one, which has all tools, and the
 * one that agents see, in which two tools of our own stand for them (mcp/search_provider.h);
 * resources and prompts are in both.
 */
#ifndef RIALTO_HUB_SHOWCASE_H
#define RIALTO_HUB_SHOWCASE_H

#include "core/router.h"

struct showcase;

struct showcase_style {
    const char *name;
    const char *pattern; /* NULL: names are passed on untouched */
    bool described;      /* descriptions name the server */
    bool search;
    const struct narrowing *narrowing; /* what is left of it all; NULL: everything. Outlives it */
};

/* Its views are in the router from now on. */
struct showcase *showcase_new(struct router *r, const struct showcase_style *style);
void showcase_add(struct showcase *s, struct provider *p, const struct filter *filter);
/* Empty again, to be filled anew; router_tell_changes tells what came of it. */
void showcase_clear(struct showcase *s);
/* Instead of adding: show what `whole`, which must outlive it, has at any time. With a narrowing.
 */
void showcase_follow(struct showcase *s, struct view *whole);
/* The tools of our own, if any, may be used. */
void showcase_open(struct showcase *s);
/* What agents see. */
struct view *showcase_view(const struct showcase *s);
/* Everything there is. */
struct view *showcase_full(const struct showcase *s);
/* Nobody shall call any more: ends what is under way. */
void showcase_stop(struct showcase *s);
/* In a later turn of the loop than a call of it: what has ended may still be on the stack. */
void showcase_free(struct showcase *s);

#endif
