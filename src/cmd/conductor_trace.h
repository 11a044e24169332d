/*
 * conductor_trace: writes a conductor's traffic for people: a file of JSON lines (--trace), a text
 * log (--debug), and a page that shows the traffic live (--serve).
 */
#ifndef RIALTO_CMD_CONDUCTOR_TRACE_H
#define RIALTO_CMD_CONDUCTOR_TRACE_H

#include "acp/command_line.h"
#include "acp/trace.h"
#include "base/err.h"
#include "io/loop.h"

struct conductor_trace;

struct conductor_trace_options {
    const char *file;      /* NULL = none */
    const char *debug_dir; /* NULL = none */
    bool metadata;         /* no content in the text log */
    bool serve;
    const struct command_line *components; /* for the head of the text log */
    size_t n_components;
};

/* NULL with `err` filled when a file cannot be written, or the page cannot be served. */
struct conductor_trace *conductor_trace_new(struct loop *loop,
                                            const struct conductor_trace_options *options,
                                            struct err *err);
/* NULL when nothing is to be traced. */
struct acp_trace *conductor_trace_acp(struct conductor_trace *t);
/* `done` is called, at once or from the loop, when no connection is left. */
void conductor_trace_close(struct conductor_trace *t, void (*done)(void *arg), void *arg);
void conductor_trace_free(struct conductor_trace *t);

#endif
