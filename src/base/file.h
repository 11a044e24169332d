/*
 * file: a whole file at once, read within a bound or replaced.
 *
 * A file is replaced by writing a new file beside it and renaming the new file: a reader gets the
 * old or the new file, whole, and a failure leaves the old file as it was. All functions block;
 * those that return an int return 0 or a negative code.
 */
#ifndef RIALTO_BASE_FILE_H
#define RIALTO_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends to `out`; ERR_SIZE when the file has more than `max` bytes: the first `max` are
 * appended. */
int file_read(struct buf *out, const char *path, size_t max);
int file_read_fd(struct buf *out, int fd, size_t max);

int file_write_fd(int fd, struct span text) MUST_CHECK;

/* Make all folders of the path up to its last slash, with access for their owner alone. */
void file_make_folders(const char *path);

/* The new file is readable for its owner alone. */
int file_replace(const char *path, struct span text) MUST_CHECK;
/* The same, and the new file is on the disk when this returns. */
int file_replace_synced(const char *path, struct span text) MUST_CHECK;

/* The new file has the mode of `like` and, if that is possible, its owner. */
int file_replace_like(const char *path, struct span text, const char *like) MUST_CHECK;

/*
 * Replaces a file that exists and keeps its mode and, if that is possible, its owner; the old file
 * gets the name `old`, unless `old` is NULL. The new file is on the disk before it gets the name
 * `path`.
 */
int file_replace_keeping(const char *path, struct span text, const char *old) MUST_CHECK;

#endif
