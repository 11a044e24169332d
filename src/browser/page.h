/*
 * page: a web page that offers tools.
 *
 * A page belongs to a session. A page with a key outlives its connections, so that it can connect
 * again, until its room is needed; one without is freed with its connection.
 */
#ifndef RIALTO_BROWSER_PAGE_H
#define RIALTO_BROWSER_PAGE_H

#include "browser/dialect.h"
#include "browser/session.h"

struct page_request;
struct pipe;

struct tool {
    struct span name; /* as the page gave it */
    struct span raw;
    struct span capabilities; /* raw array, or empty */
    uint64_t timeout;
};

struct page {
    struct browser_session *session;
    struct list node;
    char id[ID_TOKEN_SIZE];
    char *key; /* identifies it when it reconnects; NULL: it is freed with its connection */
    char *origin;
    char *title, *url; /* as the page says; may be NULL */
    char *name;        /* for people, unique among connected pages; NULL before it registers */
    const struct dialect *dialect;
    bool cannot_ask;      /* it answered capabilities/request with an error */
    bool ours;            /* it runs rialto.js or webmcp.js: we tell it about cancelled calls */
    bool registered;      /* on its newest connection */
    struct list pipes;    /* struct pipe.in_owner, newest last */
    struct list requests; /* struct page_request.in_page */
    size_t text_n;
    char *text;         /* the raw list of tools, which the tools point into */
    struct arena arena; /* names that have escapes in `text` */
    struct tool *tools;
    size_t n_tools;
    struct timer first_ask;    /* for its tools, or, once it has registered, for a sign of life */
    struct page_request *life; /* the ping that is not answered yet; or NULL */
    uint64_t heard_at;         /* loop time when anything last came from it */
    uint64_t came_at;          /* loop time when its newest connection was opened */
    bool has_answered;         /* at least one request of ours, on any connection */
    bool answers_pings; /* since its newest connection: if it does not now, it is not there */
    bool was_called;    /* since its newest connection */
    bool silent;        /* it does not answer: its tools are not listed */
};

enum { PAGE_CALL_MS = 60 * 1000 }; /* what a call may take, unless the tool says more or less */

void page_free(struct page *p);
/* May a message with this origin come from this page? Keys can be guessed, so a message of another
 * site may not. If the page or the message has no origin, it may: browsers do not always send one,
 * and programs have none. */
bool page_may_be(const struct page *p, struct span origin);
struct page *page_find(const struct browser_session *s, struct span key, struct span origin);
/* The page with this key in the session, or a new page; NULL when there are too many. */
struct page *page_enter(struct browser_session *s, struct span key, struct span origin,
                        const struct dialect *dialect);
/* The newest connection of the page; NULL: it has none. */
struct pipe *page_pipe(const struct page *p);
/* Is the page connected, and does it answer? */
bool page_is_here(const struct page *p);
void page_attach(struct page *p, struct pipe *pipe);
void page_pipe_gone(struct page *p, struct pipe *pipe);
/* Replaces the page's tools. 0, or a negative code with the reason in `err`. */
MUST_CHECK int page_register(struct page *p, struct span tools, struct err *err);
/* Takes over the page's {title, url}. A url of another origin than the page's is dropped. */
void page_introduce(struct page *p, struct span object);
/* Append {name, title, url, origin, session}, without unknown members; for operators (`whole`) also
 * its dialect and the names of its tools. */
void page_put(struct buf *out, const struct page *p, bool whole);
/* The `timeout` of a tool or of the params of a call, within bounds; `otherwise` if it has none. */
uint64_t page_timeout(struct span object, uint64_t otherwise);
/* Notes that something came from the page now. */
void page_heard(struct page *p);

#endif
