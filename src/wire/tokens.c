/* Estimates the number of tokens of JSON text. Called by hub/graph/tool_list.c,
 * hub/graph/exposure.c and admin/tools.c. */
#include "wire/tokens.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "wire/json.h"

#include <stdint.h>

/* All costs are in hundredths of a token. */
enum { WHOLE = 100 };
/* After a word with an accent, the next words are likely of the same language, and the tokenizer
 * cuts them into more pieces than English words. */
enum { WORDS_ABROAD = 6, ACCENTED = 40 };

enum piece { PIECE_NONE, PIECE_WORD, PIECE_DIGITS, PIECE_MARKS, PIECE_BLANKS };

/* The pieces so far, and the one that is being read. */
struct token_count {
    uint64_t cost;
    unsigned abroad; /* number of next words that are likely not English */
    enum piece piece;
    size_t n;         /* characters of the piece */
    size_t capitals;  /* a word's capitals at its beginning */
    uint64_t foreign; /* a word's cost by its characters, if some are not ASCII; else 0 */
    bool accented;    /* some of these characters are Latin letters */
};

/* --- what a piece costs --- */

static uint64_t cost_of_word(struct token_count *c)
{
    if (c->foreign) {
        c->abroad = c->accented ? WORDS_ABROAD : 0;
        return c->foreign > WHOLE ? c->foreign : WHOLE;
    }
    if (c->abroad && c->abroad-- && c->n > 4)
        return 25 * c->n;
    if (c->capitals > 1 && c->n > 2)
        return c->n <= 5 ? 120 : 30 * c->n;
    return c->n <= 4 ? WHOLE : c->n <= 8 ? 107 : c->n <= 11 ? 112 : 150 + 35 * (c->n - 12);
}

static uint64_t cost_of_marks(size_t n)
{
    return n <= 3 ? WHOLE : n == 4 ? 130 : n == 5 ? 200 : 50 * n;
}

static void end_piece(struct token_count *c)
{
    static const size_t digits_at_once = 3;

    switch (c->piece) {
    case PIECE_WORD:
        c->cost += cost_of_word(c);
        break;
    case PIECE_DIGITS:
        c->cost += WHOLE * ((c->n + digits_at_once - 1) / digits_at_once);
        break;
    case PIECE_MARKS:
        c->cost += cost_of_marks(c->n);
        break;
    case PIECE_BLANKS:
        c->cost += WHOLE;
        break;
    case PIECE_NONE:
        break;
    }
    *c = (struct token_count){.cost = c->cost, .abroad = c->abroad};
}

/* --- characters --- */

