/*
 * follow: reads the configuration file again while the program runs.
 *
 * The file is read again when it changes, and on demand; so is the file with tokens in the state
 * folder (hub/auth/token_file.h), which belongs to the configuration. A file that cannot be read or
 * has errors changes nothing: the log says what is wrong, and the bridge goes on as before.
 */
#ifndef RIALTO_HUB_GRAPH_FOLLOW_H
#define RIALTO_HUB_GRAPH_FOLLOW_H

#include "base/err.h"
#include "config/problems.h"
#include "config/server_edit.h"
#include "hub/graph/bridge.h"

struct follow;

/* `listen`: a command-line option that overrides the addresses in the file; NULL when not given.
 * Without a configuration file, follow_now fails with a reason. */
struct follow *follow_new(struct loop *loop, struct bridge *bridge, const char *listen);
/* `fn` is called after each configuration that was taken, with that configuration; after one that
 * was not taken, with NULL. */
void follow_on_applied(struct follow *f, void (*fn)(void *arg, const struct config *c), void *arg);
void follow_free(struct follow *f);

/* What is wrong with the file as it was read last; empty when it was taken. */
const struct problems *follow_rejected(const struct follow *f);

/* Read the file now. 0 with the changes appended to `report` as a JSON object, or negative. */
MUST_CHECK int follow_now(struct follow *f, struct buf *report, struct err *err);
/* This program wrote the file: read the file now, and ignore the change that the watch will see. */
MUST_CHECK int follow_own_write(struct follow *f, struct err *err);
/* Change a server in the file and read the file. Without a file, the user's own file is created and
 * followed from then on. A change that is not taken is undone. -ENOENT: there is no such server, or
 * no file. */
MUST_CHECK int follow_edit(struct follow *f, const struct server_edit *e, struct err *err);
/* The file that is followed; NULL without one. */
const char *follow_file(const struct follow *f);

#endif
