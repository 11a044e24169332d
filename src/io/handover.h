/*
 * handover: the socket between a daemon and its successor, for messages with descriptors.
 *
 * A message has a JSON object, bytes that are not JSON, and descriptors. Both ends are Rialto
 * processes of the same user: what arrives is trusted, but its size is limited. The order of
 * messages is kept.
 */
#ifndef RIALTO_IO_HANDOVER_H
#define RIALTO_IO_HANDOVER_H

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"

enum { HANDOVER_FDS = 3 };

struct handover;

struct handover_message {
    struct span text; /* a valid JSON object */
    struct span body;
    /* -1 = none. The receiver writes -1 over a descriptor that it keeps; the others are closed. */
    int fds[HANDOVER_FDS];
};

typedef void handover_message_fn(void *owner, struct handover_message *m);

/* Takes the socket over. `ended` is called from the loop when the other process has gone, or has
 * sent an invalid message. */
struct handover *handover_new(struct loop *l, int fd, handover_message_fn *got,
                              void (*ended)(void *owner), void *owner);
void handover_free(struct handover *b);
/* Waits for the next messages and gives them to `got`, outside of the loop. False: none came within
 * `ms`, the other process has gone, or a message is invalid. */
MUST_CHECK bool handover_wait(struct handover *b, int ms);
/* From now on messages come from the loop. */
void handover_start(struct handover *b);
/* Everything is copied; the descriptors stay the caller's. */
void handover_send(struct handover *b, struct span text, struct span body, const int *fds,
                   size_t n_fds);
/* The same for a message {"kind": KIND, members}; `members` may be NULL. */
void handover_tell(struct handover *b, const char *kind, const struct buf *members,
                   struct span body, const int *fds, size_t n_fds);
/* Has everything been sent? */
bool handover_is_flushed(const struct handover *b);

#endif