/* What a character beyond ASCII adds to its word; 0: it is no letter. */
static unsigned cost_of_letter(uint32_t cp)
{
    static const struct {
        uint32_t end; /* the first character behind the range of the row */
        unsigned cost;
    } rows[] = {{0xc0, 0},    {0x250, ACCENTED}, {0x400, 38},  {0x530, 26},  {0x600, 50},
                {0x900, 38},  {0xe00, 40},       {0xe80, 34},  {0x1e00, 60}, {0x1f00, ACCENTED},
                {0x2000, 38}, {0x2c00, 0},       {0x3000, 60}, {0x3040, 0},  {0x3100, 75},
                {0xa000, 73}, {0xac00, 90},      {0xd7b0, 60}, {0xff00, 90}, {0xff10, 0},
                {0x10000, 90}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (cp < rows[i].end)
            return rows[i].cost;
    return 0; /* pictographs */
}

static void take_letter(struct token_count *c, bool capital, unsigned foreign)
{
    /* A single mark or blank before a word belongs to it. A capital begins the next word, unless it
     * follows capitals only. */
    bool joins = (c->piece == PIECE_MARKS && c->n == 1) || (c->piece == PIECE_BLANKS && c->n == 1);

    if (joins)
        *c = (struct token_count){.cost = c->cost, .abroad = c->abroad, .piece = PIECE_WORD};
    else if (c->piece != PIECE_WORD || (capital && c->capitals < c->n))
        end_piece(c);
    if (foreign && !c->foreign)
        c->foreign = 32 * c->n; /* the ASCII letters before it */
    if (foreign || c->foreign)
        c->foreign += foreign ? foreign : 32;
    c->piece = PIECE_WORD;
    c->accented |= foreign == ACCENTED;
    c->capitals += capital && c->capitals == c->n;
    c->n++;
}

static void take_mark(struct token_count *c)
{
    bool after_blank = c->piece == PIECE_BLANKS && c->n == 1;

    if (after_blank)
        *c = (struct token_count){.cost = c->cost, .abroad = c->abroad, .piece = PIECE_MARKS};
    else if (c->piece != PIECE_MARKS)
        end_piece(c);
    c->piece = PIECE_MARKS;
    c->n++;
}

static void take_plain(struct token_count *c, enum piece piece)
{
    if (c->piece != piece)
        end_piece(c);
    c->piece = piece;
    c->n++;
}

static void take(struct token_count *c, uint32_t cp)
{
    unsigned foreign = cp < 0x80 ? 0 : cost_of_letter(cp);

    if ((cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z') || foreign) {
        take_letter(c, cp >= 'A' && cp <= 'Z', foreign);
    } else if (cp >= '0' && cp <= '9') {
        take_plain(c, PIECE_DIGITS);
    } else if (cp == ' ' || cp == '\t' || cp == '\n' || cp == '\r') {
        take_plain(c, PIECE_BLANKS);
    } else if (cp < 0x80) {
        take_mark(c);
    } else {
        end_piece(c);
        c->cost += cp < 0x10000 ? WHOLE : 140;
    }
}

/* --- text --- */

/* The character at *at; moves *at behind it. A \uXXXX beyond ASCII is decoded. */
static uint32_t next(struct span text, size_t *at)
{
    unsigned char first = (unsigned char)text.p[(*at)++];
    uint32_t cp = first;

    if (first == '\\' && text.n - *at >= 5 && text.p[*at] == 'u') {
        uint32_t hex = 0;
        for (size_t i = 1; i <= 4; i++) {
            char h = text.p[*at + i];
            hex = hex * 16 + (uint32_t)(h <= '9' ? h - '0' : (h | 32) - 'a' + 10);
        }
        if (hex >= 0x80) {
            *at += 5;
            return hex;
        }
    }
    if (first < 0xc0)
        return cp;
    cp = first < 0xe0 ? first & 0x1fu : first < 0xf0 ? first & 0x0fu : first & 0x07u;
    while (*at < text.n && utf8_tail((unsigned char)text.p[*at]))
        cp = cp << 6 | ((unsigned char)text.p[(*at)++] & 0x3fu);
    return cp;
}

/* Counts as if the JSON had no blanks between its tokens. */
static size_t count_json(struct span json)
{
    struct token_count c = {0};
    bool inside = false; /* of a string */

    for (size_t at = 0; at < json.n;) {
        char byte = json.p[at];
        if (!inside && (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')) {
            at++;
            continue;
        }
        if (inside && byte == '\\' && at + 1 < json.n && json.p[at + 1] != 'u') {
            take(&c, '\\');
            take(&c, (unsigned char)json.p[at + 1]);
            at += 2;
            continue;
        }
        inside ^= byte == '"';
        take(&c, next(json, &at));
    }
    end_piece(&c);
    return (size_t)((c.cost + WHOLE / 2) / WHOLE);
}

size_t tokens_of_tool(struct span tool)
{
    static const char *const members[] = {"name", "description", "inputSchema"};
    BUF_SCOPED text = {0};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct json_slot slot = json_get(tool, members[i]);
        if (slot.type != JSON_NONE)
            buf_printf(&text, "%s\"%s\":" SPAN_FMT, text.n ? "," : "{", members[i],
                       SPAN_ARG(slot.value));
    }
    buf_char(&text, '}');
    return count_json(buf_view(&text));
}
