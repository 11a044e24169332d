/*
 * span: borrowed bytes.
 *
 * A span points into memory that somebody else owns and is valid only as long as that owner says,
 * which is the end of the current callback unless a header states otherwise. Spans are passed by
 * value and are never NUL-terminated; print them with SPAN_FMT and SPAN_ARG. SPAN_ARG evaluates its
 * argument twice, so the argument must not have side effects.
 */
#ifndef RIALTO_BASE_SPAN_H
#define RIALTO_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *p;
    size_t n;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define SPAN_EMPTY    ((struct span){NULL, 0})
#define SPAN_FMT      "%.*s"
#define SPAN_ARG(s)   (int)(s).n, (s).p

static inline struct span span_of(const char *p, size_t n)
{
    return (struct span){p, n};
}

static inline struct span span_str(const char *s)
{
    return (struct span){s, s ? strlen(s) : 0};
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool span_is(struct span a, const char *s)
{
    return span_eq(a, span_str(s));
}

static inline bool span_starts(struct span a, struct span prefix)
{
    return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

/* The bytes of `a` from `from` on; empty when `from` is past the end. */
static inline struct span span_from(struct span a, size_t from)
{
    /* An empty span may have a NULL pointer, to which nothing may be added. */
    if (!a.n)
        return a;
    return from >= a.n ? (struct span){a.p + a.n, 0} : (struct span){a.p + from, a.n - from};
}

/* At most `n` bytes of `a` starting at `from`. */
static inline struct span span_cut(struct span a, size_t from, size_t n)
{
    struct span rest = span_from(a, from);
    return (struct span){rest.p, rest.n < n ? rest.n : n};
}

/* Offset of the first `c` in `a`, or a.n when there is none. */
static inline size_t span_find(struct span a, char c)
{
    const char *hit = a.n ? memchr(a.p, c, a.n) : NULL;
    return hit ? (size_t)(hit - a.p) : a.n;
}

/* ASCII case is ignored, as HTTP header names and host names require. */
bool span_same_nocase(const char *a, const char *b, size_t n);
static inline bool span_eq_nocase(struct span a, struct span b)
{
    return a.n == b.n && span_same_nocase(a.p, b.p, a.n); /* most differ in length */
}
/* For secrets, which must not be guessed byte by byte: the time depends on the length of `given`,
 * not on which bytes are right. */
bool span_eq_secret(struct span given, struct span secret);
/* Does `a` contain `part`? ASCII case is ignored. */
bool span_has_nocase(struct span a, struct span part);

/* The text without blanks and tabs at both ends. */
static inline struct span span_trim(struct span a)
{
    for (; a.n && (a.p[0] == ' ' || a.p[0] == '\t'); a.n--)
        a.p++;
    while (a.n && (a.p[a.n - 1] == ' ' || a.p[a.n - 1] == '\t'))
        a.n--;
    return a;
}

/* Order by bytes, shorter first when one is the other's prefix. */
int span_cmp(struct span a, struct span b);

/*
 * Does `text` match a shell-like pattern of `*` and `?`? Everything else stands for itself;
 * ASCII case is ignored. Linear in the text for each star, no recursion.
 */
bool span_glob(struct span pattern, struct span text);
/* The same, but case counts. */
bool span_glob_exact(struct span pattern, struct span text);

#endif
