/*
 * live: GET /api/events, the stream by which a page learns what has changed.
 *
 * Code that knows of a change marks its kind (live_mark); nothing is polled. A timer runs only
 * while something is marked, and tells all readers: for servers, calls and the log what is new, for
 * other lists only that they are to be fetched again. While there are no readers, nothing is marked
 * and the router is not listened to. A reader that does not keep up is cut off: it comes back and
 * fetches the lists.
 *
 * Nouns: live_, news_. Files: live, news.
 */
#ifndef RIALTO_ADMIN_LIVE_H
#define RIALTO_ADMIN_LIVE_H

#include "admin/sight.h"
#include "base/buf.h"

struct admin;
struct live;
struct news;

/* Kinds of changes; each is the name of a message. */
enum live_kind {
    LIVE_SERVERS,
    LIVE_CALLS,
    LIVE_LOG,
    LIVE_APPROVALS,
    LIVE_SESSIONS,
    LIVE_PAGES,
    LIVE_BUS,
    LIVE_TOOLS,
    LIVE_NUMBERS,
    LIVE_CONFIG,
    LIVE_TASKS,
    LIVE_KINDS,
};

struct live *live_new(struct admin *a);
void live_free(struct live *l);
/* `l` is NULL while admin/ is being started or ended. */
void live_mark(struct live *l, enum live_kind kind);

/* --- news.c: what the messages say --- */
struct news *news_new(struct admin *a);
void news_free(struct news *n);
/* Called for the first reader: everything that exists now counts as known. */
void news_begin(struct news *n);
void news_add_call(struct news *n, uint64_t id);
/* Finds what is new of these kinds (bits); returns the kinds of which something is new. */
unsigned news_gather(struct news *n, unsigned kinds);
/* The data of the message; false: nothing that this reader is shown. */
bool news_put(struct buf *out, const struct news *n, enum live_kind kind, const struct sight *s);
/* All readers were told of these kinds. */
void news_forget(struct news *n, unsigned kinds);

#endif
