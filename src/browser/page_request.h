/*
 * page_request: a request of ours to a page: for a call, its list of tools, its user's consent, or
 * a sign of life (a ping).
 *
 * A page may be gone although its connection is open: browsers keep the connection of a page that
 * was left, and answer WebSocket pings for it. So a page is sent a `ping` of its dialect when it
 * has registered, and before a call if nothing came from it just now (a page that is new is not
 * asked again before its first call). A page that has answered one before gets the call only after
 * it answers again; if it does not, the call fails. Any other page gets the call right after the
 * ping, and the call fails if the page has never answered anything and does not answer soon.
 *
 * It is freed when its answer comes, when it is a call or a list and times out, with its
 * connection or page, or by page_request_free.
 */
#ifndef RIALTO_BROWSER_PAGE_REQUEST_H
#define RIALTO_BROWSER_PAGE_REQUEST_H

#include "browser/page.h"

struct page_message;
struct sender;

enum page_request_kind {
    PAGE_REQUEST_CALL,
    PAGE_REQUEST_LIST,
    PAGE_REQUEST_CONSENT,
    PAGE_REQUEST_LIFE
};
struct page_request {
    uint64_t n;      /* "btcp-N" on the wire */
    uint64_t secret; /* "btcp-N-SECRET" if an answer shows nothing but the id; else 0 */
    enum page_request_kind kind;
    struct page *page;
    struct pipe *pipe; /* that the request was sent on; NULL once it is gone */
    struct call *call; /* that waits for the answer; NULL: none */
    struct timer timer;
    struct list in_page;
    struct buf wanted; /* PAGE_REQUEST_CONSENT: raw array of capabilities */
    struct buf held;   /* PAGE_REQUEST_CALL: the request, while it waits for the answer to a ping */
};

/* Sends a request and waits for its answer; NULL when the page has no connection. */
struct page_request *page_request_ask(struct page *p, enum page_request_kind kind,
                                      const char *method, struct span params, uint64_t timeout);
/* Calls a tool. */
struct page_request *page_request_call(struct page *p, struct span params, uint64_t timeout);
#define PAGE_SILENT                                                                                \
    "The page does not answer: it was left, is frozen in the background, or knows no `ping`"
/* Sends a ping, unless one on the newest connection is not answered yet or the dialect has none.
 * The page has `timeout` ms to answer; 0: as long as a call waits for the answer. */
void page_request_ask_life(struct page *p, uint64_t timeout);
/* The page has a new connection, maybe of another document, which need not know `ping`. If the page
 * did, it is asked at once; calls that waited for its answer are sent. */
void page_request_start_anew(struct page *p);
/* The page answered a request of ours; `pong`: it was a ping. Sends the calls that waited. */
void page_request_lives(struct page *p, bool pong);
/* Handles the answer to a request of ours; false: no such request, or it went to another page. */
bool page_request_answer(const struct sender *from, const struct page_message *m);
/* Fails the requests that were sent on this pipe; with NULL, all of the page. */
void page_request_fail_all(struct page *p, const struct pipe *pipe);
/* Tells the page that the request is cancelled, if the page knows that notification. */
void page_request_call_off(const struct page_request *r);
void page_request_free(struct page_request *r);

#endif
