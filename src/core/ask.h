/*
 * ask: a question of a provider to the consumer of one of its calls (sampling, elicitation, roots),
 * up to its answer.
 *
 * The provider names each question by a key of its own and hears the answer under this key, by its
 * `answer` verb. A question ends with its answer, when the provider takes it back, or with its
 * call.
 */
#ifndef RIALTO_CORE_ASK_H
#define RIALTO_CORE_ASK_H

#include "core/peer.h"

/* --- for providers --- */
void ask_put(struct call *c, const struct ask *ask);
/*
 * An ask that belongs to no call, on the standing call of the only consumer that sees this provider
 * (a session with an instance of its own). False, and nothing done, if there are none or several.
 */
bool ask_put_standing(struct provider *p, const struct ask *ask);
/* The provider takes back the question with this key: no answer is wanted any more. False if no
 * such question is open. The second looks at all calls of the provider and at standing calls;
 * `said` (or NULL) has the params that the provider said so with, and the key's place. */
bool ask_take_back(struct call *c, struct span key);
bool ask_take_back_any(struct provider *p, struct span key, const struct event *said);
/*
 * The call that an unattributed ask of this provider belongs to: the only one open, or the only one
 * of its party that does not wait for an answer itself; else NULL.
 */
struct call *ask_sole_call(const struct provider *p);

/* --- for consumers --- */
void ask_answer(struct call *c, struct span key, const struct outcome *outcome);

/* --- for call.c --- */
/* The call ends: drop the questions asked on it. */
void ask_forget_all(struct call *c);
/* The same for what a provider that is gone asked on standing calls. */
void ask_forget_standing(struct provider *p);
/* The consumer of a standing call is gone: providers that asked on it are told that no answer will
 * come. */
void ask_refuse_all(struct call *standing);

#endif
