/* The default limits and timeouts of a provider. Used by provider.c when a provider is initialised,
 * and by hub/graph/server.c as the base of a configured policy. */
#include "core/policy.h"

const struct policy policy_default = {
    .timeout = 60 * 1000,
    .ask_timeout = 10 * 60 * 1000,
    .progress_extends = true,
    .timeout_max = 10 * 60 * 1000,
    .concurrency = 0,
    .queue = 1024,
    .start_timeout = 30 * 1000,
    .backoff_first = 500,
    .backoff_max = 60 * 1000,
    .settle = 30 * 1000,
    .eager = true,
    .approve_timeout = 60 * 1000,
};
