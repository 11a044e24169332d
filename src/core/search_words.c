/* Splitting a text into lower-case words without a plural s: camelCase into parts, scripts without
 * blanks into characters. Called by search.c for documents and for questions. */
#include "core/search_words.h"

#include "base/ascii.h"

enum kind {
    GAP,
    LOWER, /* also digits, and letters of scripts beyond ASCII */
    UPPER,
    ALONE, /* a character that counts as a word: scripts without blanks between words */
};

/* The kind of the character at the front of `text`, which is not empty, and its length. */
static enum kind kind_of(struct span text, size_t *n)
{
    unsigned char c = (unsigned char)text.p[0];

    *n = 1;
    if (c < 0x80) {
        if (ascii_is_upper((char)c))
            return UPPER;
        return ascii_is_word((char)c, "") ? LOWER : GAP;
    }
    *n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    if (*n > text.n)
        *n = text.n;
    /* U+0080 to U+00BF and U+2000 to U+2FFF are signs; scripts from U+3000 on write no blanks. */
    if (c < 0xc3 || c == 0xe2)
        return GAP;
    return c >= 0xe3 ? ALONE : LOWER;
}

static bool ends(struct span word, const char *end)
{
    struct span e = span_str(end);

    return word.n > e.n && span_eq(span_from(word, word.n - e.n), e);
}

/* "files" and "queries" become "file" and "query"; "status" and "access" stay. */
static void give(char *p, size_t n, search_word_fn *fn, void *arg)
{
    struct span word = span_of(p, n);

    if (n > 3 && ends(word, "ies") && !ends(word, "eies") && !ends(word, "aies")) {
        p[n - 3] = 'y';
        word.n = n - 2;
    } else if (n > 3 && ends(word, "s") && !ends(word, "us") && !ends(word, "ss")) {
        word.n = n - 1;
    }
    fn(arg, word);
}

static void give_copy(struct span word, search_word_fn *fn, void *arg)
{
    char copy[SEARCH_WORD_MAX];

    if (!word.n || word.n > sizeof copy)
        return;
    for (size_t i = 0; i < word.n; i++)
        copy[i] = ascii_to_lower(word.p[i]);
    give(copy, word.n, fn, arg);
}

/* Does a new part of a run begin at `at`: the I of createIssue, the S of HTTPServer? */
static bool begins_part(struct span run, size_t at)
{
    size_t n;

    if (!at || kind_of(span_from(run, at), &n) != UPPER)
        return false;
    return kind_of(span_cut(run, at - 1, 1), &n) != UPPER ||
           (at + 1 < run.n && ascii_is_lower(run.p[at + 1]));
}

/* The run as a whole, because GitHub is a word as well, and its parts if it has several. */
static void give_run(struct span run, search_word_fn *fn, void *arg)
{
    size_t from = 0;

    give_copy(run, fn, arg);
    for (size_t at = 1; at < run.n; at++) {
        if (!begins_part(run, at))
            continue;
        give_copy(span_cut(run, from, at - from), fn, arg);
        from = at;
    }
    if (from)
        give_copy(span_from(run, from), fn, arg);
}

void search_words(struct span text, search_word_fn *fn, void *arg)
{
    size_t from = 0, n;

    for (size_t at = 0; at < text.n; at += n) {
        enum kind kind = kind_of(span_from(text, at), &n);
        if (kind == LOWER || kind == UPPER)
            continue;
        give_run(span_cut(text, from, at - from), fn, arg);
        if (kind == ALONE)
            give_copy(span_cut(text, at, n), fn, arg);
        from = at + n;
    }
    give_run(span_from(text, from), fn, arg);
}
