/*
 * host: the part of the bridge that agents at one endpoint use: view, limits, and functions to
 * call.
 *
 * Filled in by hub/, and by commands that serve one agent; each agent has a copy.
 *
 * Nouns: mcp_host_.
 */
#ifndef RIALTO_MCP_AGENT_HOST_H
#define RIALTO_MCP_AGENT_HOST_H

#include "core/router.h"
#include "mcp/agent/session_list.h"
#include "mcp/outcome.h"

struct inherited;

struct mcp_host {
    struct router *router;
    struct view *view;
    struct view *legacy_view; /* what agents of the initialize era see; NULL: the same */
    bool plain; /* the view's one provider is plain as well (passage.h); on pipes only */
    /* A raw serverInfo to send instead of our own, for a view that has only tools; may be NULL. */
    const char *server_info;
    enum mcp_errors errors;
    bool redacts; /* a person reads what is sent: secrets are hidden. The stateless era only */
    /* The principal of all agents here, when known (auth.tokens); else NULL. */
    struct principal *principal;
    const char *view_name;         /* of the token's view; may be NULL */
    struct session_list *sessions; /* where agents are entered; NULL: nowhere */
    const char *endpoint;          /* the address of the agents here, for records; may be NULL */
    /* Parked calls of the daemon before us, and the home (inherited.h) of those of the agents here;
     * both may be NULL. */
    struct inherited *inherited;
    const char *home;
    size_t max_batch;   /* messages in a batch */
    size_t max_answers; /* bytes of answers to a batch, before its other requests are refused */
    void *arg;          /* of the functions below; each may be NULL */
    /* Called when an agent has introduced itself; may start lazy providers. */
    void (*wake)(void *arg);
    /*
     * Returns a view of the session's own instead of `shared`, for servers that want an instance
     * per session; NULL if the session needs none. `answers` is what its agent can be asked,
     * `principal` the owner of its token or NULL.
     */
    struct view *(*enter)(void *arg, struct view *shared, struct principal *principal,
                          unsigned answers, void **lease);
    void (*leave)(void *arg, void *lease);
    /* Gets each notification on a pipe first. True: the notification was for the host; the program
     * that carries the agent's lines sent it, not the agent. */
    bool (*told)(void *arg, const struct mcp_message *m);
};

/* Is this a method that MCP does not define, and has the view one server that may know it? */
bool mcp_host_passes(const struct mcp_host *host, const struct mcp_message *m);

#endif
