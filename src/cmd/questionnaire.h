/*
 * questionnaire: a server's questions (elicitation/create), put to the person at the terminal.
 *
 * Questions are asked one after the other, field by field. Typed lines are read from the loop, so
 * calls go on meanwhile, and Ctrl-C works. The end of the input (Ctrl-D) cancels.
 */
#ifndef RIALTO_CMD_QUESTIONNAIRE_H
#define RIALTO_CMD_QUESTIONNAIRE_H

#include "base/span.h"
#include "io/loop.h"

struct questionnaire;

/* `answer` is the result of elicitation/create: {"action":"accept","content":{...}}. */
typedef void questionnaire_done_fn(void *owner, struct span key, struct span answer);

/* NULL when there is no terminal to ask at. */
struct questionnaire *questionnaire_new(struct loop *l, questionnaire_done_fn *done, void *owner);
void questionnaire_free(struct questionnaire *q);
/* Asks after the questions before it are answered. `approval`: whether to make a call, a plain yes
 * or no. `params` are those of elicitation/create, or empty. */
void questionnaire_ask(struct questionnaire *q, struct span key, struct span params, bool approval);
/* Drops the question with this key: it needs no answer any more. */
void questionnaire_drop(struct questionnaire *q, struct span key);

#endif
