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
    int code; /* what query_run returns; CMD_FINE at first */
    void (*settled)(struct query_run *a);
    struct observer servers;
    struct timer deadline; /* of query_again */
    bool told;             /* `settled` was called, and not query_again since */
    bool finished;
};

/*
 * `settled` is called when the servers are up; it must call query_finish now or later. What the
 * servers print is shown only if `verbose`: people asked for something else.
 */
int query_run(const struct config *config, bool verbose, void (*settled)(struct query_run *a),
              void *arg);
/* For `settled`, instead of query_finish: call it again when a server has changed, or in `ms`. */
void query_again(struct query_run *a, uint64_t ms);
void query_finish(struct query_run *a, int code);
/* Says on stderr which servers could not be started; true if there were any. */
bool query_report_failures(const struct command *self, const struct query_run *a);

#endif
