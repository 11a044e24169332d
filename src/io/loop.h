/*
 * loop: the one event loop; all of our code runs on its thread.
 *
 * It owns the clock (struct timers), writes out what streams still have queued once per turn right
 * before sleeping, and frees closed objects at the end of the turn, never while a caller may still
 * use them. Only io/ sees libuv.
 */
#ifndef RIALTO_IO_LOOP_H
#define RIALTO_IO_LOOP_H

#include "base/holdings.h"
#include "base/list.h"
#include "base/timers.h"

#include <stdint.h>

struct loop;

struct loop *loop_new(void);
/* Everything on the loop must be closed; runs pending closes first. */
void loop_free(struct loop *l);
/* Raise the limit of open files as far as this process may, to 65536 at most: for daemons, where
 * each client takes one. */
void loop_raise_limit(void);
/*
 * No core dumps from now on, and no other process of the same user may look into our memory or our
 * environment: for programs that know secrets. Children get the core limit from before this call.
 */
void loop_hide_memory(void);
/* Runs until loop_stop, or until nothing is left to wait for. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* One turn, waiting at most `wait_ms`: for tests and for programs that poll. */
void loop_step(struct loop *l, uint64_t wait_ms);

struct timers *loop_timers(struct loop *l);
/* The memory that peers on this loop make us hold. */
struct holdings *loop_holdings(struct loop *l);
uint64_t loop_now(const struct loop *l); /* ms, monotonic, of this turn */

/* Do threads of ours work for this loop? They would not exist in a forked process. */
bool loop_has_threads(const struct loop *l);
/* For a process that was just forked, outside of the loop: makes the loop work there. Negative: it
 * cannot. */
int loop_forked(struct loop *l);

/* Run `fn` at the end of this turn (before output is flushed). The node is embedded in its owner.
 */
struct deferred {
    struct list node;
    void (*fn)(struct deferred *d);
};
void loop_defer(struct loop *l, struct deferred *d, void (*fn)(struct deferred *d));
/* Take back a deferral that has not run; fine if it was never made (zeroed) or has run. */
void loop_undefer(struct deferred *d);

/* Calls `fn` on the loop when the signal arrives. At most one handler per signal. */
int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

#endif
