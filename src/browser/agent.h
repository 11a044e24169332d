/*
 * agent: a BTCP agent, a consumer of one session. It ends with its connection, or with the one POST
 * that it came by.
 */
#ifndef RIALTO_BROWSER_AGENT_H
#define RIALTO_BROWSER_AGENT_H

#include "browser/session.h"

struct dialect;
struct pipe;

struct agent {
    struct peer peer;
    struct browser *browser;
    struct browser_session *session; /* NULL before it joined, and for a POST */
    struct list node;                /* in the session */
    struct call *standing;
    struct pipe *pipe;       /* NULL for one that waits for the answer of one POST */
    struct http_exchange *x; /* that POST */
    const struct dialect *dialect;
    char *client;      /* by which its POSTs name it; may be NULL */
    char *own;         /* the session that it made up for itself; may be NULL */
    struct list calls; /* struct agent_call */
    bool had_pages;
    uint64_t n_pushed;
    struct deferred end;
};

struct agent *agent_new(struct browser *b, struct pipe *pipe);
void agent_free(struct agent *a);
/* The agent hears of this session's changes from now on; NULL: of none. Its calls go on. */
void agent_join(struct agent *a, struct browser_session *s);
/* The agent hears of changes of all sessions' tools, in the way of its dialect. */
void agent_watch(struct agent *a);
/* Also into a session that the agent has not joined: it gets the answer, and hears of no changes.
 */
void agent_call(struct agent *a, struct view *v, struct span id, struct span params);
/* By the id we gave the agent, or else by its own session. Of one that came back before we noticed
 * that its old stream was lost, the new one. */
struct agent *agent_find(const struct browser *b, struct span client, struct span own);

#endif
