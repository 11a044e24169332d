/*
 * query: a bridge for a command that wants one thing from its servers and then ends.
 *
 * It starts the servers, waits until each has come up or failed, hands over to the command, and
 * stops everything again. The command is a consumer of the core like any agent, without a wire.
 */
#ifndef RIALTO_CMD_QUERY_H
#define RIALTO_CMD_QUERY_H

#include "cmd/cmd.h"
#include "cmd/progress_line.h"
#include "hub/graph/bridge.h"

struct query_run {
    struct loop *loop;
    struct bridge *bridge;
    const struct config *config;
    void *arg;
    int code; /* the return value of query_run; CMD_FINE at first */
    void (*settled)(struct query_run *a);
    const struct query_how *how;
    struct provider **wanted; /* the servers that were started */
    size_t n_wanted;
    struct progress_line *progress; /* shows progress; stopped before `settled` */
    struct observer servers;
    struct timer deadline; /* of query_again */
    bool told;             /* `settled` was called, and not query_again since */
    bool finished;
};

struct query_how {
    bool verbose; /* show the output of the servers */
    bool quiet;   /* print only errors */
    /* Is this server to be started? NULL: all are. Nothing runs yet: what servers offer is known
     * only from earlier runs. */
    bool (*wants)(const struct query_run *a, const struct provider *p);
};

/* `settled` is called when each server that was started is up or has failed; it must call
 * query_finish then or later. */
int query_run(const struct config *config, const struct query_how *how,
              void (*settled)(struct query_run *a), void *arg);
/* For `settled` to call instead of query_finish: it is called again when a server has changed, or
 * after `ms`. */
void query_again(struct query_run *a, uint64_t ms);
void query_finish(struct query_run *a, int code);
/* For `wants`: may this server have the tool that `rialto tools` prints as `name`? True for the
 * server that had it the last time; if none had, for servers whose tools can have such a name; if
 * there are none, for all: then the name is wrong, and the command looks for the nearest one. */
bool query_may_have(const struct query_run *a, const struct provider *p, struct span name);
/* Prints on stderr which servers could not be started; true if there were any. */
bool query_report_failures(const struct command *self, const struct query_run *a);

#endif
