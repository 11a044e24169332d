/*
 * colour: colour for people who look at a terminal.
 *
 * Commands mark what they write; the marks stay in the buffer until it is printed. On a terminal
 * they become colours; elsewhere, and with NO_COLOR, they are removed. A mark begins with a byte
 * that no UTF-8 text has, so that texts of peers have no marks.
 */
#ifndef RIALTO_CMD_COLOUR_H
#define RIALTO_CMD_COLOUR_H

#include "base/buf.h"

enum colour {
    COLOUR_PLAIN,
    COLOUR_TITLE,
    COLOUR_GOOD,
    COLOUR_WAIT,
    COLOUR_BAD,
    COLOUR_FAINT,
    COLOUR_HINT,
    COLOUR_ERROR
};

enum { COLOUR_MARK = 0xff }; /* a mark is this byte and a letter, and has no width */

/* Append `text` in this colour. */
void colour_put(struct buf *out, enum colour colour, struct span text);
/* The colour of a word for a state: "up", "failing". */
enum colour colour_of(struct span word);
/* Is colour wanted on this descriptor? */
bool colour_wanted(int fd);
/* Append `text` as it is shown: marks as colours or as nothing, invisible characters escaped. */
void colour_show(struct buf *out, struct span text, bool wanted);

#endif
