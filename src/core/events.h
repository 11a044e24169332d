/*
 * events: what happened in the bridge, for watchers that only observe: the metrics and the bus.
 *
 * These are not the events of the verb `event`, which belong to a call and go to its consumer. An
 * event here names the server, the tool and the call, never the arguments. A watcher is called at
 * once, from inside the function that caused the event, so it must not call the router or add and
 * remove watchers: it counts or copies, and acts later.
 *
 * Nouns: events_, happening_.
 */
#ifndef RIALTO_CORE_EVENTS_H
#define RIALTO_CORE_EVENTS_H

#include "base/list.h"
#include "base/span.h"

#include <stdint.h>

enum happening_kind {
    HAPPENED_TOOL_CALLED,         /* a tool was called and did not fail */
    HAPPENED_TOOL_FAILED,         /* a call of a tool failed, in the server or in the bridge */
    HAPPENED_SERVER_FAILED,       /* a server could not be started, or ended by itself */
    HAPPENED_SERVERS_RECONNECTED, /* a server is ready again after a failure */
    HAPPENED_APPROVAL_WANTED,     /* a call waits for an operator (core/approval.h) */
    HAPPENED_KINDS,
};

struct happening {
    enum happening_kind kind;
    struct span server;   /* the alias, or the common name of many servers (provider.h: told_as) */
    struct span which;    /* the alias if `server` is a common name; else empty */
    struct span tool;     /* as the server calls the tool; empty if the event is about no tool */
    uint64_t call;        /* the call's handle, so that events of one call can be matched; or 0 */
    uint64_t duration_ms; /* of the call */
    bool is_error;        /* the tool answered, and said that it had failed */
    struct span error;    /* why the call failed, for people; empty when the call did not fail */
};

/* "mcp.tool_called" and so on. */
const char *happening_name(enum happening_kind kind);

struct watcher {
    struct list node;
    void (*happened)(struct watcher *self, const struct happening *h);
};

enum { EVENTS_MAX_WATCHERS = 8 };

struct events {
    struct list watchers;
    size_t n;
};

void events_init(struct events *e);
/* False when there are too many watchers already. */
bool events_watch(struct events *e, struct watcher *w);
/* May be called for a zeroed watcher that was never added. */
void events_unwatch(struct events *e, struct watcher *w);
void events_publish(struct events *e, const struct happening *h);

#endif
