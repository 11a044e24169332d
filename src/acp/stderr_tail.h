/*
 * stderr_tail: the end of the text that a component wrote to its stderr, for the error that says
 * how the component ended.
 *
 * Bytes are added as they come, however many; the bytes kept are bounded, and each byte is moved
 * only a few times. The text that is shown begins at the start of a line where there is one,
 * otherwise at the start of a character, and has passed the redactor.
 */
#ifndef RIALTO_ACP_STDERR_TAIL_H
#define RIALTO_ACP_STDERR_TAIL_H

#include "base/buf.h"

/* How much of the text is shown: in one error, and in each of a thousand errors. */
enum { STDERR_TAIL_WHOLE = 64 * 1024, STDERR_TAIL_BRIEF = 4 * 1024 };

/* Empty and valid when zeroed. */
struct stderr_tail {
    struct buf kept;
    bool dropped; /* there were bytes before `kept` */
};

void stderr_tail_add(struct stderr_tail *w, struct span bytes);
void stderr_tail_reset(struct stderr_tail *w);

/* Append the last `max` bytes at most, counted after redaction. If the component has written more,
 * a line before them says so. */
void stderr_tail_put(struct buf *out, const struct stderr_tail *w, size_t max);
/* Take the next line that is not blank off the front of the text; false when there is none. */
bool stderr_tail_line(struct span *text, struct span *line);

#endif
