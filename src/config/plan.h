/*
 * plan: what must change to get from one configuration to the next.
 *
 * A pure comparison: boot is a plan from nothing, a reload one from the configuration that runs,
 * and only servers that the plan changes are touched. Servers with equal settings are kept; where
 * only filters and limits differ the running server is kept, too, and gets the new ones.
 */
#ifndef RIALTO_CONFIG_PLAN_H
#define RIALTO_CONFIG_PLAN_H

#include "base/buf.h"
#include "config/config.h"

enum plan_act {
    PLAN_KEEP,
    PLAN_ADJUST,  /* the same server with other filters or limits */
    PLAN_REPLACE, /* another server of the same name */
    PLAN_ADD,
    PLAN_REMOVE,
    PLAN_ACTS,
};

struct plan_step {
    enum plan_act act;
    const struct config_server *from, *to; /* NULL: not in that configuration */
};

/* The servers of `to` in order, then those that are removed. Disabled servers do not count. */
struct plan {
    struct plan_step *steps;
    size_t n;
};

/* `from` NULL: from nothing. Both must outlive the plan. */
void plan_make(struct plan *p, const struct config *from, const struct config *to);
void plan_fini(struct plan *p);
/* "kept", "added" ... */
const char *plan_act_name(enum plan_act act);
/* Append the top-level keys that differ but that a reload does not apply, as "names, listen";
 * nothing if there are none. */
void plan_put_other_keys(struct buf *out, const struct config *from, const struct config *to);

#endif
