/*
 * forward: a call that a provider of our own answers by making another call.
 *
 * `call_tool` and `webmcp_call_tool` name a tool in their arguments: the call of that tool (inner)
 * is opened in the same view as any other call, so that filters, approvals, deadlines and the tap
 * apply to it. Its events, asks and end are passed on to the first call (outer). The provider is
 * the consumer of inner calls: it puts these functions into its verbs, and its own `done` calls
 * forward_end first.
 */
#ifndef RIALTO_CORE_FORWARD_H
#define RIALTO_CORE_FORWARD_H

#include "core/router.h"

/* `inner` has the public name of the tool in `v`; the party is set here. The outer call may have
 * ended when this returns. forward.c uses the outer call's provider_data. */
void forward_open(struct provider *p, struct call *outer, struct view *v, struct request *inner);

/* Verbs of the provider, called for the outer call. */
void forward_answer(struct peer *self, struct call *outer, struct span key,
                    const struct outcome *outcome);
void forward_cancel(struct peer *self, struct call *outer, enum failure why);
/* Verbs of the consumer, called for the inner call. */
void forward_event(struct peer *self, struct call *inner, const struct event *event);
void forward_ask(struct peer *self, struct call *inner, const struct ask *ask);
/* The inner call ends: returns the outer call, which the caller must end, or NULL if the outer call
 * was cancelled. `name` gets the name of the tool. */
struct call *forward_end(const struct call *inner, struct buf *name);

#endif
