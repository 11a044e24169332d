/*
 * visible: text of peers, escaped so that it is what it looks like.
 *
 * Control characters can move the cursor of a terminal, characters that set the direction of text
 * can turn around what follows, and invisible ones can hide a word. Code that shows a peer's text
 * to a person who decides by it calls visible_put: such characters become escapes like \u202e, and
 * bytes that are not UTF-8 become escapes like \xff. Beyond U+FFFF the escape is a pair, as in
 * JSON: so JSON text stays JSON text, and means the same.
 */
#ifndef RIALTO_BASE_VISIBLE_H
#define RIALTO_BASE_VISIBLE_H

#include "base/buf.h"

enum {
    VISIBLE_LINES = 1u << 0, /* keep \n and \t as they are */
};

/* Append `text` with every invisible character escaped; `flags`: VISIBLE_ bits. */
void visible_put(struct buf *out, struct span text, unsigned flags);

#endif
