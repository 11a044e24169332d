/*
 * session_list: the agents that have introduced themselves, on all transports, for operators.
 *
 * A session (session.h) adds its entry when its agent has introduced itself, and removes the entry
 * when the session ends. An operator reads the list and may end a session. The owner of the list is
 * notified when an entry is added or removed.
 *
 * Nouns: session_list_.
 */
#ifndef RIALTO_MCP_AGENT_SESSION_LIST_H
#define RIALTO_MCP_AGENT_SESSION_LIST_H

#include "base/list.h"
#include "core/principal.h"

struct session_list {
    struct list entries;
    void (*changed)(void *arg); /* or NULL */
    void *arg;
};

/* Embedded in the session, which owns all that it points to. */
struct session_list_entry {
    struct list node;
    struct session_list *sessions; /* NULL: not entered */
    const char *label;             /* names the session; no secret */
    const char *client, *version, *way, *endpoint,
        *view; /* client is raw; client, endpoint and view may be NULL */
    const struct principal *principal;
    uint64_t since, last, calls; /* `since`, `last`: on the router's clock */
    const size_t *open;          /* calls that have not ended */
    void (*hang_up)(void *owner);
    void *owner;
};

void session_list_init(struct session_list *r);
/* May be called again when the entry has changed. */
void session_list_enter(struct session_list *r, struct session_list_entry *e);
/* May be called for an entry that was not entered. */
void session_list_leave(struct session_list_entry *e);
/* The entry after `e`; with NULL the first. NULL: there is none. */
const struct session_list_entry *session_list_next(const struct session_list *r,
                                                   const struct session_list_entry *e);

#endif
