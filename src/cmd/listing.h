/*
 * listing: the commands that list what a configuration offers: tools, resources, prompts.
 *
 * Each is a struct command of its own whose `run` calls listing_run with the kinds of items.
 */
#ifndef RIALTO_CMD_LISTING_H
#define RIALTO_CMD_LISTING_H

#include "cmd/cmd.h"
#include "core/catalog.h"

enum { LISTING_MAX_KINDS = 2 };

struct listing {
    enum item_kind kinds[LISTING_MAX_KINDS];
    size_t n;
};

extern const struct cmd_option listing_options[];

int listing_run(const struct command *self, int argc, char **argv, const struct listing *what);

#endif
