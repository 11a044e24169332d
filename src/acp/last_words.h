/*
 * last_words: the end of what a component wrote to its stderr, for those who are told of its own.
 *
 * Bytes are added as they come, however many; what is kept is bounded, and each byte is moved only
 * a few times. What is shown of them begins with a line where one begins, else with a character,
 * and has passed the redactor.
 */
#ifndef RIALTO_ACP_LAST_WORDS_H
#define RIALTO_ACP_LAST_WORDS_H

#include "base/buf.h"

/* How much of it is shown: all there is, or so that it may be said a thousand times. */
enum { LAST_WORDS_WHOLE = 64 * 1024, LAST_WORDS_BRIEF = 4 * 1024 };

/* Zeroed it is empty and valid. */
struct last_words {
    struct buf kept;
    bool dropped; /* there was more before it */
};

void last_words_add(struct last_words *w, struct span bytes);
void last_words_reset(struct last_words *w);

/* Append the last `max` bytes at most (what was redacted counts as it is shown), before them a line
 * that says so if they are not all. */
void last_words_put(struct buf *out, const struct last_words *w, size_t max);
/* Take the next line that is not blank off such text; false when there is none. */
bool last_words_line(struct span *text, struct span *line);

#endif
