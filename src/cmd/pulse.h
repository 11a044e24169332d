/*
 * pulse: the line on the terminal that shows that work goes on.
 *
 * Work that ends within a second shows nothing. After that a line tells what is being done and for
 * how long, and is wiped before anything else is printed. There is no line when the standard error
 * is no terminal.
 */
#ifndef RIALTO_CMD_PULSE_H
#define RIALTO_CMD_PULSE_H

#include "base/span.h"
#include "io/loop.h"

struct pulse;

/* `quiet`: never show anything. */
struct pulse *pulse_new(struct loop *l, bool quiet);
void pulse_free(struct pulse *p);
/* Sets what is being done; the text may come from a peer. The seconds count from the first text
 * after pulse_stop. */
void pulse_say(struct pulse *p, struct span text);
/* The same, but shown at once. */
void pulse_tell(struct pulse *p, struct span text);
/* Wipe the line: the work is done, or something is printed. */
void pulse_stop(struct pulse *p);

#endif
