/*
 * tasks: the tasks that servers run for callers: the owner of each, and its id at the server.
 *
 * Callers know a task by `id`, its server by `own`. Only the owner that opened a task finds it.
 * Callers that need no token have no name: any of them that knows the id finds the task, but only
 * the session that used the id last has the task in its list and is told of its changes. A task is
 * forgotten when its time to live is over, when its server's process ends, or when its owner has
 * too many.
 *
 * The router has one table (router_tasks). The table does no I/O: it gets the time from the
 * router's timers, and hub/graph/task_file.c saves it in a file.
 *
 * Nouns: tasks_, task_.
 */
#ifndef RIALTO_CORE_TASKS_H
#define RIALTO_CORE_TASKS_H

#include "base/list.h"
#include "base/span.h"
#include "base/timers.h"

enum {
    TASKS_MAX = 10000,
    TASKS_BY_ONE = 1000,                 /* of one owner; a new task replaces the oldest */
    TASK_ID_MAX = 512,                   /* bytes of a server's own id */
    TASK_STATE_MAX = 4096,               /* bytes of a task's last known state */
    TASK_RESULT_MAX = 256 * 1024,        /* bytes of one result that we keep ourselves */
    TASKS_RESULTS_MAX = 4 * 1024 * 1024, /* bytes of all such results */
    TASK_ID_UNGUESSABLE = 16,            /* a server's id this long may be shown as it is */
};
/* The longest that a task is kept, even if its server sets no limit. */
#define TASK_LIFE_MAX (7 * 24 * 3600 * UINT64_C(1000))

struct task {
    struct list node; /* in the table, oldest first */
    char *id, *server, *own;
    char *tool;        /* the tool that was called, as the server names it; for people */
    char *owner;       /* the principal; "" when it is not known */
    uint64_t party;    /* the session that used its id last; 0: none still connected */
    uint64_t instance; /* the process that knows `own`; 0: `own` outlives processes */
    uint64_t expires;  /* ms since 1970 */
    bool ended;        /* as far as is known */
    bool cancelled;    /* by its owner; stays set whatever the server says later */
    char *state;       /* raw members, as the family writes them */
    char *result;      /* raw; NULL: the server has it */
};

struct tasks;

struct tasks *tasks_new(struct timers *timers);
void tasks_free(struct tasks *ts);
/* `epoch`: ms since 1970 at time 0 of the timers. To be called before the first task is added. */
void tasks_set_epoch(struct tasks *ts, uint64_t epoch);
/* `fn` is called at each change that should be saved. */
void tasks_on_change(struct tasks *ts, void (*fn)(void *arg), void *arg);
uint64_t tasks_now(const struct tasks *ts);

/* What a new task is made of; everything is copied. */
struct task_facts {
    struct span server, tool, state, result;
    struct span own;   /* empty: no server knows the task, its result is here */
    const char *owner; /* NULL: not known */
    uint64_t party, instance;
    uint64_t life; /* ms from now on; 0: TASK_LIFE_MAX */
    bool plain;    /* callers may see the server's own id, if nobody can guess it and it is free */
};
/* NULL: the server's id, or the result, is too long to be kept. */
struct task *tasks_add(struct tasks *ts, const struct task_facts *facts);
/* Adds a task read from a file, with this id; `expires` is in ms since 1970. */
void tasks_restore(struct tasks *ts, struct span id, const struct task_facts *facts,
                   uint64_t expires, bool cancelled);

/* The owner's task of this id. NULL: there is none. `party` (or 0) becomes the session that used
 * the id last. */
struct task *tasks_find(struct tasks *ts, struct span id, const char *owner, uint64_t party);
/* The task that this process of the server knows by this id. */
struct task *tasks_find_own(const struct tasks *ts, struct span server, uint64_t instance,
                            struct span own);
/* Does this caller see the task in its list, and is it told of changes? */
bool task_is_of(const struct task *t, const char *owner, uint64_t party);
/* In the order they were made; NULL for the first. */
struct task *tasks_next(const struct tasks *ts, const struct task *after);

void task_note(struct tasks *ts, struct task *t, struct span state, bool ended);
void task_cancelled(struct tasks *ts, struct task *t);
/* Does a process of this server work on a task? Then it must not be stopped as idle. */
bool tasks_at_work(const struct tasks *ts, const char *server);
/* The process has ended: forget the tasks that only this process knew. */
void tasks_forget_instance(struct tasks *ts, uint64_t instance);

#endif
