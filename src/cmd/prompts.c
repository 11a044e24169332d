/* The command `rialto prompts`: listing.c lists the prompts. Called through the table of commands
 * (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/listing.h"

static int run(const struct command *self, int argc, char **argv)
{
    static const struct listing what = {{ITEM_PROMPT}, 1};

    return listing_run(self, argc, argv, &what);
}

const struct command command_prompts = {
    .name = "prompts",
    .summary = "List the prompts that a configuration offers",
    .usage = "",
    .about = "Starts every server, lists its prompts by the names that agents see, and stops them\n"
             "again. Exits with 1 when a server could not be started.",
    .options = listing_options,
    .run = run,
};
