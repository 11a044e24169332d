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
    SERVER_EDIT_CHANGE, /* members that are not as in `entry`; those shown as hidden stay */
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

/* An edit that was made. Until it ends nobody else edits the file, so it can be undone. */
struct server_edit_done {
    int lock;
    bool made; /* there was no file; the new one is readable for its user alone */
    struct buf before, after;
};

/* -ENOENT: there is no such file, or no such server in it; a file is made to add a server. Waits
 * `ms` at most for others who edit. When it is 0, server_edit_end follows. */
MUST_CHECK int server_edit_file(const char *path, const struct server_edit *e, unsigned ms,
                                struct server_edit_done *done, struct err *err);
void server_edit_end(struct server_edit_done *done);
/* Append the entry of this name as JSON, as the file has it, variables not filled in. False: there
 * is none. */
bool server_edit_put_entry(struct buf *out, const char *path, const char *name);

#endif
