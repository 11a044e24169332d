/*
 * listing: the commands that list what a configuration offers: resources and prompts.
 *
 * Each is a struct command of its own whose `run` calls listing_run with the kinds of items. Tools
 * are listed by tools.c, which uses the helpers here.
 */
#ifndef RIALTO_CMD_LISTING_H
#define RIALTO_CMD_LISTING_H

#include "cmd/args.h"
#include "core/catalog.h"

enum { LISTING_MAX_KINDS = 2 };

struct listing {
    enum item_kind kinds[LISTING_MAX_KINDS];
    size_t n;
};

extern const struct cmd_option listing_options[];
/* Reads listing_options and at most `max` names. NULL: leave with a->exit_code. */
struct config *listing_config(struct args *a, int max, bool *daemon);

int listing_run(const struct command *self, int argc, char **argv, const struct listing *what);

/* The width of the terminal; without one SIZE_MAX, so that lines are not cropped. */
size_t listing_width(void);
/* Append the first line of a text, cut to `room` columns. */
void listing_put_line(struct buf *out, struct span text, size_t room);

#endif
