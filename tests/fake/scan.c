#include "scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text --- */

void text_add(struct text *t, const char *p, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        t->cap = (t->n + n + 1) * 2;
        t->p = realloc(t->p, t->cap);
        if (!t->p)
            abort();
    }
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
}

void text_put(struct text *t, const char *format, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, format);
    int n = vasprintf(&s, format, ap);
    va_end(ap);
    if (n < 0)
        abort();
    text_add(t, s, (size_t)n);
    free(s);
}

void text_add_quoted(struct text *t, struct piece s)
{
    text_add(t, "\"", 1);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\')
            text_put(t, "\\%c", c);
        else if (c < 0x20)
            text_put(t, "\\u%04x", c);
        else
            text_add(t, s.p + i, 1);
    }
    text_add(t, "\"", 1);
}

struct piece piece_of(const char *s)
{
    return (struct piece){s, strlen(s)};
}

bool piece_is(struct piece a, const char *s)
{
    return a.n == strlen(s) && memcmp(a.p, s, a.n) == 0;
}

/* --- scanning --- */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : end;
}

/* The end of the value at p; brackets are counted, not checked. */
static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
        } else {
            if (*p == '{' || *p == '[')
                depth++;
            if (*p == '}' || *p == ']')
                depth--;
            if (depth < 0 || (depth == 0 && (*p == ',' || isspace((unsigned char)*p))))
                return p;
            p++;
        }
        if (depth == 0 && (p[-1] == '"' || p[-1] == '}' || p[-1] == ']'))
            return p;
    }
    return end;
}

struct piece member(struct piece object, const char *key)
{
    const char *p = object.p, *end = object.p + object.n;
    if (!object.n || *p != '{')
        return (struct piece){NULL, 0};
    for (p = skip_space(p + 1, end); p < end && *p == '"'; p = skip_space(p, end)) {
        const char *name = p + 1;
        p = skip_string(p, end);
        struct piece found = {name, (size_t)(p - name - 1)};
        p = skip_space(p, end);
        if (p >= end || *p != ':')
            break;
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        if (piece_is(found, key))
            return (struct piece){value, (size_t)(p - value)};
        p = skip_space(p, end);
        if (p < end && *p == ',')
            p = skip_space(p + 1, end);
    }
    return (struct piece){NULL, 0};
}

struct piece member_text(struct piece object, const char *key)
{
    struct piece raw = member(object, key);
    if (raw.n < 2 || raw.p[0] != '"')
        return (struct piece){NULL, 0};
    return (struct piece){raw.p + 1, raw.n - 2};
}

double member_number(struct piece object, const char *key, double otherwise)
{
    struct piece raw = member(object, key);
    char digits[64];
    if (!raw.n || raw.n >= sizeof(digits))
        return otherwise;
    memcpy(digits, raw.p, raw.n);
    digits[raw.n] = 0;
    return strtod(digits, NULL);
}
