/*
 * edit: single entries of a document put in, taken out, renamed or set, every other byte kept.
 *
 * A document is JSON (comments and trailing commas are fine), YAML or TOML: a configuration of ours
 * or of a host program. The result of each edit is read again and compared with the expected tree;
 * if they differ, the edit is refused and the document stays as it is. An entry that was put in and
 * is taken out again leaves the same bytes as before, unless its place keeps_empty.
 */
#ifndef RIALTO_CONFIG_EDIT_H
#define RIALTO_CONFIG_EDIT_H

#include "base/buf.h"
#include "base/err.h"

enum edit_format { EDIT_JSON, EDIT_YAML, EDIT_TOML };

enum { EDIT_DEPTH = 4 };

/* The map or list that an entry is in. */
struct edit_place {
    const char *keys[EDIT_DEPTH + 1]; /* the path from the root; NULL behind the last */
    bool list;                        /* a list, whose entries have a member `name` */
    bool keeps_empty;                 /* stays when its last entry is taken out */
};

/* Append the text as plain JSON, with blanks for its comments and trailing commas: every byte has
 * its place. False when it is no JSON object. */
bool edit_put_plain(struct buf *out, struct span text);
/* JSON when it can be read as such, else YAML. */
enum edit_format edit_format_of(struct span text);
/* The map of servers of a configuration of ours: `mcpServers` if it has that, else `servers`. */
struct edit_place edit_servers(struct span text);
extern const struct edit_place edit_tokens; /* auth.tokens */

/* Append `text` with the new last entry `name`, whose value is the JSON `entry`. Missing maps and
 * lists on the way to it are made. */
MUST_CHECK int edit_put(struct buf *out, enum edit_format format, const struct edit_place *place,
                        struct span text, struct span name, struct span entry, struct err *err);
/* Append `text` without the entry. -ENOENT when there is none. */
MUST_CHECK int edit_take(struct buf *out, enum edit_format format, const struct edit_place *place,
                         struct span text, struct span name, struct err *err);
/* Append `text` with the entry `name` of a map renamed to `fresh`. */
MUST_CHECK int edit_rename(struct buf *out, enum edit_format format, const struct edit_place *place,
                           struct span text, struct span name, struct span fresh, struct err *err);
/* Append `text` with the entry set to the word or number `value`; a missing entry is added. */
MUST_CHECK int edit_set(struct buf *out, enum edit_format format, const struct edit_place *place,
                        struct span text, struct span name, struct span value, struct err *err);

/* Keep other commands from editing files in the folder of `path` until the lock is closed; waits
 * for them `ms` at most. A descriptor, or negative. */
MUST_CHECK int edit_lock(const char *path, unsigned ms, struct err *err);
/* Replace the file by `text` atomically; the old file becomes FILE.bak. */
MUST_CHECK int edit_replace_file(const char *path, struct span text, struct err *err);
/* Call with the lock held. If the file still has the text that this program wrote (`ours`), it gets
 * the text `before` again; with `made`, it is removed instead. */
MUST_CHECK int edit_undo_file(const char *path, struct span ours, struct span before, bool made,
                              struct err *err);

#endif
