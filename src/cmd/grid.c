/* Collects the cells of a table with the width of each column, and writes the rows. Called by
 * approvals.c, calls.c, pair.c, setup.c, status.c, token.c and top.c. */
#include "cmd/grid.h"

#include "cmd/cmd.h"

static bool starts_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static size_t count_characters(struct span text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += starts_character(text.p[i]);
    return n;
}

void grid_add(struct grid *g, struct span text)
{
    grid_add_in(g, g->n < g->columns && !g->untitled ? COLOUR_TITLE : COLOUR_PLAIN, text);
}

void grid_add_in(struct grid *g, enum colour colour, struct span text)
{
    size_t column = g->n++ % g->columns;
    struct span line = text.n ? span_cut(text, 0, span_find(text, '\n')) : SPAN("-");
    struct span cell = span_cut(line, 0, GRID_MAX_CELL);

    while (cell.n < line.n && cell.n && !starts_character(line.p[cell.n]))
        cell.n--;
    size_t shown = count_characters(cell);
    buf_char(&g->cells, (char)colour);
    cmd_put_plain(&g->cells, cell);
    buf_char(&g->cells, '\0');
    if (shown > g->width[column])
        g->width[column] = shown;
}

void grid_put(struct buf *out, struct grid *g)
{
    struct span rest = buf_view(&g->cells);

    for (size_t i = 0; i < g->n; i++) {
        size_t column = i % g->columns;
        enum colour colour = (enum colour)rest.p[0];
        rest = span_from(rest, 1);
        struct span cell = span_cut(rest, 0, span_find(rest, '\0'));
        bool last = column + 1 == g->columns;
        colour_put(out, colour, cell);
        for (size_t pad = count_characters(cell); !last && pad < g->width[column] + 2; pad++)
            buf_char(out, ' ');
        if (last)
            buf_char(out, '\n');
        rest = span_from(rest, cell.n + 1);
    }
    buf_fini(&g->cells);
}
