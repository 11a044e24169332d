/*
 * learn: what a program did, by the output of strace, and the sandbox that would let it do that.
 *
 * Pure: it is fed lines. For cmd/sandbox.c only.
 */
#ifndef RIALTO_CMD_LEARN_H
#define RIALTO_CMD_LEARN_H

#include "io/cage.h"

struct learn {
    const struct cage_rules *rules; /* what is open anyway */
    const char *cwd;                /* where the program was started */
    struct cage_list files;         /* what starting the program needs: open anyway */
    struct cage_list found;         /* folders and files that it used besides */
    struct {
        uint16_t items[64];
        size_t n;
    } ports;
    bool whole_network; /* it did more than connect by TCP */
    bool unix_sockets;
};

/* The options of strace that make these lines, each process in a file of its own. */
extern const char *const learn_strace[];

void learn_line(struct learn *l, struct span line);
/* The value of the key `sandbox`, as YAML with this indentation. */
void learn_put(struct buf *out, const struct learn *l, int indent);
void learn_fini(struct learn *l);

#endif
