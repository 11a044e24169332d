/*
 * nats_inside: what the two files of the NATS link share: nats_link.c, the thread and its orders,
 * and nats_connect.c, coming and going.
 */
#ifndef RIALTO_BUS_NATS_INSIDE_H
#define RIALTO_BUS_NATS_INSIDE_H

#include "base/list.h"
#include "bus/nats_link.h"

#include <pthread.h>
#include <stdatomic.h>

struct nats_link {
    const struct nats_link_options *o;
    struct mailbox *box;
    pthread_t thread, home; /* home: the loop's */

    atomic_bool live;        /* there is a socket and no error was found on it */
    atomic_bool wants_write; /* libnats waits for ProcessWriteEvent */
    atomic_uint_fast64_t sockets;
    atomic_bool leaving; /* what libnats says of the connection's end is known */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list orders; /* under the mutex, as all of these */
    bool stop;
    bool let_go; /* the loop has */
    bool closed; /* libnats has said its last word about the connection */

    /* The thread's own. */
    natsConnection *connection; /* NULL = none */
    jsCtx *js;
};

/* Of the thread. (nats_connect.c) */
void nats_link_join_server(struct nats_link *l);
void nats_link_leave_server(struct nats_link *l);

/* From any thread. `fmt` may be NULL. */
void nats_link_tell(struct nats_link *l, enum nats_news_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
