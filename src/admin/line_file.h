/*
 * line_file: a file to which whole lines are appended, replaced by a new one when it has grown.
 *
 * The old ones get the endings .1, .2 and so on. A line that could not be written whole is cut off
 * again. Embedded by admin/audit_file.c and admin/record_file.c; cmd/audit.c asks for names.
 */
#ifndef RIALTO_ADMIN_LINE_FILE_H
#define RIALTO_ADMIN_LINE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct line_file {
    const char *who; /* its name in the log */
    char *path;      /* owned */
    uint64_t max;    /* bytes of a file */
    uint64_t keep;   /* how many older files stay */
    int fd;          /* -1: to be opened again */
    uint64_t size;
};

/* Opens the file unless it is open: readable by its owner only, and no symbolic link. */
MUST_CHECK int line_file_open(struct line_file *f);
void line_file_close(struct line_file *f);
/* Opens the file, and begins the next one if `n` bytes more would be too many for this one. */
MUST_CHECK int line_file_make_room(struct line_file *f, size_t n);
/* Appends whole lines; 0, or negative when nothing was written. */
MUST_CHECK int line_file_add(struct line_file *f, struct span lines);
/* The path of the n-th older file; 0: of the file itself. */
void line_file_put_name(struct buf *out, const char *file, uint64_t n);

#endif
