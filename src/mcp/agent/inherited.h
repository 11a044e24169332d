/*
 * inherited: the sessions of the daemon before us, each kept as text until its client comes.
 *
 * A session belongs to a *home*, a text that names endpoint, owner and way in: only a request there
 * finds it. While the old daemon still ends calls, messages about them are passed back to it.
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
/* Take the session out. False: there is none with this id at this home. */
MUST_CHECK bool inherited_take(struct inherited *in, const char *home, struct span id,
                               struct buf *state);
size_t inherited_count(const struct inherited *in);
/* Show those whose clients have not come, with the ms that they have left. */
typedef void inherited_show_fn(void *arg, struct span home, struct span id, struct span state,
                               uint64_t ttl);
void inherited_show(const struct inherited *in, inherited_show_fn *show, void *arg);

/* A parked call: a JSON object with handle, home, id, pid, expires and asks. */
void inherited_add_parked(struct inherited *in, struct span text);
/* Show those whose agents have not come. */
void inherited_show_parked(const struct inherited *in, void (*show)(void *arg, struct span text),
                           void *arg);
/* The agent of the parked call with this handle has come, with its answers (a raw object, or
 * empty). NULL: there is none at this home. Valid as long as this struct. */
const struct going_on *inherited_take_parked(struct inherited *in, const char *home,
                                             uint64_t handle, struct span responses);

/* Where messages go that no call here knows; NULL: nowhere any more. */
void inherited_on_stray(struct inherited *in,
                        void (*stray)(void *arg, uint64_t session, struct span message), void *arg);
/* A session has got such a message. */
void inherited_stray(const struct inherited *in, uint64_t session, struct span message);

#endif
