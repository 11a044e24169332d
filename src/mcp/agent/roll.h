/*
 * roll: the agents that have introduced themselves, on all transports, for operators.
 *
 * A session (session.h) adds its entry when its agent has introduced itself, and removes the entry
 * when the session ends. An operator reads the list and may end a session. The owner of the roll is
 * notified when an entry is added or removed.
 *
 * Nouns: roll_.
 */
#ifndef RIALTO_MCP_AGENT_ROLL_H
#define RIALTO_MCP_AGENT_ROLL_H

#include "base/list.h"
#include "core/principal.h"

struct roll {
    struct list entries;
    void (*changed)(void *arg); /* or NULL */
    void *arg;
};

/* Embedded in the session, which owns all that it points to. */
struct roll_entry {
    struct list node;
    struct roll *roll; /* NULL: not entered */
    const char *label; /* names the session; no secret */
    const char *client, *version, *way, *endpoint,
        *view; /* client is raw; client, endpoint and view may be NULL */
    const struct principal *principal;
    uint64_t since, last, calls; /* `since`, `last`: on the router's clock */
    const size_t *open;          /* calls that have not ended */
    void (*hang_up)(void *owner);
    void *owner;
};

void roll_init(struct roll *r);
/* May be called again when the entry has changed. */
void roll_enter(struct roll *r, struct roll_entry *e);
/* May be called for an entry that was not entered. */
void roll_leave(struct roll_entry *e);
/* The entry after `e`; with NULL the first. NULL: there is none. */
const struct roll_entry *roll_next(const struct roll *r, const struct roll_entry *e);

#endif
