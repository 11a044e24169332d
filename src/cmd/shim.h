/*
 * shim: what a host runs as 'rialto stdio': carries the host's lines to the daemon and back.
 *
 * A program of its own (shim_main.c) does this, because hosts run one for each window; 'rialto
 * stdio' becomes that program where it stands beside, else does the same itself. When the daemon
 * ends, the shim attaches to the next one, starting it if need be, introduces the host again and
 * tells the host that lists have changed. Requests that were under way are answered with an error,
 * never sent twice (docs/decisions/021-one-daemon.md).
 */
#ifndef RIALTO_CMD_SHIM_H
#define RIALTO_CMD_SHIM_H

struct shim_options {
    const char *socket;  /* path of the daemon's control socket */
    const char *query;   /* of /attach: "view=a&wait=2s" */
    const char *log;     /* of a daemon that the shim starts; "" = none */
    char *const *daemon; /* the command that starts one, NULL at the end */
};

/* Runs until the host or the daemon has gone; returns the exit status. */
int shim_run(const struct shim_options *options);

#endif
