/*
 * follow: the configuration file followed while the program runs.
 *
 * It is read anew when it changes, and when somebody says so. A file that cannot be read or has
 * errors changes nothing: the log says what is wrong and all goes on as it was.
 */
#ifndef RIALTO_HUB_FOLLOW_H
#define RIALTO_HUB_FOLLOW_H

#include "base/err.h"
#include "hub/bridge.h"

struct follow;

/* `listen`: what an option put in the place of the file's addresses; NULL when none did. Without a
 * file there is nothing to follow, which follow_now says. */
struct follow *follow_new(struct loop *loop, struct bridge *bridge, const char *listen);
void follow_free(struct follow *f);

/* Read it now. 0 with what changed appended to `report` as a JSON object, or negative. */
MUST_CHECK int follow_now(struct follow *f, struct buf *report, struct err *err);
/* The file was written by ourselves: read it now, and do not take the writing for news. */
MUST_CHECK int follow_own_write(struct follow *f, struct err *err);

#endif
