/*
 * showcase: the providers that belong together, as agents see them.
 *
 * Usually that is one view. With `search` there are two: the full one, which has all tools, and the
 * one that agents see, in which two tools of our own stand for them (mcp/search_provider.h);
 * resources and prompts are in both.
 */
#ifndef RIALTO_CMD_SHOWCASE_H
#define RIALTO_CMD_SHOWCASE_H

#include "core/router.h"

struct showcase;

struct showcase_style {
    const char *name;
    const char *pattern; /* NULL: names are passed on untouched */
    bool described;      /* descriptions name the server */
    bool search;
};

/* Its views are in the router from now on. */
struct showcase *showcase_new(struct router *r, const struct showcase_style *style);
void showcase_add(struct showcase *s, struct provider *p, const struct filter *filter);
/* All are in it that will be. */
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
