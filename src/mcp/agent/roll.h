/*
 * roll: the agents that have introduced themselves, of all ways in, for operators.
 *
 * A session (session.h) enters its entry when its agent has said who it is, and takes it out at its
 * end. An operator reads the list and may end a session. The owner of the roll is told when
 * somebody comes or goes.
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
        *view; /* client: raw; may be NULL, as may view */
    const struct principal *principal;
    uint64_t since, last, calls; /* on the router's clock */
    const size_t *open;          /* calls that have not ended */
    void (*hang_up)(void *owner);
    void *owner;
};

void roll_init(struct roll *r);
/* May be called again when something of the entry is new. */
void roll_enter(struct roll *r, struct roll_entry *e);
/* May be called for an entry that was not entered. */
void roll_leave(struct roll_entry *e);
/* NULL for the first. */
const struct roll_entry *roll_next(const struct roll *r, const struct roll_entry *e);

#endif
