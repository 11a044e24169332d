/*
 * page: a web page that offers tools, and what we ask of it.
 *
 * A page belongs to a session. One with a key outlives its connections, so that it can come back;
 * one without ends with its connection. A request of ours to a page is an *errand*.
 */
#ifndef RIALTO_BROWSER_PAGE_H
#define RIALTO_BROWSER_PAGE_H

#include "browser/dialect.h"
#include "browser/session.h"

struct page_errand;
struct pipe;

struct tool {
    struct span name; /* the page's */
    struct span raw;
    struct span capabilities; /* raw array, or empty */
    uint64_t timeout;
};

struct page {
    struct browser_session *session;
    struct list node;
    char id[ID_TOKEN_SIZE];
    char *key; /* by which it is known again; NULL: it ends with its connection */
    char *origin;
    char *title, *url; /* as the page says; may be NULL */
    char *name;        /* for people, unique among all pages; NULL before it registers */
    const struct dialect *dialect;
    bool cannot_ask;     /* it was asked for capabilities, and has no way to ask its user */
    bool ours;           /* by rialto.js or webmcp.js: it hears of cancelled calls */
    bool registered;     /* since its newest stream came */
    struct list pipes;   /* struct pipe.in_owner, newest last */
    struct list errands; /* struct page_errand.in_page */
    size_t text_n;
    char *text;         /* the raw list of tools, which the tools point into */
    struct arena arena; /* names that stand there with escapes */
    struct tool *tools;
    size_t n_tools;
    struct timer reread;
    struct page_errand
        *life;          /* the sign of life that it was asked for and has not given; or NULL */
    uint64_t heard_at;  /* when anything last came from it */
    uint64_t came_at;   /* by the newest connection, both of the loop's clock */
    bool has_answered;  /* something that we asked */
    bool answers_pings; /* it has answered one: if it does not now, it is not there */
    bool silent;        /* it does not answer: its tools are not listed */
};

enum { PAGE_CALL_MS = 60 * 1000 }; /* what a call may take, unless the tool says more or less */

void page_free(struct page *p);
/* May a message from this origin be of this page? Keys can be guessed, so one that comes from
 * another site is not. Not every message of a site says where it comes from, and programs have no
 * origin. */
bool page_may_be(const struct page *p, struct span origin);
struct page *page_find(const struct browser_session *s, struct span key, struct span origin);
/* The page of a session by this key, or a new one; NULL when there are too many. */
struct page *page_enter(struct browser_session *s, struct span key, struct span origin,
                        const struct dialect *dialect);
/* The newest connection of the page; NULL: it has none. */
struct pipe *page_pipe(const struct page *p);
/* Is the page connected, and does it answer? */
bool page_is_here(const struct page *p);
void page_attach(struct page *p, struct pipe *pipe);
void page_pipe_gone(struct page *p, struct pipe *pipe);
/* 0, or a negative code with a text of what is wrong. */
MUST_CHECK int page_register(struct page *p, struct span tools, struct err *err);
/* What the page says of itself: {title, url}. A url of another origin than the page's is none. */
void page_introduce(struct page *p, struct span object);
/* Append {name, title, url, origin, session}, what is known of it; for operators (`whole`) also its
 * dialect and the names of its tools. */
void page_put(struct buf *out, const struct page *p, bool whole);
/* What a tool or the params of a call say in `timeout`, within bounds. */
uint64_t page_timeout(struct span object, uint64_t otherwise);
/* Something came from the page. */
void page_heard(struct page *p);

#endif
