/*
 * learn: reads the output of strace and proposes a sandbox that allows what the program did.
 *
 * Pure: the caller reads the files and passes the lines. For cmd/sandbox.c only.
 */
#ifndef RIALTO_CMD_LEARN_H
#define RIALTO_CMD_LEARN_H

#include "io/cage.h"

struct learn {
    const struct cage_rules *rules; /* what a sandbox without `read` and `write` allows */
    const char *cwd;                /* where the program was started */
    struct cage_list files;         /* needed to start the program: allowed without a rule */
    struct cage_list found;         /* other folders and files that the program used */
    struct {
        uint16_t items[64];
        size_t n;
    } ports;
    bool whole_network; /* the program did more than connect by TCP, or to too many ports */
    bool unix_sockets;
};

/* strace and the options that make these lines, a file for each process. */
extern const char *const learn_strace[];

void learn_line(struct learn *l, struct span line);
/* The value of the key `sandbox`, as YAML with this indentation. */
void learn_put(struct buf *out, const struct learn *l, int indent);
void learn_fini(struct learn *l);

#endif
