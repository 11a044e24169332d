/*
 * policy: how many calls a provider gets at once, and all timeouts of a provider.
 *
 * A call has a slot from the moment it is handed to its provider until it ends; beyond
 * `concurrency` slots calls wait in a queue of at most `queue`. Deadlines count from the moment the
 * call was opened, waiting included: the caller does not care where the time went.
 */
#ifndef RIALTO_CORE_POLICY_H
#define RIALTO_CORE_POLICY_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose decision lets a held call go on (core/approval.h). */
enum approve_by {
    APPROVE_BY_OPERATOR, /* the operator's, never the consumer's */
    APPROVE_BY_CLIENT,   /* the consumer's, never the operator's */
    APPROVE_BY_EITHER,   /* the consumer is asked if it can be; the first answer counts */
};

struct policy {
    uint64_t timeout;      /* ms per call; 0 = none */
    uint64_t ask_timeout;  /* ms for a consumer to answer an ask; replaces the deadline meanwhile */
    bool progress_extends; /* a progress event starts the deadline again */
    uint64_t timeout_max;  /* ms up to which progress extends a call; 0 = no bound */
    size_t concurrency;    /* calls handed over at once; 0 = no limit */
    size_t queue;          /* calls that may wait */
    uint64_t start_timeout; /* ms from start to ready */
    uint64_t backoff_first, backoff_max;
    uint64_t settle;            /* ms of uptime after which earlier failures are forgotten */
    unsigned restart_limit;     /* failures in a row after which restarts end; 0 = no limit */
    bool eager;                 /* kept running; a lazy provider is started by its first call */
    uint64_t idle_stop;         /* ms without a call, then stopped until the next one; 0 = never */
    uint64_t approve_timeout;   /* ms that a call is held for a person's decision */
    const struct span *approve; /* patterns of tools whose calls are held; borrowed */
    size_t n_approve;
    enum approve_by approve_by;
};

extern const struct policy policy_default;

static inline bool policy_admits(const struct policy *p, size_t in_flight)
{
    return p->concurrency == 0 || in_flight < p->concurrency;
}

#endif
