/*
 * shim: what a host runs as 'rialto stdio': carries the host's lines to the daemon and back.
 *
 * Hosts run one for each window, so a small program (shim_main.c) does this: 'rialto stdio'
 * executes it if it is in the same folder, else does the same itself. When the daemon ends, the
 * shim attaches to the next one, which it starts if none runs, introduces the host again and tells
 * the host that lists have changed. Requests that were open are answered with an error, except
 * those that are safe to send again (docs/decisions/021-one-daemon.md).
 */
#ifndef RIALTO_CMD_SHIM_H
#define RIALTO_CMD_SHIM_H

struct shim_options {
    const char *socket;  /* path of the daemon's control socket */
    const char *query;   /* of /attach: "view=a&wait=2s" */
    const char *log;     /* log file of a daemon that the shim starts; "" = none */
    char *const *daemon; /* the command that starts a daemon, NULL at the end */
};

/* Runs until the host has ended or no daemon can be reached; returns the exit status. */
int shim_run(const struct shim_options *options);

#endif
