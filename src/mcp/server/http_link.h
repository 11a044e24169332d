/*
 * http_link: the private structs of an HTTP upstream, shared by the files that implement it:
 * http_upstream.c (opening and closing the link, sessions), http_post.c (messages sent and their
 * answers), http_listen.c (the GET stream of the initialize era), http_old_sse.c (the older
 * transport), http_request.c (headers, and refusals in words).
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
    LINK_OPENING,  /* `open` was called; mcp_provider_connected will follow */
    LINK_FRESH,    /* no session: only the handshake and requests of the stateless era go out */
    LINK_GREETING, /* initialize is under way; other messages wait */
    LINK_READY,    /* the server accepted notifications/initialized */
    LINK_CLOSING,  /* `close` was called; mcp_provider_closed will follow */
};

/* An SSE stream that is read, and what is needed to resume the stream. */
struct sse_source {
    struct sse_decoder decoder;
    bool reading;
    bool fresh; /* an event came since the stream was (re)opened */
    char *last_id;
    int64_t retry; /* ms, from the server's `retry` field; -1 = the server sent none */
};

/* A message to the server, and the HTTP response to it. */
struct server_post {
    struct http_upstream *link;
    struct list node;         /* in the link's `posts`, or in `held` until the handshake is over */
    struct http_fetch *fetch; /* NULL when nothing is on the wire */
    enum rpc_kind kind;
    uint64_t id; /* of a request, else 0 */
    bool initialize, initialized;
    bool greets; /* a request of the handshake, of either era */
    bool modern;
    bool repeatable, repeated; /* mcp_is_repeatable; was sent twice */
    char version[16];
    struct buf lines; /* additional header lines */
    struct buf body;  /* the message, while no fetch has it */

    unsigned epoch;    /* the session in which the message was sent */
    bool with_session; /* the request carried a session id */
    bool resent;       /* sent again, in a later session */
    uint64_t token;    /* number of the token in the request; 0 = none */
    bool resigned;     /* sent again, with another token */
    int status;
    bool json;            /* the answer's Content-Type is JSON */
    bool too_long;        /* the answer is longer than allowed */
    struct buf answer;    /* body of an answer that is not a stream */
    struct buf challenge; /* of an answer 401 or 403 */
    struct sse_source source;
    bool resuming;        /* what is sent is a GET that resumes a broken stream */
    unsigned tries;       /* to resume, since the last event */
    struct timer timer;   /* next try; or cuts a stream that stays open after the answer */
    bool busy, discarded; /* inside a callback; to be freed when the callback ends */
};

/* A standing GET stream: for messages of no request, or in the old transport for all messages. */
struct listening {
    struct http_upstream *link;
    struct http_fetch *fetch; /* NULL when nothing is on the wire */
    struct sse_source source;
    struct timer timer; /* next try */
    struct backoff backoff;
    int status;
    struct buf refusal;   /* body of a response that is not a stream */
    struct buf challenge; /* of an answer 401 or 403 */
    uint64_t token;       /* number of the token of the request; 0 = none */
    bool resigned;        /* opened again with another token, since it last worked */
    bool unsigned_yet;    /* waits for a token */
    bool worked;          /* this session had a stream, or may have had one */
    bool busy, discarded; /* as in struct server_post */
};

struct http_upstream {
    struct loop *loop;
    struct http_upstream_options options;
    struct mcp_provider *provider;
    struct http_client *client; /* NULL when down */
    enum link_phase phase;
    char *url;     /* the address in use: `options.url`, or a path on its host */
    bool pathless; /* the configured address has no path */
    size_t way;    /* index in `ways`; kept when the link goes down */
    size_t tried;  /* ways tried since `open`, besides the first */
    bool old_sse;  /* the transport in use is HTTP+SSE */
    bool answered; /* the server sent an HTTP response since `open` */
    struct timer report;
    char why[256]; /* why the link closed */

    struct buf out;     /* the message that is being written */
    struct list posts;  /* on the wire, or waiting to be resumed */
    struct list held;   /* posts that wait for the end of the handshake */
    struct list unsent; /* posts that wait for a token */
    struct http_signer_wait token_wait;
    bool token_shown; /* a request on this link had a token */
    struct idmap by_id;

