/*
 * task_watch: a task_request without a call: tasks/result of a server of the initialize era, kept
 * open to collect the task's questions for an agent of the stateless era, which answers by
 * tasks/update.
 *
 * The provider's `watches` finds it by the server's id of the task. It ends with the answer.
 */
#ifndef RIALTO_MCP_SERVER_TASK_WATCH_H
#define RIALTO_MCP_SERVER_TASK_WATCH_H

#include "mcp/server/task_request.h"

/* The watch of the task, started if there is none; `answers`: what its agent can be asked. */
struct task_request *task_watch_start(struct mcp_provider *p, struct span own, unsigned answers);
/* A question of the server: true if it waits for the tasks/update of an agent. */
bool task_watch_ask(struct mcp_provider *p, const struct mcp_message *m, uint64_t about,
                    const struct ask *ask);
/* The server takes a question back: true if it was a question of a watch. */
bool task_watch_unask(struct mcp_provider *p, struct span id);
/* Send the response to the question with this key, if there is one. */
void task_watch_answer(struct mcp_provider *p, struct task_request *watch, struct span key,
                       struct span response);
/* Free the questions. */
void task_watch_forget(struct task_request *watch);

/* Append the open questions as the member `inputRequests`. */
void task_watch_put_questions(struct buf *out, const struct task_request *watch);
/* Append the answer to tasks/result as a member of the task. */
void task_watch_put_end(struct buf *out, const struct mcp_message *m);
/* Append a result of the initialize era as the member `result` of a task of the stateless era. */
void task_watch_put_result(struct buf *out, struct span result);
/* Tell agents that listen to the task; `whole`: with any result, error or questions. */
void task_watch_tell(struct mcp_provider *p, const struct task *t, struct span members, bool whole);

#endif
