/*
 * inside: what the files of the browser family call of each other; parts.h has the structs.
 */
#ifndef RIALTO_BROWSER_INSIDE_H
#define RIALTO_BROWSER_INSIDE_H

#include "browser/dialect.h"
#include "browser/grants.h"
#include "browser/parts.h"

struct page_message {
    struct span id;     /* raw; empty: none */
    struct span method; /* raw string, or empty */
    struct span params, result, error;
};

/* Who sent a message, for as long as it is handled. */
struct sender {
    struct browser *browser;
    struct pipe *pipe;
    struct browser_session *session;
    struct page *page;
    struct agent *agent;
    const struct dialect *dialect;
    struct span origin;
    struct span session_id;  /* as the POST named it, there or not */
    struct span key;         /* of the page, if it has one */
    struct http_exchange *x; /* the POST that brought it */
    bool held;               /* the POST is answered later */
    bool refused;            /* the reply is an error */
    bool offers_only;        /* it may use nobody's tools: CALLER_SITE, CALLER_EXTENSION */
    struct buf reply;
};

/* --- browser.c --- */
struct browser_session *session_make(struct browser *b, struct span id);
uint64_t wall_ms(void);
void browser_check_ended(struct browser *b);
/* Something was published: agents hear of it soon, and of what else changes until then. */
void browser_news(struct browser *b);
/* There is a pipe to keep alive. */
void browser_keep_alive(struct browser *b);

/* --- session.c --- */
struct browser_session *session_new(struct browser *b, struct span id);
void session_free(struct browser_session *s);
/* Its pages and its agents are told that this was all. */
void session_hang_up(const struct browser_session *s, uint16_t code, const char *why);
void session_touch(struct browser_session *s);
/* Its tools may have changed: they are published. */
void session_changed(struct browser_session *s);
/* The same, but not before a page that only reloads could be back. */
void session_changed_late(struct browser_session *s);
bool session_is_connected(const struct browser_session *s);
size_t session_tool_count(const struct browser_session *s);
/* Bytes of what all of its pages have registered, also those that are away. */
size_t session_tool_bytes(const struct browser_session *s);
/* "" when all are granted, else the first that is not. */
struct span session_lacks(const struct browser_session *s, const struct page *page,
                          const struct tool *tool, struct buf *scratch);

/* --- page.c --- */
struct page *page_new(struct browser_session *s, struct span key, struct span origin,
                      const struct dialect *dialect);
/* Keys can be guessed: one of another site is not it. Not everything that a site sends says whose
 * it is, and programs have no origin. */
bool page_may_be(const struct page *p, struct span origin);
struct page *page_find(const struct browser_session *s, struct span key, struct span origin);
void page_free(struct page *p);
void page_attach(struct page *p, struct pipe *pipe);
/* 0, or a negative code with a text of what is wrong. */
MUST_CHECK int page_register(struct page *p, struct span tools, struct err *err);
struct pipe *page_pipe(const struct page *p);
/* What a tool or the params of a call say in `timeout`, within bounds. */
uint64_t timeout_of(struct span object, uint64_t otherwise);
/* Sends a request and waits for its answer; NULL when the page has no stream. */
struct page_errand *page_ask(struct page *p, enum errand_kind kind, const char *method,
                             struct span params, uint64_t timeout);
/* Tells the page that its answer is not wanted any more, if it would know what to do with that. */
void errand_call_off(const struct page_errand *e);
void errand_free(struct page_errand *e);
/* The answer to a request of ours; false when it was not this page's to answer. */
bool page_answer(const struct sender *from, const struct page_message *m);
void page_pipe_gone(struct page *p, struct pipe *pipe);

/* --- pipe.c --- */
struct pipe *pipe_new(struct browser *b, const struct dialect *d, struct span origin);
void pipe_free(struct pipe *p);
void pipe_send(struct pipe *p, struct span json, bool request);
void pipe_comment(struct pipe *p, struct span text);
/* One message that came by it. */
void pipe_receive(struct pipe *p, struct span text);
/* False when it sends more than anybody should. */
bool pipe_counts(struct pipe *p);
void pipe_close(struct pipe *p, uint16_t code, const char *why);
extern const struct ws_events pipe_ws_events;
void pipe_take_stream(struct pipe *p, struct http_exchange *x);
void put_ascii(struct buf *out, struct span json);

/* --- unix.c --- */
MUST_CHECK int unix_open(struct browser *b, const char *address, struct err *err);

/* --- relay.c --- */
bool relay_is_wanted(const struct http_request *req);
void relay_open(struct browser *b, struct http_exchange *x, const struct http_request *req,
                const struct ws_options *options);

/* --- methods.c --- */
/* False when the text is no message; with a reply that says so, where there is a way to say it. */
bool sender_receive(struct sender *s, struct span text);
/* A connection that has not said so far what it is becomes a page of this session, if any. */
bool sender_become_page(struct sender *s, struct browser_session *session);
/* The page of a session by this key, or a new one; NULL when there are too many. */
struct page *page_enter(struct browser_session *s, struct span key, struct span origin,
                        const struct dialect *dialect);
void put_sessions(struct buf *out, const struct browser *b, bool ids_only);
void reply_error(struct sender *s, struct span id, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void reply_result(struct sender *s, struct span id, struct span result);

/* --- agent.c --- */
struct agent *agent_new(struct browser *b, struct pipe *pipe);
void agent_free(struct agent *a);
/* Of which it hears of changes from now on; NULL: of none. Its calls go on. */
void agent_join(struct agent *a, struct browser_session *s);
/* Also of a session that it has not joined: it hears of that one's answers, not of its changes. */
void agent_call(struct agent *a, struct browser_session *s, struct span id, struct span params);
/* By the id we gave it, or else by its own session. Of one that came back before we noticed that
 * its old stream was lost, the new one. */
struct agent *agent_find(const struct browser *b, struct span client, struct span own);

/* --- files.c --- */
bool is_file(struct span path);
void serve_file(struct http_exchange *x, struct span path);

#endif
