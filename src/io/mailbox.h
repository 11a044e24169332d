/*
 * mailbox: how the threads of a library hand things over to the loop.
 *
 * Our code runs on the loop's thread alone. A library with threads of its own (libnats) posts what
 * it has to say into a mailbox; the owner gets it from the loop, one mail at a time, each sender's
 * in the order it posted them. What is posted belongs to the mailbox until it is delivered, and to
 * the owner from then on.
 */
#ifndef RIALTO_IO_MAILBOX_H
#define RIALTO_IO_MAILBOX_H

#include "base/list.h"
#include "io/loop.h"

struct mailbox;

/* Embedded at the head or anywhere in what is handed over. */
struct mail {
    struct list node;
};

struct mailbox_events {
    /* From the loop. Everything here may be called inside. */
    void (*deliver)(void *owner, struct mail *m);
    /* What mailbox_close finds undelivered, to be freed; called from inside mailbox_close. */
    void (*discard)(void *owner, struct mail *m);
};

/* An open mailbox keeps the loop running. `on` must outlive the mailbox. */
struct mailbox *mailbox_new(struct loop *l, const struct mailbox_events *on, void *owner);
/* From any thread, also from the loop's; never blocks for longer than it takes to link a list. */
void mailbox_post(struct mailbox *b, struct mail *m);
/*
 * Nothing is delivered from here on. Threads that might still post must have ended before: the
 * mailbox is gone when this returns.
 */
void mailbox_close(struct mailbox *b);

#endif
