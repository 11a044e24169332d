/*
 * pipe: one connection of a page or an agent: a WebSocket, an event stream or a Unix socket.
 */
#ifndef RIALTO_BROWSER_PIPE_H
#define RIALTO_BROWSER_PIPE_H

#include "browser/inside.h"
#include "io/ws.h"
#include "wire/lines.h"

struct agent;
struct dialect;
struct join;
struct page;

struct pipe {
    struct browser *browser;
    struct list node; /* in browser->pipes */
    struct ws *ws;
    struct http_exchange *x;     /* NULL once it was cut */
    bool is_events;              /* it is an event stream: answers come by POST */
    bool offers_only;            /* it may use nobody's tools: CALLER_SITE, CALLER_EXTENSION */
    bool anonymous;              /* it came when nothing had to be shown, and showed nothing */
    struct principal *principal; /* of the token that it showed, held; or NULL */
    struct stream *stream;       /* a Unix socket, one message a line */
    struct lines *lines;
    const struct dialect *dialect;
    char *origin;
    struct page *page; /* at most one of these two */
    struct agent *agent;
    struct join *join; /* NULL, or a server that we came to ourselves */
    struct list in_join;
    struct list in_owner;
    struct deferred end; /* of one that was cut */
    uint64_t window; /* start of the second that messages are counted in: the last that had one */
    unsigned in_window;
};

struct pipe *pipe_new(struct browser *b, const struct dialect *d, struct span origin);
void pipe_free(struct pipe *p);
/* A request is named as the dialect has it where that matters (event streams). */
void pipe_send(struct pipe *p, struct span json, bool request);
/* Text that stands outside of messages, on an event stream; other connections have no such place.
 */
void pipe_comment(struct pipe *p, struct span text);
/* Counts a message; false when there were more than anybody should send. */
bool pipe_counts(struct pipe *p);
void pipe_close(struct pipe *p, uint16_t code, const char *why);
extern const struct ws_events pipe_ws_events;
void pipe_take_stream(struct pipe *p, struct http_exchange *x);
/* Listen on a Unix socket for pages and agents. */
MUST_CHECK int pipe_listen(struct browser *b, const char *address, struct err *err);

#endif
