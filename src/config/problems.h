/*
 * problems: everything that is wrong with a configuration, not just the first thing.
 *
 * Readers and checks add to the list and go on; the command that asked for the configuration shows
 * it. A problem is one line: "FILE:LINE:COL: key: what is wrong, what was expected". The list keeps
 * the first PROBLEMS_MAX lines and counts the rest, so a hostile file cannot make it grow. A zeroed
 * struct is an empty list.
 *
 * Nouns: problems_, problem_.
 */
#ifndef RIALTO_CONFIG_PROBLEMS_H
#define RIALTO_CONFIG_PROBLEMS_H

#include "base/arena.h"
#include "base/buf.h"

enum { PROBLEMS_MAX = 100 };

enum problem_level { PROBLEM_ERROR, PROBLEM_WARNING };

/* Line and column in the file, counted from 1 in characters; line 0 means no place. */
struct place {
    unsigned line, column;
};

struct problem {
    enum problem_level level;
    const char *file; /* NULL when the problem is about no file */
    struct place at;
    const char *key; /* "servers.files.command"; empty = the whole document */
    const char *text;
};

struct problems {
    struct arena arena;
    const char *file; /* given to every problem that is added */
    struct problem *items;
    size_t n;      /* kept */
    size_t errors; /* counted, kept or not */
    size_t warnings;
};

void problems_fini(struct problems *ps);
/* The name is copied; NULL for none. */
void problems_set_file(struct problems *ps, const char *file);
void problems_add(struct problems *ps, enum problem_level level, struct place at, const char *key,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Sort the problems from number `from` on by place; they must be of one file. */
void problems_sort(struct problems *ps, size_t from);

/* One problem as one line, without the line end. */
void problem_put(struct buf *out, const struct problem *p);
/* {"level":...,"file":...,"line":...,"column":...,"key":...,"message":...} */
void problem_put_json(struct buf *out, const struct problem *p);

#endif
