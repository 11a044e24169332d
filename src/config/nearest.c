/* The edit distance between words, and the best candidate so far. Called by schema*.c for misspelt
 * keys and values, and by cmd/ for misspelt commands, options and names. */
#include "config/nearest.h"

#include "base/ascii.h"

enum { WORD_MAX = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edit distance with swaps of neighbours; both words are at most WORD_MAX long. */
static unsigned count_slips(struct span a, struct span b)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b.n; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            char x = ascii_to_lower(a.p[i - 1]), y = ascii_to_lower(b.p[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == ascii_to_lower(b.p[j - 2]) &&
                y == ascii_to_lower(a.p[i - 2]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[b.n];
}

struct nearest nearest_to(struct span word)
{
    /* A third of the letters may be wrong; for a short word, one. */
    unsigned allowed = word.n < 6 ? 1 : (unsigned)(word.n <= WORD_MAX ? word.n / 3 : 0);
    return (struct nearest){.word = word, .slips = allowed + 1};
}

void nearest_offer(struct nearest *n, struct span candidate)
{
    if (!n->word.n || n->word.n > WORD_MAX || candidate.n > WORD_MAX)
        return;
    unsigned slips = count_slips(n->word, candidate);
    if (slips < n->slips) {
        n->best = candidate;
        n->slips = slips;
    }
}
