/*
 * worker: the bridge of RockBot's agents. Their messages become calls of our servers, the ends of
 * the calls become replies, and what the servers offer is announced.
 *
 * It is a consumer of the host's servers, each through the server's own view, so filters and
 * overrides hold for calls too. A message is acknowledged after its reply was confirmed; until then
 * the broker keeps it, and delivers it again if this process dies. Workers of one agent with the
 * same name share the agent's messages; workers with different servers need different names.
 *
 * Nouns: bus_worker_, worker_.
 */
#ifndef RIALTO_ROCKBOT_WORKER_H
#define RIALTO_ROCKBOT_WORKER_H

#include "bus/bus.h"
#include "rockbot/host.h"

struct bus_worker;

struct bus_worker_options {
    /* Names of the agents to serve (rockbot_is_agent_name); "*" among them: all agents. */
    const char *const *agents;
    size_t n_agents;
    /* For several workers with different servers: the groups end in .NAME, and invokes of servers
     * that this worker lacks are left to the others. NULL: all workers have the same servers. */
    const char *name;
    bool approvals;          /* ask on the bus for the approval of answers that decide something */
    bool servers_indexed;    /* announce with McpServersIndexed */
    bool tools_available;    /* announce with McpToolsAvailable */
    unsigned prefetch;       /* calls at once for each agent; 0 = 10 */
    uint64_t max_timeout_ms; /* for calls of agents that would wait longer; 0 = 15 min */
    size_t inline_limit;     /* bytes of a text resource that go into a reply; 0 = 32,000 */
    const char *attachments; /* folder for what is too large for a reply; NULL = none */
    size_t attach_limit;     /* base64 bytes of one block that go into a reply; 0 = 64 KiB */
};

/* Counts for status, metrics and tests. */
struct bus_worker_counts {
    uint64_t invokes;    /* invokes that became a call, or an error at once */
    uint64_t replies;    /* confirmed replies, errors included */
    uint64_t errors;     /* ToolErrors among the replies */
    uint64_t unsent;     /* replies that could not be sent in time */
    uint64_t foreign;    /* messages of agents that we do not serve */
    uint64_t elsewhere;  /* invokes of servers that we do not have (with a name) */
    uint64_t duplicates; /* messages that came again */
    uint64_t stale;      /* invokes whose agent has stopped waiting */
    uint64_t dead;       /* messages that cannot be read */
    uint64_t managed;    /* management requests that were answered */
    uint64_t announced;  /* discovery messages */
};

/* `host` and `options` with all they point to must outlive the worker. Subscribes at once; each
 * server is announced when it comes up, and all of them whenever the bus does. */
struct bus_worker *bus_worker_new(struct loop *loop, struct bus *bus, const struct bus_host *host,
                                  const struct bus_worker_options *options);
/*
 * Takes no more messages, lets calls in flight end for up to 5 s, fails the rest, and replies to
 * each. `closed` is called from the loop, when the worker is freed already. Stop the servers and
 * close the bus only then.
 */
void bus_worker_close(struct bus_worker *w, void (*closed)(void *arg), void *arg);
/* The owner of the bus calls this when the bus is connected (again): announcements may be lost. */
void bus_worker_up(struct bus_worker *w);
/* To be called when servers were added or removed, or their entries changed. The worker observes
 * changes of the servers' states and lists itself. */
void bus_worker_look(struct bus_worker *w);
const struct bus_worker_counts *bus_worker_counts(const struct bus_worker *w);

#endif
