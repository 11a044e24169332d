/*
 * doubts: questions of a provider that does not say on which call it asks, such as a stdio server.
 *
 * If all open calls are of one agent, that agent is asked, on one of its calls; if that call ends
 * first, on another. If the calls are of several agents, the question is held until it is known
 * whose it is. Meanwhile no new call is handed over, and a call that the provider answers cannot be
 * the one that asked. When all calls that are left wait for held questions, the last question is
 * refused, and the call that fails because of that is sent again if this is safe, or ends with an
 * error that says to call again (decision 012). So no question reaches an agent that did not cause
 * it, and nothing waits for ever.
 *
 * Once a provider has asked like this, calls of different agents take turns.
 */
#ifndef RIALTO_CORE_DOUBTS_H
#define RIALTO_CORE_DOUBTS_H

#include "core/peer.h"

/* --- for providers --- */
/* Ask the agent that the question belongs to, now or when that agent is known. False, and nothing
 * done, if no agent can be asked: no call is open, and not exactly one consumer sees the provider.
 */
bool doubts_put(struct provider *p, const struct ask *ask);

/* --- for call.c and ask.c --- */
/* The call's provider takes turns: may the call be handed over now? */
bool doubts_let_in(const struct call *c);
/* Is a question of the provider held? */
bool doubts_held(const struct provider *p);
/* The question with this key was answered, refused or taken back. False if it is not a doubt. */
bool doubts_forget(struct provider *p, struct span key);
/* A call of the provider has ended; `answered`: by the provider's own answer. */
void doubts_call_ended(struct provider *p, uint64_t handle, bool answered);
/* The instance that asked is gone. */
void doubts_forget_all(struct provider *p);
/* Did the call fail because its question was refused here? One refusal explains one call only. */
bool doubts_explain(const struct call *c, const struct outcome *outcome);

#endif
