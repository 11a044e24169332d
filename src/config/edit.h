/*
 * edit: single servers and tokens put into or taken out of a configuration file, the rest left as
 * it is.
 *
 * The file is JSON or YAML with `mcpServers` (or our `servers`). All bytes outside of the entry are
 * kept, also comments and unknown members.
 */
#ifndef RIALTO_CONFIG_EDIT_H
#define RIALTO_CONFIG_EDIT_H

#include "base/buf.h"
#include "base/err.h"

/* Append `text` with the server `name`, whose raw entry is `entry`, as the last; in a file without
 * servers, in a map of its own. */
MUST_CHECK int edit_add_server(struct buf *out, struct span text, struct span name,
                               struct span entry, struct err *err);
/* Append `text` without the server `name`. */
MUST_CHECK int edit_remove_server(struct buf *out, struct span text, struct span name,
                                  struct err *err);
/* The same for a token in auth.tokens: `entry` is its raw entry, the last from now on. */
MUST_CHECK int edit_add_token(struct buf *out, struct span text, struct span entry,
                              struct err *err);
/* When the last token goes, an empty list stays, which lets nobody in. */
MUST_CHECK int edit_remove_token(struct buf *out, struct span text, struct span name,
                                 struct err *err);
/* Replace the file by `text` atomically; the old file becomes FILE.bak. */
MUST_CHECK int edit_replace_file(const char *path, struct span text, struct err *err);

#endif
