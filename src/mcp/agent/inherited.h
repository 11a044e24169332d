/*
 * inherited: the sessions and parked calls of the daemon before us, kept as text until their
 * clients come back.
 *
 * A session belongs to a *home*, a text that names endpoint, owner and way in: only a request that
 * comes there finds the session. While the old daemon still finishes its last calls, messages about
 * those calls are passed back to it.
 */
#ifndef RIALTO_MCP_AGENT_INHERITED_H
#define RIALTO_MCP_AGENT_INHERITED_H

#include "base/buf.h"
#include "base/err.h"
#include "base/timers.h"
#include "core/peer.h"

struct inherited;

struct inherited *inherited_new(struct timers *timers);
void inherited_free(struct inherited *in);
/* `state` is a JSON object (http_session_export); forgotten after `ttl` ms. */
void inherited_add(struct inherited *in, struct span home, struct span id, struct span state,
                   uint64_t ttl);
/* Remove the session and append its state. False: there is none with this id at this home. */
MUST_CHECK bool inherited_take(struct inherited *in, const char *home, struct span id,
                               struct buf *state);
size_t inherited_count(const struct inherited *in);
/* Show the sessions whose clients have not come back; `ttl`: ms until the session expires. */
typedef void inherited_show_fn(void *arg, struct span home, struct span id, struct span state,
                               uint64_t ttl);
void inherited_show(const struct inherited *in, inherited_show_fn *show, void *arg);

/* A parked call: a JSON object with handle, home, id, pid, expires and asks. */
void inherited_add_parked(struct inherited *in, struct span text);
/* Show the parked calls whose agents have not come back. */
void inherited_show_parked(const struct inherited *in, void (*show)(void *arg, struct span text),
                           void *arg);
/* The agent of the parked call with this handle has come back, with its answers (a raw object, or
 * empty). NULL: there is no such call at this home. The result is valid as long as `in`. */
const struct going_on *inherited_take_parked(struct inherited *in, const char *home,
                                             uint64_t handle, struct span responses);

/* Set the function that gets messages which belong to no call here; NULL: they are dropped. */
void inherited_on_stray(struct inherited *in,
                        void (*stray)(void *arg, uint64_t session, struct span message), void *arg);
/* Give that function a message of a session. */
void inherited_stray(const struct inherited *in, uint64_t session, struct span message);

#endif
