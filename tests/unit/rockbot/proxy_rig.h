/*
 * proxy_rig: the proxy on a real embedded bus, with a fake bridge on the same bus and loop, and a
 * consumer of the proxy's servers.
 *
 * The bridge answers every call with "done" and has a server with one tool and one prompt, unless
 * the test says otherwise.
 */
#ifndef RIALTO_TESTS_PROXY_RIG_H
#define RIALTO_TESTS_PROXY_RIG_H

#include "../bus/bus_test.h"

#include "rockbot/proxy.h"
#include "rockbot/rockbot.h"

struct proxy_rig {
    struct loop *loop;
    struct router *router;
    struct view *view;
    struct bus_host host;
    struct bus_options options;
    char url[160];
    struct bus *ours, *theirs; /* the proxy's connection to the bus, and the bridge's */
    struct bus_proxy *proxy;
    int closed, stopped, admitted;
    bool ours_up, theirs_up;

    /* The bridge. */
    struct bus_sub *invokes, *manages;
    int n_invokes, n_details, n_refreshes;
    struct bus_sub *refreshes;
    bool mute;  /* the bridge answers nothing */
    bool quiet; /* the bridge answers no calls */
    bool holds; /* the next request for details is kept until the test answers it */
    const char *tools;
    struct message_copy last, held;
    bool has_last, has_held;

    /* The consumer. */
    struct peer consumer;
    int n_done;
    struct outcome outcome;
    char text[256];

    struct provider local; /* our own server with the alias of the remote one */
    bool has_local;
};

/* Options with a long patience. */
extern const struct bus_proxy_options rig_patient;
/* The announcement of the server "far". */
extern const char rig_far[];

void rig_set_up(struct proxy_rig *r, const struct bus_proxy_options *options);
void rig_tear_down(struct proxy_rig *r);

/* --- the bridge --- */
void rig_announce(struct proxy_rig *r, const char *servers, const char *removed);
/* Announces the server "far", and waits until its provider is ready. */
struct provider *rig_meet(struct proxy_rig *r);
void rig_answer_invoke(struct proxy_rig *r, const struct message *m);
/* Without `error` the details have this tool. */
void rig_answer_details(struct proxy_rig *r, const struct message *m, const char *tool,
                        const char *error);

/* --- the consumer --- */
struct call *rig_call(struct proxy_rig *r, const char *name);

#endif
