/*
 * http_engine: libcurl's multi interface on our loop, for http_client.c and http_engine.c only.
 *
 * One per loop, while the loop has http_clients. libcurl must not be called from inside its own
 * callbacks, and our callers are called from there: so starting and cancelling a fetch only puts it
 * on a list, and libcurl is called at the end of the turn.
 */
#ifndef RIALTO_IO_HTTP_ENGINE_H
#define RIALTO_IO_HTTP_ENGINE_H

#include "io/http_client.h"
#include "io/loop_uv.h"

#include <curl/curl.h>

struct http_engine {
    struct loop *loop;
    CURLM *multi;       /* NULL without libcurl: every fetch then fails */
    struct err missing; /* why libcurl could not be loaded */
    uv_timer_t timer;
    struct deferred work;
    struct list starting, running, cancelled; /* of struct http_fetch */
    size_t clients;
    bool due;     /* libcurl wants its turn now */
    bool working; /* inside `work` */
    CURL *spare[16];
    size_t n_spare;
};

struct http_client {
    struct http_engine *engine;
    struct list fetches;
};

struct http_fetch {
    struct list node;      /* in one of the engine's lists, which shows the fetch's state */
    struct list in_client; /* in the client's list, until the fetch is done or cancelled */
    struct http_engine *engine;
    const struct http_fetch_events *on;
    void *owner;

    CURL *easy;
    struct curl_slist *headers;
    char *url;
    char *host;                /* for people */
    bool own_trust;            /* the handle was given a `ca` file, so it is not reused */
    const struct reach *reach; /* NULL: the request may go anywhere */
    bool direct;               /* no redirect is followed */
    bool barred;               /* `reach` does not allow the URL or the address */
    bool found;                /* libcurl knows the address of the host, or needs none */
    bool has_body;
    struct buf body;
    char why[CURL_ERROR_SIZE];

    struct buf head;
    bool head_given;
    bool cancelled;
    char *next; /* where the answer being read redirects us to */
    unsigned redirects;
};

/* The engine of this loop, made if there is none. Each ref needs an unref. */
struct http_engine *http_engine_ref(struct loop *l);
void http_engine_unref(struct http_engine *e);
/* A fetch was put on a list: do the work at the end of the turn. */
void http_engine_wake(struct http_engine *e);

/* An easy handle with the options that all fetches share. */
CURL *http_engine_lend(struct http_engine *e);
void http_engine_return(struct http_engine *e, CURL *easy);

/* --- http_client.c --- */
/* libcurl is done with the fetch: end and free it, or follow a redirect. */
void http_fetch_finish(struct http_fetch *f, CURLcode result);
void http_fetch_free(struct http_fetch *f);

#endif
