/*
 * audit_file: the lines of the audit trail on the disk, or on their way to syslog.
 *
 * Each line of JSON has a number and the hash of the line before, so a line that was changed,
 * removed or inserted is detected. When the file has grown to its size limit it becomes FILE.1, and
 * a new file continues the chain. Beside the file is the head, which is written after each line
 * with the line's number and hash: it shows when lines were cut off at the end of the trail. The
 * head is one short text that is overwritten in place, so it can be written even when the disk is
 * full.
 *
 * The page cache has a line once write() returns, so killing the program loses none. A line that
 * was not written whole is cut off again, at once or at the next start. docs/decisions/017-audit.md
 * has the reasons. Owned by admin/audit.c; cmd/audit.c reads the files with the functions below.
 */
#ifndef RIALTO_ADMIN_AUDIT_FILE_H
#define RIALTO_ADMIN_AUDIT_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* The first 32 bytes of BLAKE2b, in hexadecimal digits, and a NUL: b2sum | cut -c-64. */
enum { AUDIT_HASH_SIZE = 64 + 1, AUDIT_LINE_MAX = 64 * 1024 };

/* The end of a trail. */
struct audit_end {
    uint64_t seq; /* of the last line; 0: there is none */
    char hash[AUDIT_HASH_SIZE];
    uint64_t missing; /* lines after that one that could not be written */
};

struct audit_file;

struct audit_place {
    const char *file;   /* NULL: the lines go to syslog */
    const char *syslog; /* path of the socket of syslog, or NULL */
    const char *head;
    uint64_t size, keep;
};

/* NULL, with a reason, when the files cannot be opened or another program has them. */
struct audit_file *audit_file_open(const struct audit_place *place, struct err *err);
void audit_file_close(struct audit_file *f);

/* Appends the line {"seq":N,BODY,"before":H}, where `body` are members. 0, or negative when the
 * line is missing: the next line says so. */
MUST_CHECK int audit_file_add(struct audit_file *f, struct span body);
/* Could a line be written now? For callers whose last line could not be written. */
MUST_CHECK int audit_file_try(struct audit_file *f);

/* --- for readers of a trail --- */

/* The path of the head that belongs to the file. */
void audit_file_put_head(struct buf *out, const char *file);
void audit_file_hash(struct span line, char out[AUDIT_HASH_SIZE]);
/* The head, which is empty if there is none; negative if it cannot be read. */
MUST_CHECK int audit_file_read_head(const char *head, struct audit_end *end);
/* Does a program write to this trail now? */
bool audit_file_is_written(const char *head);

#endif
