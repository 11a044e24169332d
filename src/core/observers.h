/*
 * observers: objects that wait for a change of some provider, called from the loop.
 *
 * An observer is only told that something has changed: a provider has another state or catalog, was
 * halted or resumed, or the last call of a draining provider has ended. The observer itself checks
 * the provider that it waits for.
 *
 * No observer is called from inside the change. The change sets a timer, so `changed` runs when
 * every provider is in order and the function that caused the change is off the stack, and runs
 * once for several changes in one turn of the loop. `changed` may do anything: remove observers,
 * free the objects that they are embedded in, change and remove providers. A new observer is called
 * for the first time in the next turn, even without a change, so it need not check the provider
 * when it is added. After that it is called once for all changes since its last call. A change made
 * while observers are called is reported in the next turn, to the observers that were called before
 * the change.
 *
 * Nouns: observers_, observer_.
 */
#ifndef RIALTO_CORE_OBSERVERS_H
#define RIALTO_CORE_OBSERVERS_H

#include "base/list.h"
#include "base/timers.h"

/* Embedded in the object that waits; zeroed, with `changed` set, before observers_add. */
struct observer {
    struct list node;
    void (*changed)(struct observer *self);
    uint64_t seen; /* how many changes there had been when this observer was last told */
};

struct observers {
    struct timers *timers;
    struct timer tell;
    struct list all, marker;
    uint64_t changes; /* number of changes so far, plus one */
};

void observers_init(struct observers *os, struct timers *timers);
void observers_fini(struct observers *os);
/* May be called for an observer that was added already. */
void observers_add(struct observers *os, struct observer *o);
/* May be called for an observer that was not added. */
void observer_remove(struct observer *o);
/* Some provider has changed: observers are called in the next turn. */
void observers_note(struct observers *os);

#endif
