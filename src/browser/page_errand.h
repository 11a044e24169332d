/*
 * page_errand: something that a page was asked for: a call, its list of tools, its user's consent,
 * a sign of life.
 *
 * A page may be gone though its connection stands: browsers keep that of a page that was left, and
 * answer for it what the WebSocket protocol asks. So a page that is known to answer such a
 * question, and of which nothing was heard just now, gives a sign of life before it gets a call,
 * and the call fails if none comes. Any other gets the call at once, and is asked if it does not
 * answer soon.
 *
 * Errands are freed by their answers, by their ends in time, with the page, or by page_errand_free.
 */
#ifndef RIALTO_BROWSER_PAGE_ERRAND_H
#define RIALTO_BROWSER_PAGE_ERRAND_H

#include "browser/page.h"

struct page_message;
struct sender;

enum errand_kind { ERRAND_CALL, ERRAND_LIST, ERRAND_CONSENT, ERRAND_LIFE };
struct page_errand {
    uint64_t n;      /* "btcp-N" on the wire */
    uint64_t secret; /* and "-SECRET" where the id is all that an answer shows; else 0 */
    enum errand_kind kind;
    struct page *page;
    struct pipe *pipe; /* NULL once it is gone */
    struct call *call; /* NULL: nobody waits any more */
    struct timer timer;
    struct list in_page;
    struct buf wanted; /* ERRAND_CONSENT: raw array of capabilities */
    struct buf held;   /* ERRAND_CALL: what is sent when the page has given a sign of life */
};

/* Sends a request and waits for its answer; NULL when the page has no connection. */
struct page_errand *page_errand_ask(struct page *p, enum errand_kind kind, const char *method,
                                    struct span params, uint64_t timeout);
/* Calls a tool. */
struct page_errand *page_errand_call(struct page *p, struct span params, uint64_t timeout);
#define PAGE_SILENT                                                                                \
    "The page does not answer: it was left, is frozen in the background, or knows no `ping`"
/* Asks for a sign of life, if none is awaited and the dialect has one. Without one within `timeout`
 * (0: as long as a call waits for it) the page is not there. */
void page_errand_ask_life(struct page *p, uint64_t timeout);
/* The page answered something we asked, with `pong` the question for a sign of life. */
void page_errand_lives(struct page *p, bool pong);
/* The answer to a request of ours; false when it was not this page's to answer. */
bool page_errand_answer(const struct sender *from, const struct page_message *m);
/* Fails the errands that were sent by this pipe; with NULL, all of the page. */
void page_errand_fail_all(struct page *p, const struct pipe *pipe);
/* Tells the page that the answer is not wanted any more, if it would know what to do with that. */
void page_errand_call_off(const struct page_errand *e);
void page_errand_free(struct page_errand *e);

#endif
