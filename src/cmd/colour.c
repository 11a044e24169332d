/* The marks of colours in output, what each looks like on a terminal, and which colour a state has.
 * Called by cmd.c and screen.c, which show output, and by the commands and grid.c, which mark it.
 */
#include "cmd/colour.h"

#include "base/mem.h"
#include "base/visible.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const sequences[] = {
    [COLOUR_PLAIN] = "\033[0m", [COLOUR_TITLE] = "\033[1m",    [COLOUR_GOOD] = "\033[32m",
    [COLOUR_WAIT] = "\033[33m", [COLOUR_BAD] = "\033[31m",     [COLOUR_FAINT] = "\033[2m",
    [COLOUR_HINT] = "\033[36m", [COLOUR_ERROR] = "\033[1;31m",
};

static const struct {
    const char *word;
    enum colour colour;
} states[] = {
    {"up", COLOUR_GOOD},
    {"ok", COLOUR_GOOD},
    {"idle", COLOUR_FAINT},
    {"stopped", COLOUR_FAINT},
    {"starting", COLOUR_WAIT},
    {"needs sign-in", COLOUR_WAIT},
    {"held", COLOUR_WAIT},
    {"degraded", COLOUR_WAIT},
    {"failing", COLOUR_BAD},
    {"down", COLOUR_BAD},
    {"needs_sign_in", COLOUR_WAIT},
    {"failed", COLOUR_BAD},
    {"error", COLOUR_BAD},
};

enum colour colour_of(struct span word)
{
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (span_is(word, states[i].word))
            return states[i].colour;
    return COLOUR_PLAIN;
}

static void put_mark(struct buf *out, enum colour colour)
{
    buf_char(out, (char)COLOUR_MARK);
    buf_char(out, (char)('A' + (int)colour));
}

void colour_put(struct buf *out, enum colour colour, struct span text)
{
    if (colour != COLOUR_PLAIN)
        put_mark(out, colour);
    buf_span(out, text);
    if (colour != COLOUR_PLAIN)
        put_mark(out, COLOUR_PLAIN);
}

bool colour_wanted(int fd)
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

void colour_show(struct buf *out, struct span text, bool wanted)
{
    while (text.n) {
        size_t n = span_find(text, (char)COLOUR_MARK);
        const char *sequence = mark_of(span_from(text, n));
        visible_put(out, span_cut(text, 0, sequence || n == text.n ? n : n + 1), VISIBLE_LINES);
        if (sequence && wanted)
            buf_str(out, sequence);
        text = span_from(text, n + (sequence ? 2 : 1));
    }
}
