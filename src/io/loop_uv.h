/*
 * loop_uv: the inside of struct loop, for the files of io/ only.
 *
 * Every callback that libuv makes into io/ begins with loop_enter, so that timers set inside it
 * count from the time the event was seen.
 */
#ifndef RIALTO_IO_LOOP_UV_H
#define RIALTO_IO_LOOP_UV_H

#include "base/buf.h"
#include "io/loop.h"

#include <sys/resource.h>
#include <uv.h>

enum { LOOP_READ_SIZE = 64 * 1024 };

struct guard;
struct http_engine;
struct service;
struct tls_context;

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare; /* runs the end of each turn, right before libuv sleeps */
    uv_idle_t idle;       /* active while work is left after a turn: libuv does not sleep then */
    uv_timer_t timer;     /* serves all of `timers` */
    uv_timer_t cap;       /* ends the wait of loop_step */
    uint64_t armed;       /* when `timer` goes off; UINT64_MAX = not armed */
    struct timers timers;
    struct holdings holdings;
    struct list deferred;  /* of struct deferred: run first at the end of a turn */
    struct list flushes;   /* of struct deferred: run after `deferred` */
    struct list marker;    /* where the work of this turn ends in the list being run */
    struct list signals;   /* of struct loop_signal */
    struct list kin;       /* of struct kin: the children that have not been reaped */
    struct list ended;     /* of struct kin: reaped children whose orphans are not gone yet */
    struct list listeners; /* of struct listener */
    struct list inherited_children; /* of struct inherited_child */
    bool shares_children; /* with the daemon before us: it works on, as a child of ours itself */
    struct guard *guard;  /* kills what children started if we are killed; NULL = no guard */
    struct rlimit core;   /* the core limit we were started with, which children get */
    struct http_engine *http;  /* shared by the HTTP clients; NULL while there are none */
    struct tls_context *trust; /* the system's authorities; NULL until the first wss:// client */
    struct service *service;   /* where sockets may come from; NULL outside of a daemon */
    struct buf spare;          /* an empty buffer with room, for the next stream that writes */
    unsigned threads;          /* that work for us: lookups, passwords */
    bool running, stopping;
    char read_buffer[LOOP_READ_SIZE];
};

static inline void loop_enter(struct loop *l)
{
    l->timers.now = uv_now(&l->uv);
}

/* Like loop_defer, but run after all deferrals: for writing out the output that they queued. */
void loop_flush_later(struct loop *l, struct deferred *d, void (*fn)(struct deferred *d));

#endif
