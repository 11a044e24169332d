/*
 * trace: the W3C trace context of a message, so that a call is one trace from the agent to the
 * server and back.
 */
#ifndef RIALTO_ROCKBOT_TRACE_H
#define RIALTO_ROCKBOT_TRACE_H

#include "bus/message.h"

enum { TRACE_PARENT_SIZE = 56 /* version 00 as text, and the NUL */, TRACE_MAX_STATE = 512 };

/* Zeroed: none. */
struct trace {
    char parent[TRACE_PARENT_SIZE];
    char state[TRACE_MAX_STATE + 1];
};

/* False, and none, when the message has no traceparent that is right to the letter. */
bool trace_extract(struct trace *t, const struct message *m);
/* Adds nothing when there is none. The headers point into `t`. */
void trace_inject(const struct trace *t, struct message *m);
/* A span of our own within the same trace, with the same flags; none stays none. */
void trace_descend(struct trace *t);

#endif
