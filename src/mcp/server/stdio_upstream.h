/*
 * stdio_upstream: the link to an MCP server that is a child process (one message per line).
 */
#ifndef RIALTO_MCP_SERVER_STDIO_UPSTREAM_H
#define RIALTO_MCP_SERVER_STDIO_UPSTREAM_H

#include "io/child.h"
#include "mcp/server/provider.h"

/* A program that runs to its end before the server is started, such as an installer. */
struct stdio_upstream_step {
    const char *const *argv; /* borrowed, like all members */
    const char *const *env;
    const struct cage_rules *cage;
    /* The command of the server, which does not change afterwards; NULL while the step must be run
     * first. */
    const char *const *(*ready)(void *arg);
    void *arg;
};

struct stdio_upstream_options {
    const char *alias;
    const char *const *argv; /* borrowed, like env: must outlive the provider */
    const char *const *env;
    const char *cwd;
    const struct cage_rules *cage;            /* NULL = none */
    const struct stdio_upstream_step *before; /* NULL = none */
    size_t max_message;
    uint64_t stop_grace; /* ms from closing stdin to SIGTERM, and again to SIGKILL */
};

struct mcp_provider *stdio_upstream_new(struct loop *loop,
                                        const struct stdio_upstream_options *options);

#endif
