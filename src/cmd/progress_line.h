/*
 * progress_line: the line on the terminal that shows that work goes on.
 *
 * Work that ends within a second shows nothing. After that a line tells what is being done and for
 * how long, and is wiped before anything else is printed. There is no line when the standard error
 * is no terminal.
 */
#ifndef RIALTO_CMD_PROGRESS_LINE_H
#define RIALTO_CMD_PROGRESS_LINE_H

#include "base/span.h"
#include "io/loop.h"

struct progress_line;

/* `quiet`: never show anything. */
struct progress_line *progress_line_new(struct loop *l, bool quiet);
void progress_line_free(struct progress_line *p);
/* Sets what is being done; the text may come from a peer. The seconds count from the first text
 * after progress_line_stop. */
void progress_line_say(struct progress_line *p, struct span text);
/* The same, but shown at once. */
void progress_line_tell(struct progress_line *p, struct span text);
/* Wipe the line: the work is done, or something is printed. */
void progress_line_stop(struct progress_line *p);

#endif
