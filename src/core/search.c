/* The BM25 index: adding documents, weighing words, ranking the documents for a question. Called by
 * mcp/search_provider.c and admin/tools.c. */
#include "core/search.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/search_words.h"

#include <math.h>
#include <stdlib.h>

/* Further words are ignored: for a page of text, the tools that fit its beginning are found. */
enum { MAX_QUESTION_WORDS = 32 };
/* Prefix matches: how many terms are tried for a word of the question; the word's minimum
 * length. */
enum { MAX_BEGUN = 64, MIN_BEGINNING = 3 };

/* BM25's k1: how soon further occurrences of a word stop adding to the score. */
static const double saturation = 1.2;
static const double begun_counts = 0.4;

/* The weight of a word in each field, and how much a long field lowers it (BM25's b). */
static const struct {
    double weight, by_length;
} field_rules[SEARCH_FIELDS] = {
    [SEARCH_NAME] = {4.0, 0.6},
    [SEARCH_DESCRIPTION] = {1.0, 0.7},
    [SEARCH_DETAILS] = {0.5, 0.7},
};

/* The occurrences of a word in a document. */
struct posting {
    unsigned document;
    unsigned char times[SEARCH_FIELDS]; /* up to 255 */
    float gain;                         /* what the word adds to the document's score */
};

struct term {
    struct span word;
    struct posting *postings;
    size_t n, cap;
};

struct search_document {
    unsigned length[SEARCH_FIELDS]; /* in words */
    /* While a question is being answered: */
    double score;
    double best;       /* gain for the current word of the question */
    unsigned question; /* number of that word, counted over all questions */
};

struct search {
    struct arena arena; /* words and terms */
    struct map by_word; /* until search_finish */
    struct term **terms;
    size_t n_terms;
    struct search_document *documents;
    size_t n, cap;
    unsigned asked;
};

struct search *search_new(void)
{
    return MEM_NEW(struct search);
}

void search_free(struct search *s)
{
    size_t at = 0;
    void *term;

    if (!s)
        return;
    while (map_next(&s->by_word, &at, NULL, &term))
        mem_free(((struct term *)term)->postings);
    map_fini(&s->by_word);
    mem_free(s->terms);
    mem_free(s->documents);
    arena_fini(&s->arena);
    mem_free(s);
}

/* --- building --- */

struct adding {
    struct search *search;
    enum search_field field;
};

static struct term *term_of(struct search *s, struct span word)
{
    struct term *t = map_get(&s->by_word, word);

    if (!t) {
        t = ARENA_NEW(&s->arena, struct term);
        t->word = arena_span(&s->arena, word);
        map_put(&s->by_word, word, t);
    }
    return t;
}

/* The term's posting for the document being added, which is always the last one. */
static struct posting *posting_of(struct search *s, struct term *t)
{
    unsigned document = (unsigned)(s->n - 1);

    if (t->n && t->postings[t->n - 1].document == document)
        return &t->postings[t->n - 1];
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 4;
        t->postings = mem_resize(t->postings, t->cap * sizeof *t->postings);
    }
    t->postings[t->n] = (struct posting){.document = document};
    return &t->postings[t->n++];
}

static void add_word(void *arg, struct span word)
{
    const struct adding *a = arg;
    struct posting *p = posting_of(a->search, term_of(a->search, word));

    if (p->times[a->field] < 255)
        p->times[a->field]++;
    a->search->documents[a->search->n - 1].length[a->field]++;
}

void search_add(struct search *s, const struct span fields[SEARCH_FIELDS])
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->documents = mem_resize(s->documents, s->cap * sizeof *s->documents);
    }
    s->documents[s->n++] = (struct search_document){0};
    for (int field = 0; field < SEARCH_FIELDS; field++) {
        struct adding a = {s, (enum search_field)field};
        search_words(fields[field], add_word, &a);
    }
}

/* The weighted occurrences, normalised by the usual length of each field. */
static double frequency(const struct search *s, const struct posting *p, const double *usual)
{
    double sum = 0;

    for (int field = 0; field < SEARCH_FIELDS; field++) {
        if (!p->times[field])
            continue;
        double length = s->documents[p->document].length[field] / usual[field];
        double by_length = field_rules[field].by_length;
        sum += field_rules[field].weight * p->times[field] / (1 - by_length + by_length * length);
    }
    return sum;
}

