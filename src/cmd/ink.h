/*
 * ink: colour for people who look at a terminal.
 *
 * Commands mark what they write; the marks stay in the buffer until it is printed. On a terminal
 * they become colours; elsewhere, and with NO_COLOR, they are removed. A mark begins with a byte
 * that no UTF-8 text has, so that texts of peers have no marks.
 */
#ifndef RIALTO_CMD_INK_H
#define RIALTO_CMD_INK_H

#include "base/buf.h"

enum ink { INK_PLAIN, INK_TITLE, INK_GOOD, INK_WAIT, INK_BAD, INK_FAINT, INK_HINT, INK_ERROR };

enum { INK_MARK = 0xff }; /* a mark is this byte and a letter, and has no width */

/* Append `text` in this colour. */
void ink_put(struct buf *out, enum ink ink, struct span text);
/* The colour of a word for a state: "up", "failing". */
enum ink ink_of(struct span word);
/* Is colour wanted on this descriptor? */
bool ink_wanted(int fd);
/* Append `text` as it is shown: marks as colours or as nothing, invisible characters escaped. */
void ink_show(struct buf *out, struct span text, bool wanted);

#endif
