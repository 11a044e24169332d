/*
 * worker_rig: a worker on a real embedded bus, fake servers, and a fake agent.
 *
 * A tool does what its name says: `echo` returns its arguments, `hold` waits until the test ends
 * the call, and so on (worker_rig.c). All messages on the agent's topics are kept in `got`, in
 * order.
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
    const char *tools; /* words for make_catalog, published when the server starts */
    bool slow_start;   /* rig_server_up is called by the test */
    const char *fails; /* if set, the start fails for this reason */
    int runs, cancels, starts, relists;
    struct call *held[RIG_HELD];
    int n_held;
    struct buf params, meta; /* of the last call */
    struct bus_server_facts facts;
    struct timer later;  /* ends a start or a stop from the loop */
    struct timer relist; /* publishes the list that was requested */
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
    bool hosted_apart; /* set before rig_start: another party hosts the bus, which can be lost */
    struct bus_options host_options;
    struct bus *bus_host; /* the host of the bus, with `hosted_apart` */
    bool up, bus_closed, host_up, host_closed, worker_closed;
    struct router *router;
    struct rig_server servers[RIG_SERVERS];
    size_t n_servers;
    bool hidden[RIG_SERVERS]; /* removed from the host */
    struct bus_host host;
    struct bus_worker_options options;
    struct bus_worker *worker;
    struct rig_message got[RIG_MESSAGES];
    size_t n_got;
    unsigned n_ids;
    char added[512];     /* what the worker asked the host to add */
    const char *refuses; /* if set, the host refuses to add and remove for this reason */
};

/* Begins with an agent "RockBot"; servers and options may be set before rig_start. */
void rig_begin(struct rig *r);
void rig_start(struct rig *r);
/* Subscribes the agent to these topics as well. */
void rig_listen(struct rig *r, const char *pattern);
/* Closes the host of the bus; messages wait. */
void rig_lose_bus(struct rig *r);
/* Opens the host again, and waits until we are connected. */
void rig_regain_bus(struct rig *r);
/* Begins to close the worker; `worker_closed` is set when it is closed. */
void rig_close_worker(struct rig *r);
/* Closes the worker, if it is still open, and everything else. */
void rig_end(struct rig *r);

struct rig_server *rig_server(struct rig *r, const char *alias, const char *tools);
void rig_server_up(struct rig_server *s);
/* Publishes another list of tools. */
void rig_publish(struct rig_server *s, const char *tools);
void rig_finish(struct call *c, const char *text);

/* A message of an agent. Members that are NULL or 0 are left out. */
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

/* The next message on this topic, which may have arrived already; fails the test if none comes. */
const struct message *rig_next(struct rig *r, const char *topic);
size_t rig_count(const struct rig *r, const char *topic);
/* Forgets the messages so far. */
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
