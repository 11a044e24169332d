/* The command `rialto resources`: listing.c lists resources and resource templates. Called through
 * the table of commands (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/listing.h"

static int run(const struct command *self, int argc, char **argv)
{
    static const struct listing what = {{ITEM_RESOURCE, ITEM_TEMPLATE}, 2};

    return listing_run(self, argc, argv, &what);
}

const struct command command_resources = {
    .name = "resources",
    .summary = "List the resources that a configuration offers",
    .usage = "",
    .about = "Starts every server, lists its resources and then its resource templates, and stops\n"
             "them again. Exits with 1 when a server could not be started.",
    .options = listing_options,
    .run = run,
};
