/*
 * event_store: the latest events of a session's SSE streams, kept for clients whose connection
 * broke.
 *
 * Every event has a number that is unique in the session; its id on the wire, TAG-STREAM-NUMBER,
 * also names the stream, so a client that presents the last id it saw gets the later events of that
 * stream and none of other streams. Each session has its own tag, so that an id of another session
 * is recognised. The store is bounded in bytes and in events, the oldest are dropped first; when
 * too much is held for all peers together (base/holdings.h), the store may drop all events.
 */
#ifndef RIALTO_MCP_AGENT_EVENT_STORE_H
#define RIALTO_MCP_AGENT_EVENT_STORE_H

#include "base/buf.h"
#include "base/holdings.h"
#include "base/list.h"

enum { EVENT_STORE_BYTES = 256 * 1024, EVENT_STORE_EVENTS = 1000 };

struct event_id {
    uint64_t stream;
    uint64_t number;
};

/* Embedded in its session. */
struct event_store {
    struct list events; /* oldest first */
    size_t n, bytes;
    struct holding held;
    uint64_t last; /* number of the newest event */
    uint32_t tag;
};

void event_store_init(struct event_store *s, struct holdings *holdings);
void event_store_fini(struct event_store *s);

/* A fresh id on this stream. */
struct event_id event_store_next(struct event_store *s, uint64_t stream);
void event_store_put_id(const struct event_store *s, struct buf *out, struct event_id id);
/* False for a text that is no id given out by this store. */
bool event_store_parse(const struct event_store *s, struct span text, struct event_id *id);

/*
 * Keep the bytes of an event. An event that no client has received (`missed`) is kept at any size
 * while it is the newest; any other is not kept if it alone would fill the store.
 */
void event_store_add(struct event_store *s, struct event_id id, struct span event, bool missed);
/* Write the store as members of an object, and read it back. The other daemon numbers new events
 * far above ours. */
void event_store_export(const struct event_store *s, struct buf *out);
void event_store_import(struct event_store *s, struct span state);
/* Append the events after this id on its stream; returns how many. */
size_t event_store_replay(const struct event_store *s, struct event_id after, struct buf *out);

#endif
