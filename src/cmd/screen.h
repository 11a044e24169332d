/*
 * screen: the terminal, while a command draws on all of it.
 *
 * The former content comes back with screen_close, and while the command is stopped (Ctrl-Z). A
 * changed size is noticed. Signals that end the command are handled by the command.
 */
#ifndef RIALTO_CMD_SCREEN_H
#define RIALTO_CMD_SCREEN_H

#include "base/span.h"
#include "io/loop.h"

struct screen;

/* NULL when the standard output is no terminal that can be drawn on. `quit` is called from the loop
 * when q is typed. */
struct screen *screen_open(struct loop *l, void (*quit)(void *arg), void *arg);
void screen_close(struct screen *s);
/* Shows these lines and nothing else, each cut to the width. The text is copied. */
void screen_draw(struct screen *s, struct span text);

#endif
