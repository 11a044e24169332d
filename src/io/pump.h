/*
 * pump: two streams, each byte of one written to the other, until both have closed.
 *
 * A connection with TLS cannot be passed to another process: its keys are in our memory. So the
 * other process gets one end of a socket pair, and we carry the bytes.
 */
#ifndef RIALTO_IO_PUMP_H
#define RIALTO_IO_PUMP_H

#include "io/stream.h"

/* Takes both streams over; `a` is started already, `b` is not. `gone` is called from the loop when
 * both have closed. */
void pump_start(struct stream *a, struct stream *b, void (*gone)(void *arg), void *arg);

#endif
