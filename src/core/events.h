/*
 * events: what happened in the bridge, for those who only look on: the log, the metrics, the bus.
 *
 * This is not the verb `event`, which belongs to a call and goes to its consumer. What is told here
 * names the server, the tool and the call, never its arguments. Watchers are told at once, inside
 * of whatever happened, so they must not call the router or change who watches: they count, write
 * down or copy, and act later.
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
    HAPPENED_TOOL_FAILED,         /* a tool was called and failed, on our side too */
    HAPPENED_SERVER_FAILED,       /* could not be started, or ended by itself */
    HAPPENED_SERVERS_RECONNECTED, /* is ready again after having failed */
    HAPPENED_APPROVAL_WANTED,     /* a call waits for an operator (core/approval.h) */
    HAPPENED_KINDS,
};

struct happening {
    enum happening_kind kind;
    struct span server;   /* the alias, or one name for many of a kind (provider.h: told_as) */
    struct span which;    /* then the alias; else empty */
    struct span tool;     /* as the server calls the tool; empty if the event is about no tool */
    uint64_t call;        /* the call's handle, to bring together what belongs together; or 0 */
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
/* False when there are too many already. */
bool events_watch(struct events *e, struct watcher *w);
/* A zeroed watcher that was never added is fine. */
void events_unwatch(struct events *e, struct watcher *w);
void events_publish(struct events *e, const struct happening *h);

#endif
