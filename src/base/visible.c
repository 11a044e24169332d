/* The table of invisible characters, and escaping them in texts of peers that people read. Called
 * by base/log.c, admin/approvals.c, browser/page.c, and parts of cmd/, hub/ and mcp/. */
#include "base/visible.h"

#include "base/mem.h"
#include "base/utf8.h"

/*
 * Controls, formats and fillers, in order. U+FE0F alone is left out of the variation selectors: it
 * follows many emoji, and a single one hides nothing.
 */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0000, 0x001f},   /* C0 */
    {0x007f, 0x009f},   /* DEL and C1 */
    {0x00ad, 0x00ad},   /* soft hyphen */
    {0x034f, 0x034f},   /* combining grapheme joiner */
    {0x061c, 0x061c},   /* Arabic letter mark */
    {0x115f, 0x1160},   /* Hangul fillers */
    {0x17b4, 0x17b5},   /* Khmer inherent vowels */
    {0x180b, 0x180f},   /* Mongolian selectors and separator */
    {0x200b, 0x200f},   /* zero width, marks of direction */
    {0x2028, 0x202e},   /* separators, directions of text */
    {0x2060, 0x206f},   /* word joiner, invisible operators, isolates */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xfe00, 0xfe0e},   /* variation selectors */
    {0xfeff, 0xfeff},   /* byte order mark */
    {0xffa0, 0xffa0},   /* halfwidth Hangul filler */
    {0xfff0, 0xfffb},   /* unassigned, interlinear annotation */
    {0x13430, 0x1343f}, /* Egyptian formats */
    {0x1bca0, 0x1bca3}, /* shorthand formats */
    {0x1d173, 0x1d17a}, /* musical formats */
    {0xe0000, 0xe0fff}, /* tags, more variation selectors */
};

static bool is_hidden(uint32_t code)
{
    for (size_t i = 0; i < COUNT_OF(hidden) && code >= hidden[i].first; i++)
        if (code <= hidden[i].last)
            return true;
    return false;
}

/* The code point of a sequence of `n` bytes, as measured by utf8_length. */
static uint32_t code_of(const char *start, size_t n)
{
    const unsigned char *p = (const unsigned char *)start;
    uint32_t code = n == 1 ? p[0] : p[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3fu);
    return code;
}

static void put_escape(struct buf *out, uint32_t code)
{
    if (code > 0xffff)
        buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    else
        buf_printf(out, "\\u%04x", code);
}

void visible_put(struct buf *out, struct span text, unsigned flags)
{
    for (size_t i = 0, n; i < text.n; i += n) {
        char c = text.p[i];
        n = utf8_length(text.p + i, text.p + text.n);
        if (!n) {
            buf_printf(out, "\\x%02x", (unsigned char)c);
            n = 1;
            continue;
        }
        bool kept = (flags & VISIBLE_LINES) && (c == '\n' || c == '\t');
        uint32_t code = code_of(text.p + i, n);
        if (kept || !is_hidden(code))
            buf_bytes(out, text.p + i, n);
        else
            put_escape(out, code);
    }
}
