/*
 * http_link: the inside of an HTTP upstream, shared by the files that make it up:
 * http_upstream.c (the link and its life), http_post.c (messages on their way and their answers),
 * http_listen.c (the standing stream of the initialize era), http_old_sse.c (the older transport),
 * http_request.c (headers and words for people).
 *
 * Nouns: http_request_, sse_source_. Files: http_request.
 */
#ifndef RIALTO_MCP_SERVER_HTTP_LINK_H
#define RIALTO_MCP_SERVER_HTTP_LINK_H

#include "base/backoff.h"
#include "base/map.h"
#include "io/http_client.h"
#include "mcp/server/http_upstream.h"
#include "wire/sse.h"

enum link_phase {
    LINK_DOWN,
    LINK_OPENING,  /* `open` was called; mcp_provider_connected is owed */
    LINK_FRESH,    /* no session: only the handshake and the stateless era may pass */
    LINK_GREETING, /* initialize is under way; everything else waits */
    LINK_READY,    /* notifications/initialized was taken */
    LINK_CLOSING,  /* `close` was called; mcp_provider_closed is owed */
};

/* An SSE stream being read, and what is needed to take it up again. */
struct sse_source {
    struct sse_decoder decoder;
    bool reading;
    bool fresh; /* an event came since it was (re)opened */
    char *last_id;
    int64_t retry; /* ms, as the server wishes; -1 = it did not say */
};

/* A message on its way, or its answer. */
struct server_post {
    struct http_upstream *link;
    struct list node;         /* in the link's `posts`, or `held` while it waits */
    struct http_fetch *fetch; /* NULL when nothing is on the wire */
    enum rpc_kind kind;
    uint64_t id; /* of a request, else 0 */
    bool initialize, initialized;
    bool modern;
    bool repeatable, repeated; /* may be sent again even if the server has seen it; was */
    char version[16];
    struct buf lines; /* more header lines */
    struct buf body;  /* while it waits */

    unsigned epoch;    /* the session it was sent in */
    bool with_session; /* that session had an id */
    bool resent;       /* in a session after that */
    int status;
    bool json;         /* the answer says that it is JSON */
    bool too_long;     /* the answer is */
    struct buf answer; /* one that is not a stream */
    struct sse_source source;
    bool resuming;        /* the fetch takes up a stream that broke */
    unsigned tries;       /* at that, in vain */
    struct timer timer;   /* next try; or the end of patience with a stream whose answer came */
    bool busy, discarded; /* inside a callback; to be freed when that ends */
};

/* A stream that stays: for what belongs to no request, or for everything in the old transport. */
struct listening {
    struct http_upstream *link;
    struct http_fetch *fetch; /* NULL when nothing is on the wire */
    struct sse_source source;
    struct timer timer; /* next try */
    struct backoff backoff;
    int status;
    struct buf refusal;   /* what the server says instead of a stream */
    bool worked;          /* there is or may be a stream to be had in this session */
    bool busy, discarded; /* as in struct server_post */
};

struct http_upstream {
    struct loop *loop;
    struct http_upstream_options options;
    struct mcp_provider *provider;
    struct http_client *client; /* NULL when down */
    enum link_phase phase;
    char *url;     /* where the server is looked for now */
    bool pathless; /* the configured address has no path */
    size_t way;    /* in the list of ways to the server; stays when the link goes down */
    size_t tried;  /* ways since `open`, besides the first */
    bool old_sse;  /* the transport in use */
    bool answered; /* the server has said something since `open` */
    struct timer report;
    char why[256]; /* of the end */

    struct buf out;    /* the message being written */
    struct list posts; /* on the wire or about to be taken up again */
    struct list held;  /* wait for the end of the handshake */
    struct idmap by_id;

    char *session;
    unsigned epoch;   /* counts sessions */
    unsigned forgets; /* sessions lost in a row without one call answered */
    char version[16];
    struct listening *listening; /* NULL when there is none */
    char *endpoint;              /* old transport: where to post */
    char refusal[128];           /* why the newer transport was not taken */
};

/* --- http_upstream.c --- */
/* The server is gone: drop everything, report it. */
void http_upstream_lost(struct http_upstream *u, const char *why);
/* The server is not to be had in this way: take the next one. False when all were tried. */
bool http_upstream_turn(struct http_upstream *u);
/* notifications/initialized was taken: what waited may go. */
void http_upstream_ready(struct http_upstream *u);
/* The server does not know our session any more. */
void http_upstream_forgotten(struct http_upstream *u);

/* --- http_post.c --- */
void http_post_send(struct server_post *p);
/* The message in u->out. */
struct server_post *http_post_new(struct http_upstream *u, const struct mcp_parcel *parcel);
void http_post_drop(struct server_post *p);

/* --- http_listen.c --- */
void http_listen_start(struct http_upstream *u);
void http_listen_stop(struct http_upstream *u);
/* For both kinds of stream. */
struct listening *http_listen_new(struct http_upstream *u);
void http_listen_feed(struct listening *l, struct span chunk, sse_event_fn *on_event,
                      void (*too_long)(struct listening *l));

/* --- http_old_sse.c --- */
void http_old_sse_start(struct http_upstream *u);

/* --- http_request.c --- */
struct request_spec {
    const char *method;
    struct span lines;   /* header lines of this request */
    const char *version; /* protocol revision to declare; may be NULL or empty */
    bool with_session;
    const char *last_id; /* of a stream to be taken up again */
    struct buf *body;    /* taken over */
};
struct http_fetch *http_request_start(struct http_upstream *u, const struct request_spec *spec,
                                      const struct http_fetch_events *on, void *owner);
bool http_request_type_is(const struct http_head *head, const char *type);
/* Does it say that the session is not known? */
bool http_request_says_no_session(int status, struct span body);
/* A few words on an HTTP status that is no success, with what the body says about it. */
void http_request_put_refusal(struct buf *out, int status, struct span body);

void sse_source_open(struct sse_source *s, size_t max_message);
/* 0, or ERR_SIZE; whatever stands in the events is remembered before `on_event` is called. */
MUST_CHECK int sse_source_feed(struct sse_source *s, struct span chunk, sse_event_fn *on_event,
                               void *owner);
/* Keeps what is needed to take it up again. */
void sse_source_close(struct sse_source *s);
void sse_source_fini(struct sse_source *s);

#endif
