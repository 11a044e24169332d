/*
 * grid: rows of short texts, printed in columns.
 *
 *     struct grid g = {.columns = 3};
 *     grid_add(&g, SPAN("NAME")); ... cell by cell, row by row; the first row has the titles
 *     grid_put(&out, &g);
 */
#ifndef RIALTO_CMD_GRID_H
#define RIALTO_CMD_GRID_H

#include "cmd/colour.h"

enum { GRID_MAX_COLUMNS = 8, GRID_MAX_CELL = 100 };

struct grid {
    size_t columns;
    bool untitled;
    size_t width[GRID_MAX_COLUMNS]; /* in characters */
    struct buf cells;               /* each begins with its colour and ends with a NUL */
    size_t n;
};

/* Adds a cell: the first line of `text`, as much as fits; "-" when `text` is empty. */
void grid_add(struct grid *g, struct span text);
void grid_add_in(struct grid *g, enum colour colour, struct span text);
/* Append the rows, and free them. */
void grid_put(struct buf *out, struct grid *g);

#endif
