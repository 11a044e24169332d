/*
 * task_file: the table of tasks in a file, so that a task is found again after the bridge has been
 * restarted: tasks.json in the state folder, readable for its owner alone.
 *
 * Only tasks that can outlive us are in it: those of servers that we did not start, and results
 * that we keep ourselves. The file is replaced a moment after each change, and at the end.
 */
#ifndef RIALTO_HUB_GRAPH_TASK_FILE_H
#define RIALTO_HUB_GRAPH_TASK_FILE_H

#include "core/tasks.h"

struct task_file;

/* Reads the file, if there is one. */
struct task_file *task_file_open(struct timers *timers, struct tasks *tasks);
/* Another daemon writes the file from now on. */
void task_file_leave(struct task_file *f);
/* Writes what is not written yet. The table must still be there. */
void task_file_close(struct task_file *f);

#endif
