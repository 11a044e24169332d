/*
 * own_tasks: the tasks of one agent of the initialize era, as it is told of them.
 *
 * core/tasks has those of everybody; an agent sees its own: those of its token, or without one
 * those of its session.
 */
#ifndef RIALTO_MCP_AGENT_OWN_TASKS_H
#define RIALTO_MCP_AGENT_OWN_TASKS_H

#include "core/peer.h"
#include "core/tasks.h"
#include "wire/json.h"

struct own_tasks {
    struct tasks *all;
    const char *owner; /* NULL: nobody with a token */
    uint64_t session;  /* its number */
};

/* Append the params that tell of a change; false: the task is somebody else's. */
bool own_tasks_put_change(const struct own_tasks *own, const struct event *event,
                          struct buf *params);
/* Append a result of tasks/list: the tasks as they were last heard of, a hundred at a time. The
 * cursor is the id of the last one; false: it is none of this agent's. */
bool own_tasks_put_page(const struct own_tasks *own, const struct json_slot *cursor,
                        struct buf *page);

#endif
