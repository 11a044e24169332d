/*
 * http_conn: one connection of an http_server, for http_server.c, http_conn.c and http_answer.c.
 *
 * http_conn.c is the way in (bytes to requests, timers, refusals), http_answer.c the way out. A
 * connection carries one exchange at a time, embedded in the struct; bytes that the client sends
 * meanwhile wait in `in`. An idle connection holds no parser: the server lends one for each
 * request.
 */
#ifndef RIALTO_IO_HTTP_CONN_H
#define RIALTO_IO_HTTP_CONN_H

#include "io/http_server.h"
#include "io/tls.h"

enum conn_phase {
    CONN_IDLE,     /* between requests */
    CONN_HEAD,     /* a request has begun */
    CONN_BODY,     /* the head of a request is complete */
    CONN_EXCHANGE, /* the handler has the request */
    CONN_CLOSING,  /* the last answer goes out; input is thrown away */
};

enum exchange_state {
    EXCHANGE_OPEN,   /* not answered yet */
    EXCHANGE_STREAM, /* the head of a stream is out */
    EXCHANGE_DONE,   /* answered: no exchange is open */
};

struct http_exchange {
    enum exchange_state state;
    bool no_body; /* an answer to HEAD, or with a status that has no body */
    bool chunked;
    struct buf more; /* header lines from http_exchange_add_headers */
    /* Between http_respond_begin and _end: where in the output the length and the body stand. */
    size_t length_at, body_at;
    void (*gone)(void *owner);
    void *gone_owner;
};

struct http_conn {
    struct list node; /* in the server's list */
    struct http_server *server;
    size_t address;        /* index of the server's address that the client came by */
    struct stream *stream; /* NULL once an upgrade or a pump took the stream over */
    struct http_parser *parser;
    struct buf in; /* bytes behind the request being handled, from `in_at` on */
    size_t in_at;
    struct holding input; /* memory of the body and of `in`, when it is more than INPUT_SMALL */
    struct span rest;     /* inside the handler: the part of this chunk behind the request */
    struct timer timer;   /* may go off before the deadline and is then set again */
    uint64_t deadline;    /* UINT64_MAX = none */
    size_t queued;        /* output queued when the reader was last checked; SIZE_MAX = never */
    struct deferred next; /* parses the next request in `in`; or, after a detach, frees the conn */
    enum conn_phase phase;
    bool handling; /* inside the handler */
    bool head_only, keep_alive, v1_0;
    void *kept; /* the handler's, see http_exchange_keep; or NULL */
    void (*drop)(void *thing);
    bool last;   /* another daemon carries the bytes and ends soon: close after one answer */
    bool by_kin; /* the client is known to be one of our children, or to descend from one */
    struct http_exchange x;
};

/* An address that the server listens on. */
struct http_address {
    struct http_server *server;
    size_t n; /* index in its `addresses` */
    struct listener *listener;
    struct tls_context *tls; /* NULL = no TLS */
};

struct http_server {
    struct loop *loop;
    struct http_server_options options;
    http_handler_fn *handler;
    void *owner;
    struct http_address **addresses;
    size_t n_addresses;
    struct list conns;
    size_t n_conns;
    struct http_parser *spare[16];
    size_t n_spare;
    struct buf nowhere; /* takes bodies of answers whose client is gone */
    bool full;          /* the log was told that max_connections is reached */
    bool closing;
    http_give_fn *give; /* NULL until http_server_leave */
    void *give_arg;
    struct timer leave; /* looks for connections to give away */
    size_t n_pumps;     /* given connections whose bytes we carry */
    bool hurry;
    void (*closed)(void *arg);
    void *closed_arg;
    struct deferred end;
};

struct http_conn *http_conn_new(const struct http_address *at, struct stream *stream);
/* Handle bytes that the client sent before this connection was made. */
void http_conn_feed(struct http_conn *c, struct span early);
/* Give the connection to another daemon, if no request is open on it. */
void http_conn_leave(struct http_conn *c);
/* The server ends: answer the open exchange with 503, and close. */
void http_conn_stop(struct http_conn *c);
/* The answer is complete: go on to the next request, or close. */
void http_conn_answered(struct http_conn *c);
/* Give up the stream; frees the connection at the end of the turn. */
void http_conn_detach(struct http_conn *c);

/* The parsers of a server. */
struct http_parser *http_server_lend_parser(struct http_server *s);
void http_server_return_parser(struct http_server *s, struct http_parser *p);
/* A connection has left `conns`. */
void http_server_conn_gone(struct http_server *s);

#endif
