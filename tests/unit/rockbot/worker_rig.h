/*
 * worker_rig: a worker on a real embedded bus, servers that the test plays, and an agent.
 *
 * A server's tools say by their names what they do: `echo` gives back its arguments, `hold` waits
 * until the test ends the call, and so on (worker_rig.c). Everything that reaches the agent's
 * topics is kept in `got`, in order.
 */
#ifndef RIALTO_TESTS_WORKER_RIG_H
#define RIALTO_TESTS_WORKER_RIG_H

#include "../bus/bus_test.h"

#include "rockbot/rockbot.h"
#include "rockbot/worker.h"

enum { RIG_SERVERS = 4, RIG_MESSAGES = 256, RIG_HELD = 16 };

struct rig;

struct rig_server {
    struct provider core;
    struct rig *rig;
    struct view *view;
    struct filter filter;
    struct span denied;
    const char *tools; /* words, published when it starts */
    bool slow_start;   /* rig_server_up is called by the test */
    const char *fails; /* why it cannot be started */
    int runs, cancels, starts, relists;
    struct call *held[RIG_HELD];
    int n_held;
    struct buf params, meta; /* of the last call */
    struct bus_server_facts facts;
    struct timer later;  /* the end of a start or a stop, told from the loop */
    struct timer relist; /* the list that was asked for */
    const char *why;
};

struct rig_message {
    char *topic;
    struct message_copy copy;
};

struct rig {
    struct loop *loop;
    char folder[64], url[128];
    struct bus_options bus_options;
    struct bus *bus;
    bool hosted_apart; /* to be set before rig_start: the bus can go away */
    struct bus_options host_options;
    struct bus *bus_host; /* then who hosts it */
    bool up, bus_closed, host_up, host_closed, worker_closed;
    struct router *router;
    struct rig_server servers[RIG_SERVERS];
    size_t n_servers;
    bool hidden[RIG_SERVERS]; /* the host does not have it any more */
    struct bus_host host;
    struct bus_worker_options options;
    struct bus_worker *worker;
    struct rig_message got[RIG_MESSAGES];
    size_t n_got;
    unsigned n_ids;
    char added[512];     /* what the worker asked the host to add */
    const char *refuses; /* why the host adds and removes nothing */
};

/* An agent "RockBot" listens; servers and options may be set before rig_start. */
void rig_begin(struct rig *r);
void rig_start(struct rig *r);
/* The agent also hears what comes on these topics. */
void rig_listen(struct rig *r, const char *pattern);
/* The bus goes away; what is published waits. */
void rig_lose_bus(struct rig *r);
/* It is back, and we are on it again. */
void rig_regain_bus(struct rig *r);
/* Begins to close the worker: `worker_closed` when it is done. */
void rig_close_worker(struct rig *r);
/* Closes the worker, if it is not, and everything else. */
void rig_end(struct rig *r);

struct rig_server *rig_server(struct rig *r, const char *alias, const char *tools);
void rig_server_up(struct rig_server *s);
/* Another list of tools. */
void rig_publish(struct rig_server *s, const char *tools);
void rig_finish(struct call *c, const char *text);

/* What an agent sends. Everything NULL or 0 is left out. */
struct rig_request {
    const char *id, *source, *reply_to, *correlation, *server, *timeout, *traceparent, *topic,
        *type;
    uint64_t sent_ms;
    const char *body;
};
void rig_send(struct rig *r, const struct rig_request *q);
/* Invoke `tool` with `arguments` (JSON text, quoted here). */
void rig_invoke(struct rig *r, const char *server, const char *tool, const char *arguments);
void rig_manage(struct rig *r, const char *type, const char *body);

/* The next message on this topic, which may be here already; fails the test when none comes. */
const struct message *rig_next(struct rig *r, const char *topic);
size_t rig_count(const struct rig *r, const char *topic);
/* Forget what came so far. */
void rig_forget(struct rig *r);

#define assert_body(m, text) assert_span((m)->body, text)
#define assert_body_has(m, text)                                                                   \
    do {                                                                                           \
        char *body_text = mem_span((m)->body);                                                     \
        if (!strstr(body_text, (text)))                                                            \
            fail_msg("'%s' is not in %s", (text), body_text);                                      \
        mem_free(body_text);                                                                       \
    } while (0)

#endif
