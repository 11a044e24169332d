/*
 * baton: the socket between a daemon and its successor, for messages with descriptors.
 *
 * A message has a JSON object, bytes that are not JSON, and descriptors. Both ends are Rialto
 * processes of the same user: what arrives is trusted, but its size is limited. The order of
 * messages is kept.
 */
#ifndef RIALTO_IO_BATON_H
#define RIALTO_IO_BATON_H

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"

enum { BATON_FDS = 3 };

struct baton;

struct baton_message {
    struct span text; /* a valid JSON object */
    struct span body;
    /* -1 = none. The receiver writes -1 over a descriptor that it keeps; the others are closed. */
    int fds[BATON_FDS];
};

typedef void baton_message_fn(void *owner, struct baton_message *m);

/* Takes the socket over. `ended` is called from the loop when the other process has gone, or has
 * sent an invalid message. */
struct baton *baton_new(struct loop *l, int fd, baton_message_fn *got, void (*ended)(void *owner),
                        void *owner);
void baton_free(struct baton *b);
/* Waits for the next messages and gives them to `got`, outside of the loop. False: none came within
 * `ms`, the other process has gone, or a message is invalid. */
MUST_CHECK bool baton_wait(struct baton *b, int ms);
/* From now on messages come from the loop. */
void baton_start(struct baton *b);
/* Everything is copied; the descriptors stay the caller's. */
void baton_send(struct baton *b, struct span text, struct span body, const int *fds, size_t n_fds);
/* The same for a message {"kind": KIND, members}; `members` may be NULL. */
void baton_tell(struct baton *b, const char *kind, const struct buf *members, struct span body,
                const int *fds, size_t n_fds);
/* Has everything been sent? */
bool baton_is_flushed(const struct baton *b);

#endif
