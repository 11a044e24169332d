/*
 * own_tasks: the tasks of one agent of the initialize era, as they are reported to it.
 *
 * core/tasks has the tasks of all agents; an agent sees its own: the tasks of its token, or without
 * a token those of its session.
 */
#ifndef RIALTO_MCP_AGENT_OWN_TASKS_H
#define RIALTO_MCP_AGENT_OWN_TASKS_H

#include "core/peer.h"
#include "core/tasks.h"
#include "wire/json.h"

struct own_tasks {
    struct tasks *all;
    const char *owner; /* name of the token's principal; NULL: no token */
    uint64_t session;  /* the session's number */
};

/* Append the params of the notification that a task has changed; false: it is not this agent's
 * task. */
bool own_tasks_put_change(const struct own_tasks *own, const struct event *event,
                          struct buf *params);
/* Append a result of tasks/list: the tasks in their last known states, a hundred per page. The
 * cursor is the id of the last task of the page before; false: that is no task of this agent. */
bool own_tasks_put_page(const struct own_tasks *own, const struct json_slot *cursor,
                        struct buf *page);

#endif
