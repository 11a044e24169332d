/*
 * worker: the bridge of RockBot's agents. Their messages become calls of our servers, the ends of
 * the calls become replies, and what the servers offer is announced.
 *
 * It is a consumer of the host's servers, each through the server's own view, so filters and
 * overrides hold for calls too. A message is acknowledged after its reply was confirmed; until then
 * it is in the broker's hands, and comes again if we die. Who serves the same agent with the same
 * name shares the agent's messages; workers of one agent that have different servers need a name of
 * their own each.
 *
 * Nouns: bus_worker_, worker_.
 */
#ifndef RIALTO_ROCKBOT_WORKER_H
#define RIALTO_ROCKBOT_WORKER_H

#include "bus/bus.h"
#include "rockbot/host.h"

struct bus_worker;

struct bus_worker_options {
    /* Whom to serve (rockbot_is_agent_name); "*" among them: everybody. */
    const char *const *agents;
    size_t n_agents;
    /* One of several workers that have different servers: its groups end in .NAME, and invokes of
     * servers that it does not have are somebody else's. NULL: it is the only kind. */
    const char *name;
    bool servers_indexed;    /* announce with McpServersIndexed */
    bool tools_available;    /* announce with McpToolsAvailable */
    unsigned prefetch;       /* calls at once for each agent; 0 = 10 */
    uint64_t max_timeout_ms; /* for calls of agents that would wait longer; 0 = 15 min */
    size_t inline_limit;     /* bytes of a text resource that go into a reply; 0 = 32,000 */
    const char *attachments; /* folder for what is too large for a reply; NULL = none */
    size_t attach_limit;     /* base64 bytes of one block that go into a reply; 0 = 64 KiB */
};

/* For people and tests: how it went so far. */
struct bus_worker_counts {
    uint64_t invokes;    /* that became a call, or an error at once */
    uint64_t replies;    /* confirmed, errors included */
    uint64_t errors;     /* ToolErrors among them */
    uint64_t unsent;     /* replies that could not be sent in time */
    uint64_t foreign;    /* messages of agents that we do not serve */
    uint64_t elsewhere;  /* invokes of servers that we do not have (with a name) */
    uint64_t duplicates; /* messages that came again */
    uint64_t stale;      /* invokes nobody waits for any more */
    uint64_t dead;       /* messages nobody can read */
    uint64_t managed;    /* management requests that were answered */
    uint64_t announced;  /* discovery messages */
};

/* `host` and `options` with all they point to must outlive the worker. Subscribes at once; servers
 * are announced as they come up, and all of them whenever the bus does. */
struct bus_worker *bus_worker_new(struct loop *loop, struct bus *bus, const struct bus_host *host,
                                  const struct bus_worker_options *options);
/*
 * Takes no more messages, lets calls in flight end for up to 5 s, fails the rest, and sees to it
 * that each is answered. `closed` is called from the loop; the worker is gone when it returns. Stop
 * servers, and close the bus, only then.
 */
void bus_worker_close(struct bus_worker *w, void (*closed)(void *arg), void *arg);
/* The bus has one owner, who passes on that it is (again) connected: what was said may be lost. */
void bus_worker_up(struct bus_worker *w);
/* Servers were added or removed, or their entries changed. What they do themselves it observes. */
void bus_worker_look(struct bus_worker *w);
const struct bus_worker_counts *bus_worker_counts(const struct bus_worker *w);

#endif
