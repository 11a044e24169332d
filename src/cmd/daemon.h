/*
 * daemon: the running daemon, which commands reach by HTTP through its control socket.
 *
 * Every request waits for its answer. Errors are printed on the standard error.
 */
#ifndef RIALTO_CMD_DAEMON_H
#define RIALTO_CMD_DAEMON_H

#include "base/err.h"
#include "cmd/args.h"
#include "io/loop.h"

struct daemon;

/* The daemon of the configuration that these options ask for, running or not; NULL, after a
 * message, when it has no socket. If the options name no file and there is no such socket, but one
 * daemon runs with another file: that daemon. */
struct daemon *daemon_find(const struct args *a);
/* The daemon that runs with this configuration, for commands that use its servers. */
struct daemon *daemon_find_same(const struct args *a, const struct config *c);
/* The same, without a message when there is none. */
struct daemon *daemon_look(const struct args *a, const struct config *c);
/* The daemon of this configuration file (NULL: of no file), whose `control` is `setting`. */
struct daemon *daemon_open(const struct args *a, const char *setting, const char *file);
/* The daemon whose socket is at this path. */
struct daemon *daemon_at(const struct args *a, const char *path);
void daemon_free(struct daemon *d);
/* Finds the daemon (daemon_find), calls `act` and frees the daemon. Returns the exit code of `act`,
 * or CMD_FAILED when there is no daemon. */
int daemon_do(const struct args *a, int (*act)(struct daemon *d, const struct args *a));

/*
 * GET if `body` is empty, else POST. 0 with the answer's status and body (valid JSON), or negative
 * when there is no answer. The caller frees the answer.
 */
MUST_CHECK int daemon_fetch(struct daemon *d, const char *path, struct span body, int *status,
                            struct buf *answer);

/* Sets the timeout, else ten seconds, of requests that the daemon answers by itself. */
void daemon_wait_for(struct daemon *d, uint64_t ms);

/* Is the status 200? If not, the error in the answer is printed. */
bool daemon_agreed(const struct daemon *d, int status, struct span answer);
/* Append a value to a path's query, percent-encoded. */
void daemon_put_value(struct buf *path, const char *text);

/* --- for commands that go on until they are told to end --- */

/* From now on SIGINT, SIGTERM and SIGHUP (unless ignored) end every wait, and the command has to
 * end. */
void daemon_mind_signals(struct daemon *d);
/* As if a signal had come. */
void daemon_leave(struct daemon *d);
bool daemon_is_over(const struct daemon *d);
/* Wait; false once a signal has come. Callbacks of the loop may come meanwhile. */
bool daemon_pause(struct daemon *d, uint64_t ms);
/* Let daemon_pause return now, if it is waiting. */
void daemon_hurry(struct daemon *d);
/* GET like daemon_fetch, without a message when there is no answer. -ECANCELED: a signal came. */
MUST_CHECK int daemon_try(struct daemon *d, const char *path, int *status, struct buf *answer);
struct loop *daemon_loop(const struct daemon *d);

/*
 * One MCP request of the stateless era to the servers at `path`. `name` is the name of the tool or
 * other item, or empty; `params` are members of the params ("k":v,...), `headers` more header
 * lines. 0 with the raw result; negative, after a message, when there is no result.
 */
MUST_CHECK int daemon_request(struct daemon *d, const char *path, const char *method,
                              struct span name, struct span params, struct span headers,
                              struct buf *result);

/*
 * A configuration with one server that is the daemon's server of this name, to be used by a bridge
 * of the command's own: so progress, questions and Ctrl-C work as with a server that the command
 * has started itself. The caller frees it. NULL: no server can have this name.
 */
struct config *daemon_stand_in(const struct daemon *d, const char *server);

/* The text of a member of a JSON object; empty when it is absent or no text. */
struct span daemon_text(struct span object, const char *key, struct buf *scratch);
/* The same as a C string, in `scratch`, which is emptied first. */
const char *daemon_cstr(struct span object, const char *key, struct buf *scratch);

#endif
