/*
 * server_edit: one change of the servers in a configuration file.
 *
 * The commands (add, remove, rename, enable, disable) and the daemon's API make the same changes:
 * the file is locked, edited by config/edit so that every other byte stays, checked as a whole, and
 * replaced at once. A file that would not be valid is not written.
 */
#ifndef RIALTO_CONFIG_SERVER_EDIT_H
#define RIALTO_CONFIG_SERVER_EDIT_H

#include "base/buf.h"
#include "base/err.h"

enum server_edit_act {
    SERVER_EDIT_ADD,
    SERVER_EDIT_CHANGE, /* the members become those of `entry`; values shown as *** stay */
    SERVER_EDIT_REMOVE,
    SERVER_EDIT_RENAME,
    SERVER_EDIT_ENABLE,
    SERVER_EDIT_DISABLE,
};

struct server_edit {
    enum server_edit_act act;
    const char *name;
    const char *fresh; /* the new name, to rename */
    struct span entry; /* JSON, to add and to change */
};

/* An edit that was made. The file stays locked until server_edit_end, so it can be undone. */
struct server_edit_done {
    int lock;
    bool made; /* there was no file; the new one is readable for its user alone */
    struct buf before, after;
};

/* -ENOENT: there is no such file, or no such server in it; to add a server, a missing file is made.
 * Waits at most `ms` for the lock. After a result of 0, the caller calls server_edit_end. */
MUST_CHECK int server_edit_file(const char *path, const struct server_edit *e, unsigned ms,
                                struct server_edit_done *done, struct err *err);
void server_edit_end(struct server_edit_done *done);
/* Append the entry of this name as JSON, as the file has it, variables not filled in. False: there
 * is none. */
bool server_edit_put_entry(struct buf *out, const char *path, const char *name);

#endif
