/*
 * scan: pieces of JSON text found by a small scan, and text that grows; for the fake peers only.
 *
 * On purpose not Rialto's own reader: a fake that shares code with what it tests shares its
 * mistakes. It trusts its input to be JSON and compares keys without unescaping them.
 */
#ifndef RIALTO_TESTS_FAKE_SCAN_H
#define RIALTO_TESTS_FAKE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* A borrowed part of a text. */
struct piece {
    const char *p;
    size_t n;
};

/* Text that grows; p is NUL-terminated, or NULL while nothing was added. The owner frees p. */
struct text {
    char *p;
    size_t n, cap;
};

void text_add(struct text *t, const char *p, size_t n);
void text_put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As a JSON string, quotes included. */
void text_add_quoted(struct text *t, struct piece s);

struct piece piece_of(const char *s);
bool piece_is(struct piece a, const char *s);

/* The raw value of a member of the object, or an empty piece. */
struct piece member(struct piece object, const char *key);
/* Text of a string member, without quotes and as escaped as it was. */
struct piece member_text(struct piece object, const char *key);
double member_number(struct piece object, const char *key, double otherwise);

#endif
