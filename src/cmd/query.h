/*
 * query: a bridge for a command that wants one thing from its servers and then ends.
 *
 * It starts the servers, waits until each has come up or failed, hands over to the command, and
 * stops everything again. The command is a consumer of the core like any agent, without a wire.
 */
#ifndef RIALTO_CMD_QUERY_H
#define RIALTO_CMD_QUERY_H

#include "cmd/cmd.h"
#include "hub/bridge.h"

struct query_run {
    struct loop *loop;
    struct bridge *bridge;
    const struct config *config;
    void *arg;
    int code; /* the return value of query_run; CMD_FINE at first */
    void (*settled)(struct query_run *a);
    struct observer servers;
    struct timer deadline; /* of query_again */
    bool told;             /* `settled` was called, and not query_again since */
    bool finished;
};

/*
 * `settled` is called when each server is up or has failed; it must call query_finish then or
 * later. Output of the servers is shown only with `verbose`.
 */
int query_run(const struct config *config, bool verbose, void (*settled)(struct query_run *a),
              void *arg);
/* For `settled` to call instead of query_finish: it is called again when a server has changed, or
 * after `ms`. */
void query_again(struct query_run *a, uint64_t ms);
void query_finish(struct query_run *a, int code);
/* Prints on stderr which servers could not be started; true if there were any. */
bool query_report_failures(const struct command *self, const struct query_run *a);

#endif