/* ln(x) for x > 0, by the series of atanh. For log() alone libm would be loaded at each start. */
static double logarithm(double x)
{
    static const double ln_2 = 0.693147180559945309;
    int twos;
    double part = frexp(x, &twos); /* from 1/2 up to 1; frexp is also in libc */
    double z = (part - 1) / (part + 1), power = z, sum = 0;

    for (int i = 1; i < 32; i += 2) {
        sum += power / i;
        power *= z * z;
    }
    return twos * ln_2 + 2 * sum;
}

static void weigh(const struct search *s, struct term *t, const double *usual)
{
    double all = (double)s->n, having = (double)t->n;
    double rarity = logarithm(1 + (all - having + 0.5) / (having + 0.5));

    for (size_t i = 0; i < t->n; i++) {
        double times = frequency(s, &t->postings[i], usual);
        t->postings[i].gain = (float)(rarity * times / (times + saturation));
    }
}

static int compare_terms(const void *a, const void *b)
{
    return span_cmp((*(struct term *const *)a)->word, (*(struct term *const *)b)->word);
}

void search_finish(struct search *s)
{
    double usual[SEARCH_FIELDS] = {0}; /* mean length of each field; 1 if all are empty */
    size_t at = 0;
    void *term;

    for (int field = 0; field < SEARCH_FIELDS; field++) {
        for (size_t i = 0; i < s->n; i++)
            usual[field] += s->documents[i].length[field];
        usual[field] = usual[field] > 0 ? usual[field] / (double)s->n : 1;
    }
    s->terms = MEM_ARRAY(struct term *, s->by_word.n + 1);
    while (map_next(&s->by_word, &at, NULL, &term)) {
        weigh(s, term, usual);
        s->terms[s->n_terms++] = term;
    }
    qsort(s->terms, s->n_terms, sizeof(struct term *), compare_terms);
}

/* --- asking --- */

struct asking {
    struct search *search;
    unsigned words;
};

/* For each word of the question the gain of the best match is added to the document's score. */
static void score(struct search *s, const struct term *t, double counts)
{
    for (size_t i = 0; i < t->n; i++) {
        struct search_document *d = &s->documents[t->postings[i].document];
        double gain = counts * (double)t->postings[i].gain;
        if (d->question != s->asked) {
            d->question = s->asked;
            d->best = 0;
        }
        if (gain > d->best) {
            d->score += gain - d->best;
            d->best = gain;
        }
    }
}

/* The first term that is not before `word`. */
static size_t lower_bound(const struct search *s, struct span word)
{
    size_t from = 0, to = s->n_terms;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (span_cmp(s->terms[middle]->word, word) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Stop words: a small catalog may have few of them, so their rarity means nothing. */
static bool is_filler(struct span word)
{
    static const char *const words[] = {"a",   "an",  "and", "are", "at", "be",   "can", "do",
                                        "for", "how", "i",   "in",  "is", "it",   "me",  "my",
                                        "of",  "on",  "or",  "the", "to", "what", "with"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_is(word, words[i]))
            return true;
    return false;
}

static void ask_word(void *arg, struct span word)
{
    struct asking *a = arg;
    struct search *s = a->search;

    if (is_filler(word) || a->words++ >= MAX_QUESTION_WORDS)
        return;
    s->asked++;
    size_t first = lower_bound(s, word);
    for (size_t i = first; i < s->n_terms && i < first + MAX_BEGUN; i++) {
        const struct term *t = s->terms[i];
        bool same = t->word.n == word.n;
        if (!span_starts(t->word, word) || (!same && word.n < MIN_BEGINNING))
            break;
        score(s, t, same ? 1 : begun_counts);
    }
}

/* Inserts the hit in order among the best so far; returns how many there are. */
static size_t place(struct search_hit *hits, size_t n, size_t max, struct search_hit hit)
{
    size_t at = n;

    while (at && hits[at - 1].score < hit.score)
        at--;
    if (at >= max)
        return n;
    if (n < max)
        n++;
    memmove(&hits[at + 1], &hits[at], (n - 1 - at) * sizeof *hits);
    hits[at] = hit;
    return n;
}

size_t search_find(struct search *s, struct span question, struct search_hit *hits, size_t max)
{
    struct asking a = {.search = s};
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        s->documents[i].score = 0;
    search_words(question, ask_word, &a);
    for (size_t i = 0; i < s->n; i++)
        if (s->documents[i].score > 0)
            n = place(hits, n, max, (struct search_hit){i, s->documents[i].score});
    return n;
}
