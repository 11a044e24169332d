/* The table of all commands, and the search for a command by name or by a similar name. Used by
 * main.c, help.c, man.c, completion.c and candidates.c. */
#include "cmd/commands.h"
#include "config/nearest.h"

/* In the order in which help lists them. */
/* clang-format off */
const struct command *const commands[] = {
    &command_serve,
    &command_stdio,
    &command_setup,
    &command_add,
    &command_add_json,
    &command_remove,
    &command_rename,
    &command_enable,
    &command_disable,
    &command_login,
    &command_logout,
    &command_inspect,
    &command_tools,
    &command_resources,
    &command_prompts,
    &command_call,
    &command_calls,
    &command_trace,
    &command_replay,
    &command_status,
    &command_top,
    &command_logs,
    &command_start,
    &command_stop,
    &command_restart,
    &command_doctor,
    &command_sandbox,
    &command_reload,
    &command_upgrade,
    &command_approvals,
    &command_audit,
    &command_lock,
    &command_check,
    &command_config,
    &command_token,
    &command_pair,
    &command_import,
    &command_conductor,
    &command_browser,
    &command_bus,
    &command_demo_server,
    &command_completion,
    &command_version,
    &command_help,
    NULL,
};
/* clang-format on */

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

struct span command_nearest(const char *name)
{
    struct nearest near = nearest_to(span_str(name));

    for (size_t i = 0; commands[i]; i++)
        nearest_offer(&near, span_str(commands[i]->name));
    return near.best;
}
