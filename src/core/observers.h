/*
 * observers: those who wait for providers to change, told from the loop.
 *
 * What is told is only that something has changed: a provider has another state or catalog, was
 * halted or resumed, or the last call of one that is draining has ended. The observer looks at what
 * it waits for.
 *
 * Nobody is told inside of the change. A timer is set for it, so `changed` runs when every provider
 * is in order, the function that caused the change is off the stack, and several changes in one
 * turn are told once. Inside, an observer may do anything: remove itself or others, free what they
 * are embedded in, change and remove providers. One that is added is told for the first time in the
 * next turn, changed or not, so it needs no other place to look; after that, once for what has
 * changed since it was told last. What changes while observers are told is told in the next turn,
 * to those who have not seen it.
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
    uint64_t changes; /* so far, and one */
};

void observers_init(struct observers *os, struct timers *timers);
void observers_fini(struct observers *os);
/* Fine for one that was added already. */
void observers_add(struct observers *os, struct observer *o);
/* Fine for one that was not added. */
void observer_remove(struct observer *o);
/* Something has changed. */
void observers_note(struct observers *os);

#endif
