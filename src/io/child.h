/*
 * child: a supervised child process with pipes.
 *
 * Started by vfork-like spawning (cheap at any size of the parent) in a process group of its own
 * and without a terminal, told by the kernel to die when we die (PDEATHSIG), watched through a
 * pidfd. Its stdout and stdin are one stream; its stderr goes to the log line by line under the
 * server's name.
 *
 * `exited` is called exactly once, from the loop, after the process is reaped *and* its stream has
 * closed *and* the processes it left behind are gone; the struct is freed when `exited` returns.
 * When the process has ended, its group is killed, and so are processes that left the group
 * (kin.h); we wait a second for them at most. A process that holds the pipe open cannot delay
 * `exited`: the stream is closed after a short drain.
 */
#ifndef RIALTO_IO_CHILD_H
#define RIALTO_IO_CHILD_H

#include "base/buf.h"
#include "base/err.h"
#include "io/stream.h"

struct cage_rules;
struct child;

struct child_spec {
    const char *name;              /* for the log */
    const char *const *argv;       /* argv[0] is looked up in the child's PATH */
    const char *const *env;        /* "K=V" added to (and winning over) the inherited safe set */
    bool inherit_env;              /* pass our whole environment instead of the safe set */
    const char *cwd;               /* NULL = ours, or with a cage the cage's `own` folder */
    const struct cage_rules *cage; /* NULL = none */
};

struct child_events {
    /* `status`: the exit code, or 128 + the signal. `how`: "exited with 1", "killed by SIGKILL". */
    void (*exited)(void *owner, int status, const char *how);
    /* One line of stderr, after it was logged. May be NULL. */
    void (*stderr_line)(void *owner, struct span line);
    /* Bytes from stderr as they arrive, before stderr_line. May be NULL. */
    void (*stderr_bytes)(void *owner, struct span bytes);
};

/* Part of the error text of child_spawn when the kernel did not let a caged program start. */
#define SPAWN_REFUSED "in its sandbox"

/* NULL with `err` filled when the program cannot be started (not found, not executable ...). */
struct child *child_spawn(struct loop *l, const struct child_spec *spec,
                          const struct child_events *on, void *owner, struct err *err);
/*
 * Which file child_spawn would run for `program`, which is argv[0] or the interpreter that a script
 * names: searched in the child's PATH, relative to the child's folder. Returns 0; -EACCES, with a
 * `file` that exists but may not be executed; -ENOENT, without a `file`.
 */
MUST_CHECK int spawn_find(const struct child_spec *spec, const char *program, struct buf *file);
/* The PATH of the child. The caller frees it. */
char *spawn_path(const struct child_spec *spec);
int child_pid(const struct child *c);
/* Like child_spawn, for a process that runs already; takes all of `was` over. For
 * inherited_child.c. */
struct spawned;
struct child *child_adopt(struct loop *l, const struct spawned *was, const char *name,
                          const struct child_events *on, void *owner);
/* End what children leave behind whenever a child ends, as child_spawn does anyway; and do it now.
 */
void child_watch_orphans(struct loop *l);
void child_end_orphans(struct loop *l);
/* What another daemon must know of the process before it gets the pipes: members of an object. */
void child_put_promise(const struct child *c, struct buf *out);
/* Our ends of the child's stdin, stdout and stderr. False: one is closed, or the child is
 * ending. */
MUST_CHECK bool child_show_pipes(const struct child *c, int fds[3]);
/* The process is another daemon's from now on: it is not watched any more, our ends of its pipes
 * are closed, and neither its stream's `closed` nor `exited` is called. */
void child_leave(struct child *c);
/* The child's stdin/stdout. The caller calls stream_start at once; the stream's `closed` comes
 * before `exited`. */
struct stream *child_stream(struct child *c);
/* Close stdin now, SIGTERM to the group after `grace_ms`, SIGKILL after another `grace_ms`. */
void child_stop(struct child *c, uint64_t grace_ms);
/* Has child_stop sent a signal? May still be called inside `exited`. */
bool child_signalled(const struct child *c);

#endif
