/*
 * ask: a question (sampling, elicitation, roots) that a provider puts to the consumer of an open
 * call, and the answer.
 *
 * The provider chooses a key for each question and gets the answer under this key by the `answer`
 * verb. A question ends when it is answered, when the provider takes it back, or with the call.
 */
#ifndef RIALTO_CORE_ASK_H
#define RIALTO_CORE_ASK_H

#include "core/peer.h"

/* --- for providers --- */
void ask_put(struct call *c, const struct ask *ask);
/*
 * An ask that belongs to no call, on the standing call of the only consumer that sees this provider
 * (a session with an instance of its own). False, and nothing done, if no consumer or several see
 * the provider.
 */
bool ask_put_standing(struct provider *p, const struct ask *ask);
/* The provider takes back the question with this key: no answer is wanted any more. False if no
 * such question is open. The second function searches all calls of the provider and the standing
 * calls; `said` (or NULL) has the params of the provider's notification and the key's place in
 * them. */
bool ask_take_back(struct call *c, struct span key);
bool ask_take_back_any(struct provider *p, struct span key, const struct event *said);
/*
 * The call that a message of this provider must belong to: the only open call, or, if all open
 * calls are of one party, the only one that has no unanswered ask; else NULL.
 */
struct call *ask_sole_call(const struct provider *p);

/* May a provider ask on this call? */
bool ask_may_come_on(const struct call *c);

/* --- for consumers --- */
void ask_answer(struct call *c, struct span key, const struct outcome *outcome);
/* The verbs `ask` and `event` for a consumer with no person behind it: questions are refused, and
 * events are ignored. */
void ask_nobody(struct peer *self, struct call *c, const struct ask *ask);
void ask_ignore_event(struct peer *self, struct call *c, const struct event *event);

/* --- for call.c --- */
/* The call ends: drop the questions asked on it. */
void ask_forget_all(struct call *c);
/* An instance of the provider is gone: drop the questions that it asked on standing calls, and tell
 * their consumers. */
void ask_forget_standing(struct provider *p);
/* The consumer of a standing call is gone: providers that asked on it are told that no answer will
 * come. */
void ask_refuse_all(struct call *standing);

#endif
