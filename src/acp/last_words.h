/*
 * last_words: the end of the text that a component wrote to its stderr, for the error that says how
 * the component ended.
 *
 * Bytes are added as they come, however many; the bytes kept are bounded, and each byte is moved
 * only a few times. The text that is shown begins at the start of a line where there is one,
 * otherwise at the start of a character, and has passed the redactor.
 */
#ifndef RIALTO_ACP_LAST_WORDS_H
#define RIALTO_ACP_LAST_WORDS_H

#include "base/buf.h"

/* How much of the text is shown: in one error, and in each of a thousand errors. */
enum { LAST_WORDS_WHOLE = 64 * 1024, LAST_WORDS_BRIEF = 4 * 1024 };

/* Empty and valid when zeroed. */
struct last_words {
    struct buf kept;
    bool dropped; /* there were bytes before `kept` */
};

void last_words_add(struct last_words *w, struct span bytes);
void last_words_reset(struct last_words *w);

/* Append the last `max` bytes at most, counted after redaction. If the component has written more,
 * a line before them says so. */
void last_words_put(struct buf *out, const struct last_words *w, size_t max);
/* Take the next line that is not blank off the front of the text; false when there is none. */
bool last_words_line(struct span *text, struct span *line);

#endif
