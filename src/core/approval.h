/*
 * approval: calls that a person must allow before they reach their server.
 *
 * The router holds a call of a tool that the provider's policy names. The policy also says whose
 * decision counts (enum approve_by), because a consumer that is asked may answer without asking a
 * person. A consumer that may answer and can put a form before a person gets the question as an
 * ordinary ask, so this works for every dialect that has asks. Otherwise the call waits for an
 * operator, who is notified by HAPPENED_APPROVAL_WANTED and decides with approval_decide. A call is
 * refused when nobody decides in time or there is nobody to ask. The name of the decider is logged
 * and shown to the tap.
 *
 * A held call has no slot, and its provider need not run. Once allowed, the call goes on like any
 * other call, with a fresh deadline, but the router never sends it a second time.
 */
#ifndef RIALTO_CORE_APPROVAL_H
#define RIALTO_CORE_APPROVAL_H

#include "base/buf.h"
#include "core/call.h"

enum consent {
    CONSENT_GIVEN,
    CONSENT_DENIED,
    CONSENT_UNASKED, /* the consumer could not ask its user after all */
};

/* How the question is worded in the consumers' protocol, which the core does not know. */
struct approver {
    /* Append the params of the elicitation/create that asks for this held call. */
    void (*put_question)(struct buf *out, const struct call *c);
    /* Does the consumer's answer to the question allow the call? */
    enum consent (*read_answer)(const struct outcome *answer);
    bool has_operator; /* an operator can list held calls and decide about them */
};

/* Without an approver held calls are refused. The struct is borrowed. */
void approval_set_approver(struct router *r, const struct approver *approver);

/* The calls that are held, oldest first: pass NULL for the first. */
struct call *approval_next(const struct router *r, const struct call *c);
/* Was the call's own consumer asked? If not, only an operator can decide. */
bool approval_is_with_consumer(const struct call *c);

enum decided {
    DECIDED,
    DECIDED_UNKNOWN,   /* there is no such call, or the call is not held any more */
    DECIDED_ELSEWHERE, /* the call's consumer was asked, and nobody else may answer */
};

/* An operator's decision. */
struct verdict {
    bool allowed;
    const char *by;   /* for the record: "the operator (control socket)" */
    const char *told; /* who refused, as the consumer reads it: "the operator" */
};
/*
 * The call may end before this returns. A question to the call's consumer is taken back. That is
 * not possible with a consumer that resumes calls by itself (ANSWERS_BY_RETRY): the call goes on
 * when that consumer calls again, unless the consumer's answer is a no.
 */
enum decided approval_decide(struct router *r, uint64_t handle, const struct verdict *verdict);

/* --- for call_open.c and ask.c --- */
bool approval_needed(const struct provider *p, struct span tool);
/* The call must not be touched afterwards: it may have ended. */
void approval_hold(struct call *c, const struct request *request);
void approval_answered(struct call *c, const struct outcome *answer);

#endif
