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

/* Values of `key` besides plain characters. */
enum { SCREEN_ESCAPE = 27, SCREEN_UP = 256, SCREEN_DOWN };

/* NULL when the standard output is no terminal that can be drawn on. `key` is called from the loop
 * for each key that is typed. */
struct screen *screen_open(struct loop *l, void (*key)(void *arg, int key), void *arg);
/* How many lines the terminal has. */
size_t screen_rows(void);
void screen_close(struct screen *s);
/* Shows these lines and nothing else, each cut to the width. The text is copied. */
void screen_draw(struct screen *s, struct span text);

#endif
