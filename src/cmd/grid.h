/*
 * grid: rows of short texts, printed in columns.
 *
 *     struct grid g = {.columns = 3};
 *     grid_add(&g, SPAN("NAME")); ... cell by cell, row by row
 *     grid_put(&out, &g);
 */
#ifndef RIALTO_CMD_GRID_H
#define RIALTO_CMD_GRID_H

#include "base/buf.h"

enum { GRID_MAX_COLUMNS = 8, GRID_MAX_CELL = 100 };

struct grid {
    size_t columns;
    size_t width[GRID_MAX_COLUMNS]; /* in characters */
    struct buf cells;               /* each ends with a NUL */
    size_t n;
};

/* Adds a cell: the first line of `text`, as much as fits; "-" when `text` is empty. */
void grid_add(struct grid *g, struct span text);
/* Append the rows, and free them. */
void grid_put(struct buf *out, struct grid *g);

#endif
