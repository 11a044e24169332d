/*
 * ascii: tests of single bytes, independent of the locale. All of them are false for a byte beyond
 * ASCII.
 */
#ifndef RIALTO_BASE_ASCII_H
#define RIALTO_BASE_ASCII_H

#include "base/span.h"

#include <stdint.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool ascii_is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool ascii_is_letter(char c)
{
    return ascii_is_lower(c) || ascii_is_upper(c);
}

static inline char ascii_to_lower(char c)
{
    return ascii_is_upper(c) ? (char)(c | 0x20) : c;
}

static inline char ascii_to_upper(char c)
{
    return ascii_is_lower(c) ? (char)(c & ~0x20) : c;
}

/* Is the byte a letter, a digit or one of `others`? */
static inline bool ascii_is_word(char c, const char *others)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || (c && strchr(others, c));
}

/* Is every byte of the text a letter, a digit or one of `others`? */
static inline bool ascii_is_words(struct span text, const char *others)
{
    for (size_t i = 0; i < text.n; i++)
        if (!ascii_is_word(text.p[i], others))
            return false;
    return true;
}

/* The value of a hexadecimal digit of either case, or -1. */
static inline int ascii_hex(char c)
{
    char low = (char)(c | 0x20);

    return ascii_is_digit(c) ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* Reads a text of 1 to 18 digits, which cannot overflow; false for any other text. */
static inline bool ascii_number(struct span digits, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (!ascii_is_digit(digits.p[i]) || i == 18)
            return false;
        *number = *number * 10 + (uint64_t)(digits.p[i] - '0');
    }
    return digits.n > 0;
}

#endif