    char *session;
    unsigned epoch;   /* counts sessions */
    unsigned forgets; /* sessions lost in a row, with no request answered in between */
    char version[16];
    struct listening *listening; /* NULL when there is no such stream */
    char *endpoint;              /* old transport: the address for POSTs */
    char refusal[128];           /* how the server refused Streamable HTTP */
};

/* --- http_upstream.c --- */
/* The server is gone: drop all messages and streams, and tell the provider. */
void http_upstream_lost(struct http_upstream *u, const char *why);
/* The server cannot be reached in this way: try the next way. False when all were tried. */
bool http_upstream_turn(struct http_upstream *u);
/* The server accepted notifications/initialized: send the messages that waited. */
void http_upstream_ready(struct http_upstream *u);
/* The server does not know our session any more: do the handshake again, or give up. */
void http_upstream_forgotten(struct http_upstream *u);
/* May a request be sent now? False: not before there is a token. The caller puts the post into
 * `unsent`, or sets `unsigned_yet`. */
bool http_upstream_may_send(struct http_upstream *u);
/* The server wants a sign-in: close the link until somebody has signed in. */
void http_upstream_lock(struct http_upstream *u, const char *why);

/* --- http_post.c --- */
/* Send the message, or the GET that resumes its answer; not before there is a token. */
void http_post_send(struct server_post *p);
/* A post of the message in u->out, which is moved into the post. */
struct server_post *http_post_new(struct http_upstream *u, const struct mcp_parcel *parcel);
void http_post_drop(struct server_post *p);

/* --- http_listen.c --- */
void http_listen_start(struct http_upstream *u);
void http_listen_stop(struct http_upstream *u);
/* The stream waited for a token: open it now. */
void http_listen_go_on(struct http_upstream *u);
/* The stream was refused with its token: open it again, once, if there is or will be another token.
 * False if not; `why` then tells people what to do, or is empty. */
bool http_listen_sign_again(struct listening *l, struct buf *why);
/* For both kinds of standing stream. `too_long` may be NULL if the decoder has `skips` set. */
struct listening *http_listen_new(struct http_upstream *u);
void http_listen_feed(struct listening *l, struct span chunk, sse_event_fn *on_event,
                      void (*too_long)(struct listening *l));

/* --- http_old_sse.c --- */
void http_old_sse_start(struct http_upstream *u);

/* --- http_request.c --- */
struct request_spec {
    const char *method;
    struct span lines;   /* additional header lines of this request */
    const char *version; /* protocol revision to declare; may be NULL or empty */
    bool with_session;
    const char *last_id; /* of the stream to resume; NULL for a new stream */
    struct buf *body;    /* taken over */
    uint64_t *token;     /* gets the number of the token in the request; may be NULL */
};
struct http_fetch *http_request_start(struct http_upstream *u, const struct request_spec *spec,
                                      const struct http_fetch_events *on, void *owner);
bool http_request_type_is(const struct http_head *head, const char *type);
/* Keep the WWW-Authenticate headers of a 401 or 403. */
void http_request_keep_challenge(struct buf *out, const struct http_head *head);
/* Ask the signer what to do after a request with this token was refused. */
enum http_signed http_request_resign(struct http_upstream *u, int status, uint64_t token,
                                     struct span challenge, struct buf *why);
/* Does the response say that the server does not know the session? */
bool http_request_says_no_session(int status, struct span body);
/* Append a few words on an HTTP status that is no success, with the message in the body. */
void http_request_put_refusal(struct buf *out, int status, struct span body);

void sse_source_open(struct sse_source *s, size_t max_message);
/* 0, or ERR_SIZE. Id and `retry` of an event are stored before `on_event` is called. */
MUST_CHECK int sse_source_feed(struct sse_source *s, struct span chunk, sse_event_fn *on_event,
                               void *owner);
/* Keeps what is needed to resume the stream. */
void sse_source_close(struct sse_source *s);
void sse_source_fini(struct sse_source *s);

#endif
