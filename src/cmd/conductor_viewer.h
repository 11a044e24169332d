/*
 * conductor_viewer: a page on a free loopback port that draws a conductor's traffic as a sequence
 * diagram while it happens. `/` is the page, `/events?from=N` the events from the N-th on.
 */
#ifndef RIALTO_CMD_CONDUCTOR_VIEWER_H
#define RIALTO_CMD_CONDUCTOR_VIEWER_H

#include "base/err.h"
#include "base/span.h"
#include "io/loop.h"

struct conductor_viewer;

struct conductor_viewer *conductor_viewer_new(struct loop *loop, struct err *err);
/* Adds an event, a JSON object; the oldest events are dropped when there are too many. */
void conductor_viewer_add(struct conductor_viewer *v, struct span event);
void conductor_viewer_close(struct conductor_viewer *v, void (*done)(void *arg), void *arg);
void conductor_viewer_free(struct conductor_viewer *v);

/* The page itself (conductor_page.c). */
extern const char conductor_page[], conductor_style[], conductor_script[];

#endif
