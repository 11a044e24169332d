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
    struct http_exchange *x;     /* the event stream; NULL once it was cut or ended */
    bool is_events;              /* an event stream: answers come by POST */
    bool offers_only;            /* it may not call tools: CALLER_SITE, CALLER_EXTENSION */
    bool anonymous;              /* it showed no token, when none was required */
    struct principal *principal; /* of the token that it showed, held; or NULL */
    struct stream *stream;       /* a Unix socket, one message a line */
    struct lines *lines;
    const struct dialect *dialect;
    char *origin;
    struct page *page; /* at most one of `page` and `agent` is set */
    struct agent *agent;
    struct join *join; /* NULL, or the server that we connected to */
    struct list in_join;
    struct list in_owner;
    struct deferred end; /* frees the pipe after it was cut or closed */
    uint64_t window;     /* start of the second in which messages are counted */
    unsigned in_window;
};

struct pipe *pipe_new(struct browser *b, const struct dialect *d, struct span origin);
void pipe_free(struct pipe *p);
/* `request`: on an event stream, the message gets the event name of the dialect's requests. */
void pipe_send(struct pipe *p, struct span json, bool request);
/* Writes raw text, such as a comment or a named event, to an event stream; does nothing on other
 * connections. */
void pipe_comment(struct pipe *p, struct span text);
/* Counts a message that was received; false when there were too many in this second. */
bool pipe_counts(struct pipe *p);
void pipe_close(struct pipe *p, uint16_t code, const char *why);
extern const struct ws_events pipe_ws_events;
void pipe_take_stream(struct pipe *p, struct http_exchange *x);
/* Listen on a Unix socket for pages and agents. */
MUST_CHECK int pipe_listen(struct browser *b, const char *address, struct err *err);

#endif
