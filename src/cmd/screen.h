/*
 * screen: the terminal, while a command draws on all of it.
 *
 * What stood there before comes back with screen_close, and while the command is stopped (Ctrl-Z).
 * A new size is taken as it comes. Signals that end the command are its own affair.
 */
#ifndef RIALTO_CMD_SCREEN_H
#define RIALTO_CMD_SCREEN_H

#include "base/span.h"
#include "io/loop.h"

struct screen;

/* NULL when the standard output is no terminal that can be drawn on. `quit` comes from the loop
 * when somebody types q. */
struct screen *screen_open(struct loop *l, void (*quit)(void *arg), void *arg);
void screen_close(struct screen *s);
/* These lines are all there is, each as far as it fits. The text is copied. */
void screen_draw(struct screen *s, struct span text);

#endif
