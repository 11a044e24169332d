/*
 * buf: a growable run of bytes with one owner.
 *
 * Append at the end, drop from the front. A zeroed struct buf is empty and valid. Spans into a buf
 * are valid until the next call that may append to it.
 */
#ifndef RIALTO_BASE_BUF_H
#define RIALTO_BASE_BUF_H

#include "base/span.h"

#include <stdarg.h>
#include <stdint.h>

struct buf {
    char *p;
    size_t n;
    size_t cap;
};

void buf_fini(struct buf *b);

/* A local buffer that is freed at the end of its block: BUF_SCOPED text = {0}; */
#define BUF_SCOPED __attribute__((cleanup(buf_fini))) struct buf

/* Makes room for `extra` more bytes and returns where they go. The caller adds the number of bytes
 * written to b->n. */
char *buf_room(struct buf *b, size_t extra);

void buf_bytes(struct buf *b, const void *p, size_t n);
void buf_char(struct buf *b, char c);
void buf_u64(struct buf *b, uint64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

static inline void buf_span(struct buf *b, struct span s)
{
    buf_bytes(b, s.p, s.n);
}

static inline void buf_str(struct buf *b, const char *s)
{
    buf_bytes(b, s, strlen(s));
}

static inline struct span buf_view(const struct buf *b)
{
    return (struct span){b->p, b->n};
}

/* NUL-terminates in place (not counted in n) so that C functions can read the text. */
const char *buf_cstr(struct buf *b);

/* Remove `n` bytes from the front. */
void buf_drop(struct buf *b, size_t n);

/* Empty the buffer; memory above `keep` bytes of capacity is freed. */
void buf_reset(struct buf *b, size_t keep);

/* Take the bytes out as a NUL-terminated string owned by the caller; the buf is empty after. */
char *buf_take(struct buf *b);

#endif
