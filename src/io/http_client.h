/*
 * http_client: HTTP and HTTPS requests on the loop.
 *
 * A client is a party that makes requests; all clients of a loop share one pool of connections,
 * which is made with the first client and freed with the last (and so is libcurl's state). A
 * *fetch* is one request and its answer. Certificates are checked, against the system's authorities
 * or those in SSL_CERT_FILE; proxies are taken from the environment, but never used to reach this
 * machine.
 *
 * Redirects are followed (three at most, method and body kept) on the same host only: headers may
 * carry credentials, which no other host may get. A redirect to another host is handed out like any
 * other answer.
 *
 * A request with a body that may have reached a server is never sent a second time. Callbacks come
 * from the loop, never from inside a function below; inside them everything here may be called. A
 * fetch is gone once `done` returns, or with http_fetch_cancel, after which no callback comes any
 * more.
 *
 * Nouns: http_client_, http_fetch_, http_head_.
 */
#ifndef RIALTO_IO_HTTP_CLIENT_H
#define RIALTO_IO_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"
#include "io/reach.h"

struct http_client;
struct http_fetch;

/* The head of an answer, valid inside the callback. */
struct http_head {
    int status;
    struct span lines; /* "Name: value\r\n" each */
    const char *ip;    /* the IP address that answered, maybe that of a proxy; "" when not known */
};
/* Value of a header (the first of that name, case ignored); p == NULL when absent. */
struct span http_head_value(const struct http_head *head, const char *name);
/* Append the values of all headers of that name, with commas between. */
void http_head_put_all(struct buf *out, const struct http_head *head, const char *name);

struct http_fetch_events {
    void (*head)(void *owner, const struct http_head *head); /* once, before all else */
    void (*chunk)(void *owner, struct span chunk);           /* decoded, as it arrives */
    /*
     * The end. 0: the answer is complete. Otherwise a negative code, a reason for people, and
     * whether the server may have seen the request: `delivered` is false only if no byte of the
     * request was sent. -ECONNREFUSED: nobody listens there.
     */
    void (*done)(void *owner, int code, const char *why, bool delivered);
};

struct http_fetch_spec {
    const char *method;         /* GET, POST, DELETE */
    const char *url;            /* copied, like the headers */
    const char *const *headers; /* "Name: value", NULL ends the list; may be NULL */
    struct buf *body;          /* taken over, which leaves the caller's buf empty; NULL = no body */
    const char *ca;            /* file of authorities to trust (https); NULL = the system's */
    const char *unix_path;     /* reach the host by this Unix socket; NULL = by the network */
    const struct reach *reach; /* where the request may go, redirects included, no proxy; borrowed;
                                  NULL = anywhere */
    bool direct;               /* hand redirects out like any other answer */
};

struct http_client *http_client_new(struct loop *l);
/* Cancels the client's fetches that are under way. */
void http_client_free(struct http_client *c);
/* Does a fetch on this loop wait for the address of its host? libcurl looks it up in a thread,
 * which would not exist in a forked process. */
bool http_client_has_lookups(const struct loop *l);

struct http_fetch *http_fetch_start(struct http_client *c, const struct http_fetch_spec *spec,
                                    const struct http_fetch_events *on, void *owner);
void http_fetch_cancel(struct http_fetch *f);
/* Gives the request's body back, to send it again; only inside `done`. */
struct buf http_fetch_take_body(struct http_fetch *f);

/*
 * The URL that `reference` (absolute or relative) means at `base`, if that has the same host,
 * scheme and port, or goes from http to https on the same host; NULL otherwise. The caller owns the
 * text.
 */
char *http_url_resolve(const char *base, struct span reference);
/* "host:port" of a URL, for people: no path, no user, no password. The caller owns the text. */
char *http_url_host(const char *url);
/* Does the URL lead to this machine? */
bool http_url_is_local(const char *url);

#endif
