/*
 * command_line: a component's command line, given as one argument.
 *
 * Shell words (quotes and backslashes, no expansion), with leading NAME=value words for the
 * environment; or a JSON object {"command", "args", "env"}. A prefix "p2:" fixes the proxy dialect.
 */
#ifndef RIALTO_ACP_COMMAND_LINE_H
#define RIALTO_ACP_COMMAND_LINE_H

#include "acp/proxy_dialects.h"
#include "base/err.h"

struct command_line {
    enum proxy_dialect dialect; /* P_UNKNOWN unless fixed */
    char **argv;                /* NULL-terminated */
    char **env;                 /* "K=V", NULL-terminated */
    size_t n_argv, n_env;
};

/* On failure there is nothing to free. */
MUST_CHECK int command_line_parse(struct command_line *c, struct span text, struct err *err);
void command_line_fini(struct command_line *c);

#endif
