/* The marks of colours in output, what each looks like on a terminal, and which colour a state has.
 * Called by cmd.c and screen.c, which show output, and by the commands and grid.c, which mark it.
 */
#include "cmd/ink.h"

#include "base/mem.h"
#include "base/visible.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const sequences[] = {
    [INK_PLAIN] = "\033[0m", [INK_TITLE] = "\033[1m",    [INK_GOOD] = "\033[32m",
    [INK_WAIT] = "\033[33m", [INK_BAD] = "\033[31m",     [INK_FAINT] = "\033[2m",
    [INK_HINT] = "\033[36m", [INK_ERROR] = "\033[1;31m",
};

static const struct {
    const char *word;
    enum ink ink;
} states[] = {
    {"up", INK_GOOD},
    {"ok", INK_GOOD},
    {"idle", INK_FAINT},
    {"stopped", INK_FAINT},
    {"starting", INK_WAIT},
    {"needs sign-in", INK_WAIT},
    {"held", INK_WAIT},
    {"degraded", INK_WAIT},
    {"failing", INK_BAD},
    {"down", INK_BAD},
    {"needs_sign_in", INK_WAIT},
    {"failed", INK_BAD},
    {"error", INK_BAD},
};

enum ink ink_of(struct span word)
{
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (span_is(word, states[i].word))
            return states[i].ink;
    return INK_PLAIN;
}

static void put_mark(struct buf *out, enum ink ink)
{
    buf_char(out, (char)INK_MARK);
    buf_char(out, (char)('A' + (int)ink));
}

void ink_put(struct buf *out, enum ink ink, struct span text)
{
    if (ink != INK_PLAIN)
        put_mark(out, ink);
    buf_span(out, text);
    if (ink != INK_PLAIN)
        put_mark(out, INK_PLAIN);
}

bool ink_wanted(int fd)
{
    const char *term = getenv("TERM");

    return !span_str(getenv("NO_COLOR")).n && isatty(fd) && term && strcmp(term, "dumb") != 0;
}

/* The colour of the mark that `text` begins with; NULL: it begins with something else. */
static const char *mark_of(struct span text)
{
    unsigned at = text.n > 1 ? (unsigned char)text.p[1] - (unsigned)'A' : COUNT_OF(sequences);

    return at < COUNT_OF(sequences) ? sequences[at] : NULL;
}

void ink_show(struct buf *out, struct span text, bool wanted)
{
    while (text.n) {
        size_t n = span_find(text, (char)INK_MARK);
        const char *sequence = mark_of(span_from(text, n));
        visible_put(out, span_cut(text, 0, sequence || n == text.n ? n : n + 1), VISIBLE_LINES);
        if (sequence && wanted)
            buf_str(out, sequence);
        text = span_from(text, n + (sequence ? 2 : 1));
    }
}
