/*
 * daemon: the running daemon, as a command reaches it: by HTTP through its control socket.
 *
 * Every request is waited for. What goes wrong is said on the standard error.
 */
#ifndef RIALTO_CMD_DAEMON_H
#define RIALTO_CMD_DAEMON_H

#include "base/err.h"
#include "cmd/args.h"
#include "io/loop.h"

struct daemon;

/* The daemon that `control` of the configuration leads to, running or not; NULL when no socket is
 * there. A configuration that cannot be read does not matter: the default places are looked at. */
struct daemon *daemon_find(const struct args *a);
/* The daemon that runs with this very configuration, for commands that want its servers. */
struct daemon *daemon_find_same(const struct args *a, const struct config *c);
/* The one at this place, which is what the configuration has as `control`. */
struct daemon *daemon_open(const struct args *a, const char *setting);
void daemon_free(struct daemon *d);

/*
 * GET without a body, else POST. 0 with the answer's status and body (valid JSON), or negative when
 * there is no answer. The caller frees the body.
 */
MUST_CHECK int daemon_fetch(struct daemon *d, const char *path, struct span body, int *status,
                            struct buf *answer);

/* Is the status 200? Else what the answer says is said. */
bool daemon_agreed(const struct daemon *d, int status, struct span answer);
/* Append a value to a path's query, whatever is in it. */
void daemon_put_value(struct buf *path, const char *text);

/* --- for commands that go on until they are told to end --- */

/* From now on SIGINT, SIGTERM and SIGHUP (unless ignored) end what is waited for, and the command
 * is to leave. */
void daemon_mind_signals(struct daemon *d);
/* As if a signal had come. */
void daemon_leave(struct daemon *d);
bool daemon_is_over(const struct daemon *d);
/* Wait; false once a signal has come. Callbacks of the loop may come meanwhile. */
bool daemon_pause(struct daemon *d, uint64_t ms);
/* daemon_fetch that does not say why there is no answer. -ECANCELED: a signal came. */
MUST_CHECK int daemon_try(struct daemon *d, const char *path, int *status, struct buf *answer);
struct loop *daemon_loop(const struct daemon *d);

/*
 * One MCP request, in the stateless era, to the servers behind `path`. `name` is what it is about,
 * or empty; `params` are members of its params ("k":v,...), `headers` more header lines. 0 with the
 * raw result; negative, after a message, when there is none.
 */
MUST_CHECK int daemon_request(struct daemon *d, const char *path, const char *method,
                              struct span name, struct span params, struct span headers,
                              struct buf *result);

/* The text of a member of a JSON object; empty when it is absent or no text. */
struct span daemon_text(struct span object, const char *key, struct buf *scratch);

#endif
