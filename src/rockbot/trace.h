/*
 * trace: the W3C trace context of a message, so that a call is one trace from the agent to the
 * server and back.
 */
#ifndef RIALTO_ROCKBOT_TRACE_H
#define RIALTO_ROCKBOT_TRACE_H

#include "bus/message.h"

enum { TRACE_PARENT_SIZE = 56 /* version 00 as text, and the NUL */, TRACE_MAX_STATE = 512 };

/* Zeroed: no trace. */
struct trace {
    char parent[TRACE_PARENT_SIZE];
    char state[TRACE_MAX_STATE + 1];
};

/* False, with `t` zeroed, when the message has no valid traceparent. */
bool trace_extract(struct trace *t, const struct message *m);
/* Adds nothing when there is no trace. The headers point into `t`. */
void trace_inject(const struct trace *t, struct message *m);
/* Replaces the span id by a new one, within the same trace and with the same flags. */
void trace_descend(struct trace *t);

#endif
