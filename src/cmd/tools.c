/* The command `rialto tools`: listing.c lists the tools. Called through the table of commands
 * (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/listing.h"

static int run(const struct command *self, int argc, char **argv)
{
    static const struct listing what = {{ITEM_TOOL}, 1};

    return listing_run(self, argc, argv, &what);
}

const struct command command_tools = {
    .name = "tools",
    .summary = "List the tools that a configuration offers",
    .usage = "",
    .about = "Starts every server, lists its tools by the names that agents see, and stops them\n"
             "again. Exits with 1 when a server could not be started; the others are listed all\n"
             "the same.",
    .options = listing_options,
    .run = run,
};
