/*
 * enclosures: the files that go with an agent's call, out and in (servers.*.attachments).
 *
 * The agent names files of the attachments folder; before the call is opened, their bytes are put
 * into the arguments, or uploaded to the server's host. A tool that is asked to save its file
 * answers with the bytes, or with an id by which they are downloaded; the agent's result is the
 * path of the file. A part of the worker; the struct is in job->enclosures while something is on
 * its way.
 */
#ifndef RIALTO_ROCKBOT_ENCLOSURES_H
#define RIALTO_ROCKBOT_ENCLOSURES_H

#include "rockbot/worker_inside.h"

/*
 * Puts the files of the arguments into job->outgoing. True: there are none, and the call can be
 * opened with `request`. False: `next` is called when they are there, perhaps before this returns;
 * or the job has failed.
 */
bool enclosures_pack(struct job *j, struct view *v, const struct request *request,
                     void (*next)(struct job *j));
/* Saves the file of a result. False: there is none, and the result is the agent's. */
bool enclosures_unpack(struct job *j, struct span result);
/* Gives up an upload or a download that is under way. */
void enclosures_drop(struct job *j);

#endif
