/*
 * agent: a BTCP agent, a consumer of one session. It is freed with its connection, or after the
 * answer to its POST.
 */
#ifndef RIALTO_BROWSER_AGENT_H
#define RIALTO_BROWSER_AGENT_H

#include "browser/session.h"

struct dialect;
struct pipe;

struct agent {
    struct peer peer;
    struct browser *browser;
    struct browser_session *session; /* NULL before it joined one, and for a POST */
    struct list node;                /* in session->agents or browser->posts */
    struct call *standing;
    struct pipe *pipe;       /* NULL for an agent of one POST */
    struct http_exchange *x; /* the POST that waits for the answer; or NULL */
    const struct dialect *dialect;
    char *client; /* the client id in its POSTs; may be NULL */
    char *own;    /* the session id that it invented for itself; may be NULL */
    bool had_pages;
    uint64_t n_pushed;
    struct deferred end;
};

struct agent *agent_new(struct browser *b, struct pipe *pipe);
void agent_free(struct agent *a);
/* From now on the agent is notified of this session's changes; NULL: of none. Calls go on. */
void agent_join(struct agent *a, struct browser_session *s);
/* From now on the agent is notified of changes of all sessions' tools (dialect.put_changed). */
void agent_watch(struct agent *a);
/* Calls a tool. The agent need not have joined the session of the view: it gets the result, but is
 * not notified of that session's changes. */
void agent_call(struct agent *a, struct view *v, struct span id, struct span params);
/* Finds an agent by its client id or, if `client` is empty, by the session id that it invented. If
 * an agent reconnected before the loss of its old stream was noticed: the newer one. */
struct agent *agent_find(const struct browser *b, struct span client, struct span own);

#endif
