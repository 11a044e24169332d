/* Growing a buffer, appending bytes, numbers and formatted text to it, and dropping bytes from its
 * front. Called by every folder. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>

void buf_fini(struct buf *b)
{
    if (!b->p)
        return;
    mem_free(b->p);
    *b = (struct buf){0};
}

static __attribute__((noinline)) void grow(struct buf *b, size_t extra)
{
    size_t cap = b->cap ? b->cap : 64;

    while (cap - b->n < extra)
        cap *= 2;
    b->p = mem_resize(b->p, cap);
    b->cap = cap;
}

static inline char *room(struct buf *b, size_t extra)
{
    if (b->cap - b->n < extra)
        grow(b, extra);
    return b->p + b->n;
}

char *buf_room(struct buf *b, size_t extra)
{
    /* NULL if no room was asked for and nothing is allocated */
    return extra || b->p ? room(b, extra) : NULL;
}

void buf_bytes(struct buf *b, const void *p, size_t n)
{
    if (!n)
        return;
    memcpy(room(b, n), p, n);
    b->n += n;
}

void buf_char(struct buf *b, char c)
{
    *room(b, 1) = c;
    b->n++;
}

void buf_u64(struct buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    buf_bytes(b, digits + at, sizeof digits - at);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char *room = buf_room(b, 32);
    size_t left = b->cap - b->n;
    int n = vsnprintf(room, left, fmt, ap);
    if (n > 0) {
        /* The text is formatted a second time only if it did not fit. */
        if ((size_t)n >= left)
            vsnprintf(buf_room(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *buf_cstr(struct buf *b)
{
    *buf_room(b, 1) = '\0';
    return b->p;
}

void buf_drop(struct buf *b, size_t n)
{
    if (n >= b->n) {
        b->n = 0;
        return;
    }
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

void buf_reset(struct buf *b, size_t keep)
{
    b->n = 0;
    if (b->cap > keep)
        buf_fini(b);
}

char *buf_take(struct buf *b)
{
    char *s = (char *)(uintptr_t)buf_cstr(b);
    *b = (struct buf){0};
    return s;
}
