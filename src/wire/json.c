/* The JSON reader: the skimmer that validates a text and fills in a shape's slots, and iteration
 * over members of checked text. Called by rpc.c and by most folders, for all JSON that is read;
 * json_text.c has strings and numbers. */
#include "wire/json.h"

#include "base/ascii.h"
#include "base/utf8.h"
#include "wire/json_scan.h"

#include <assert.h>

/*
 * One reading of a text. The functions below take a pointer to read from and return the pointer
 * behind what they read, or NULL after skim_fail.
 */
struct skim {
    const char *end;
    struct json_slot *inner; /* slots of the shapes inside the outermost one */
    unsigned depth;          /* open objects that have a shape */
    const char *at;          /* where the text is wrong */
    int error;
    bool line_ends; /* there is a CR or LF between tokens */
};

__attribute__((cold, noinline)) static const char *skim_fail(struct skim *s, const char *at,
                                                             int error)
{
    s->at = at;
    s->error = error;
    return NULL;
}

/* `p` is at a backslash. Surrogate pairs are not checked here: the grammar does not require
 * them. */
static const char *skim_escape(struct skim *s, const char *p)
{
    p++;
    if (p == s->end)
        return skim_fail(s, p, ERR_SYNTAX);
    switch (*p++) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p;
    case 'u':
        for (int i = 0; i < 4; i++, p++)
            if (p == s->end || ascii_hex(*p) < 0)
                return skim_fail(s, p, ERR_SYNTAX);
        return p;
    default:
        return skim_fail(s, p - 1, ERR_SYNTAX);
    }
}

/* The rest of a string; `p` is where scan_text has stopped. */
static const char *skim_string_rest(struct skim *s, const char *p)
{
    const char *const end = s->end;

    for (;;) {
        if (p == end)
            return skim_fail(s, p, ERR_SYNTAX);
        if (*p == '"')
            return p + 1;
        if (*p == '\\') {
            p = skim_escape(s, p);
            if (!p)
                return NULL;
        } else if ((signed char)*p >= 0) {
            return skim_fail(s, p, ERR_SYNTAX);
        }
        /* Non-ASCII characters come in runs. */
        while (p < end && (signed char)*p < 0) {
            size_t n = utf8_length(p, end);
            if (!n)
                return skim_fail(s, p, ERR_UTF8);
            p += n;
        }
        p = scan_text(p, end);
    }
}

/* `p` is behind the opening quote. */
static inline const char *skim_string(struct skim *s, const char *p)
{
    p = scan_text(p, s->end);
    if (p < s->end && *p == '"')
        return p + 1;
    return skim_string_rest(s, p);
}

/* Skips white space, which most messages do not have; notes line ends in it. */
static __attribute__((noinline)) const char *skim_blanks(struct skim *s, const char *p)
{
    const char *blank = p;

    p = scan_space(p, s->end);
    for (; blank < p && !s->line_ends; blank++)
        s->line_ends = *blank == '\n' || *blank == '\r';
    return p;
}

static inline const char *skim_space(struct skim *s, const char *p)
{
    return p < s->end && (unsigned char)*p > ' ' ? p : skim_blanks(s, p);
}

/*
 * Moves *p over white space and returns the next byte; at the end of the text '\0', which no rule
 * of the grammar accepts.
 */
static inline char skim_peek(struct skim *s, const char **p)
{
    *p = skim_space(s, *p);
    return *p < s->end ? **p : '\0';
}

/* A member's key and its colon. */
static inline const char *skim_key(struct skim *s, const char *p)
{
    if (skim_peek(s, &p) != '"')
        return skim_fail(s, p, ERR_SYNTAX);
    p = skim_string(s, p + 1);
    if (!p)
        return NULL;
    if (skim_peek(s, &p) != ':')
        return skim_fail(s, p, ERR_SYNTAX);
    return p + 1;
}

static const char *skim_digits(struct skim *s, const char *p)
{
    if (p == s->end || !ascii_is_digit(*p))
        return skim_fail(s, p, ERR_SYNTAX);
    while (p < s->end && ascii_is_digit(*p))
        p++;
    return p;
}

static const char *skim_number(struct skim *s, const char *p)
{
    if (p < s->end && *p == '-')
        p++;
    if (p < s->end && *p == '0')
        p++;
    else
        p = skim_digits(s, p);
    if (p && p < s->end && *p == '.')
        p = skim_digits(s, p + 1);
    if (p && p < s->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < s->end && (*p == '+' || *p == '-'))
            p++;
        p = skim_digits(s, p);
    }
    return p;
}

static inline const char *skim_word(struct skim *s, const char *p, struct span word)
{
    if (!span_starts(span_of(p, (size_t)(s->end - p)), word))
        return skim_fail(s, p, ERR_SYNTAX);
    return p + word.n;
}

/* A value that is neither string, object nor array; `c` is its first byte. */
static const char *skim_scalar(struct skim *s, const char *p, char c)
{
    switch (c) {
    case 't':
        return skim_word(s, p, SPAN("true"));
    case 'f':
        return skim_word(s, p, SPAN("false"));
    case 'n':
        return skim_word(s, p, SPAN("null"));
    default:
        return skim_number(s, p);
    }
}

/* A value that no shape looks into, with everything inside it. */
static const char *skim_plain(struct skim *s, const char *p)
{
    const unsigned allowed = JSON_MAX_DEPTH - s->depth;
    char closers[JSON_MAX_DEPTH]; /* the brackets that end the containers around the innermost */
    unsigned depth = 0;
    char closer = 0; /* the bracket that ends the innermost open container */

    for (;;) {
        char c = skim_peek(s, &p);
        if (c == '{' || c == '[') {
            if (depth == allowed)
                return skim_fail(s, p, ERR_DEPTH);
            closers[depth++] = closer;
            closer = c == '{' ? '}' : ']';
            p++;
            if (skim_peek(s, &p) != closer) {
                if (closer == '}' && !(p = skim_key(s, p)))
                    return NULL;
                continue;
            }
        } else {
            p = c == '"' ? skim_string(s, p + 1) : skim_scalar(s, p, c);
            if (!p)
                return NULL;
        }
        /* After a value: close the containers that end here, then go on to the next value. */
        for (;;) {
            if (!depth)
                return p;
            c = skim_peek(s, &p);
            if (c == ',')
                break;
            if (c != closer)
                return skim_fail(s, p, ERR_SYNTAX);
            p++;
            closer = closers[--depth];
        }
        p++;
        if (closer == '}' && !(p = skim_key(s, p)))
            return NULL;
    }
}

/* `raw` is a key with its quotes. Keys of shapes are plain ASCII, so only a key with escapes needs
 * a closer comparison. */
static bool key_is(struct span raw, const char *name)
{
    const char *p = raw.p + 1, *end = raw.p + raw.n - 1, *left = name;

    while (p < end && *p == *left) {
        p++;
        left++;
    }
    if (p < end && *p == '\\')
        return json_string_is(raw, span_str(name));
    return p == end && !*left;
}

/* Index of the row for a key, or shape->n. */
static size_t shape_find(const struct json_shape *shape, struct span key)
{
    const char first = key.p[1]; /* the closing quote if the key is empty */
    size_t i = 0;

    while (i < shape->n &&
           ((shape->rows[i].key[0] != first && first != '\\') || !key_is(key, shape->rows[i].key)))
        i++;
    return i;
}

static const char *skim_object(struct skim *s, const char *p, const struct json_shape *shape,
                               struct json_slot *slots);

/* A slot for the value from `value` to `end`. */
static inline void fill_slot(struct json_slot *slot, const char *key, const char *value,
                             const char *end)
{
    slot->value = span_of(value, (size_t)(end - value));
    slot->member = span_of(key, (size_t)(end - key));
    slot->type = json_type_of(slot->value);
}

/* A member that the shape does not have; `p` is at its value. */
static const char *skim_other(struct skim *s, const char *key, const char *p,
                              const struct json_shape *shape, struct json_slot *slots)
{
    const char *value = p;

    p = skim_plain(s, p);
    if (!p || !shape->lookalike)
        return p;
    struct span name = span_of(key, (size_t)(scan_string(key + 1, p) - key));
    for (size_t i = 0; i < shape->n; i++)
        if (json_string_resembles(name, span_str(shape->rows[i].key)))
            fill_slot(&slots[shape->lookalike], key, value, p);
    return p;
}

/*
 * One member of an object with a shape; `p` is at the key. `seen` has a bit for each row of the
 * shape that this object has already had.
 */
static const char *skim_member(struct skim *s, const char *p, const struct json_shape *shape,
                               struct json_slot *slots, uint64_t *seen)
{
    const char *key = p;

    if (p == s->end || *p != '"')
        return skim_fail(s, p, ERR_SYNTAX);
    p = skim_string(s, p + 1);
    if (!p)
        return NULL;
    size_t i = shape_find(shape, span_of(key, (size_t)(p - key)));
    p = skim_space(s, p);
    if (p == s->end || *p != ':')
        return skim_fail(s, p, ERR_SYNTAX);
    p = skim_space(s, p + 1);
    if (i == shape->n)
        return skim_other(s, key, p, shape, slots);

    const struct json_shape_row *row = &shape->rows[i];
    if (*seen & (uint64_t)1 << i)
        return skim_fail(s, key, ERR_DUPLICATE);
    *seen |= (uint64_t)1 << i;
    const char *value = p;
    if (row->inside && p < s->end && *p == '{')
        p = skim_object(s, p, row->inside, s->inner);
    else
        p = skim_plain(s, p);
    if (p)
        fill_slot(&slots[row->slot], key, value, p);
    return p;
}

/*
 * An object of which `shape` wants members; `p` is at the brace. Calls itself through skim_member
 * for shapes inside the shape, at most JSON_MAX_DEPTH deep.
 */
static const char *skim_object(struct skim *s, const char *p, const struct json_shape *shape,
                               struct json_slot *slots)
{
    uint64_t seen = 0;

    assert(shape->n <= JSON_MAX_ROWS);
    if (s->depth == JSON_MAX_DEPTH)
        return skim_fail(s, p, ERR_DEPTH);
    s->depth++;
    p = skim_space(s, p + 1);
    if (p == s->end || *p != '}') {
        for (;;) {
            p = skim_member(s, p, shape, slots, &seen);
            if (!p)
                return NULL;
            p = skim_space(s, p);
            if (p == s->end || *p != ',')
                break;
            p = skim_space(s, p + 1);
        }
        if (p == s->end || *p != '}')
            return skim_fail(s, p, ERR_SYNTAX);
    }
    s->depth--;
    return p + 1;
}

/* All of the text, which must be one value. Members of `shape` go to `outer`. */
static enum json_type skim_all(struct skim *s, struct span text, const struct json_shape *shape,
                               struct json_slot *outer)
{
    const char *value = skim_space(s, text.p), *p;

    if (shape && value < s->end && *value == '{')
        p = skim_object(s, value, shape, outer);
    else
        p = skim_plain(s, value);
    if (p) {
        p = skim_space(s, p);
        if (p < s->end)
            skim_fail(s, p, ERR_SYNTAX);
    }
    return s->error ? JSON_NONE : json_type_of(span_of(value, (size_t)(s->end - value)));
}

int json_skim_envelope(struct span text, const struct json_shape *shape, struct json_slot *outer,
                       struct json_slot *inner, enum json_type *type, bool *one_line)
{
    /* An empty span may be NULL, on which pointer arithmetic is undefined. */
    if (!text.n)
        text.p = "";

    struct skim s = {.end = text.p + text.n, .inner = inner};
    *type = skim_all(&s, text, shape, outer);
    *one_line = !s.line_ends;
    return s.error;
}

int json_skim(struct span text, const struct json_shape *shape, struct json_slot *slots,
              enum json_type *type, size_t *at)
{
    if (!text.n)
        text.p = "";

    struct skim s = {.end = text.p + text.n, .inner = slots};
    enum json_type found = skim_all(&s, text, shape, slots);
    if (s.error && at)
        *at = (size_t)(s.at - text.p);
    else if (!s.error && type)
        *type = found;
    return s.error;
}

enum json_type json_type_of(struct span value)
{
    if (!value.n)
        return JSON_NONE;
    switch (value.p[0]) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return value.p[0] == '-' || ascii_is_digit(value.p[0]) ? JSON_NUMBER : JSON_NONE;
    }
}

#if JSON_SCAN_SIMD
/* Takes the 1st, 3rd, ... set bit as a start and the next set bit as its end, and sets all bits
 * from each start up to, but not including, its end. */
static unsigned bits_between(unsigned bits)
{
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    return bits;
}

/* Which bytes follow a backslash that is not escaped; *carry tells whether the first one does. */
static unsigned bits_escaped(unsigned backslashes, unsigned *carry)
{
    unsigned escaped = *carry;

    backslashes &= ~escaped;
    while (backslashes) {
        unsigned bit = backslashes & -backslashes;
        escaped |= bit << 1;
        backslashes &= ~(bit | bit << 1);
    }
    *carry = escaped >> SCAN_STEP;
    return escaped;
}
#endif

/*
 * The pointer behind the validated object or array at `p`; `end` when that is not closed. Only
 * brackets outside of strings are looked at.
 */
static const char *skip_container(const char *p, const char *end)
{
    unsigned depth = 0, escaped = 0, inside = 0; /* inside: all bits set within a string */

#if JSON_SCAN_SIMD
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        __m128i v = scan_load(p);
        unsigned quotes = scan_bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
        unsigned backslashes = scan_bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        if (backslashes | escaped)
            quotes &= ~bits_escaped(backslashes, &escaped);
        if (!quotes && inside)
            continue;
        unsigned text = bits_between(quotes) ^ inside;
        inside = 0 - (text >> (SCAN_STEP - 1) & 1);
        /* This bit turns brackets into braces, and no other byte into a brace. */
        v = _mm_or_si128(v, _mm_set1_epi8(0x20));
        unsigned brackets = scan_bits(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('{')),
                                                   _mm_cmpeq_epi8(v, _mm_set1_epi8('}'))));
        for (brackets &= ~text; brackets; brackets &= brackets - 1) {
            const char *at = p + scan_first(brackets);
            if (*at == '{' || *at == '[')
                depth++;
            else if (--depth == 0)
                return at + 1;
        }
    }
#endif
    for (; p < end; p++) {
        if (escaped)
            escaped = 0;
        else if (*p == '\\')
            escaped = 1;
        else if (*p == '"')
            inside = !inside;
        else if (!inside && (*p == '{' || *p == '['))
            depth++;
        else if (!inside && (*p == '}' || *p == ']') && --depth == 0)
            return p + 1;
    }
    return end;
}

/*
 * The pointer behind the validated value at `p`. Nothing is checked again, but even in a text that
 * was never validated the result is at most `end`.
 */
static const char *skip_value(const char *p, const char *end)
{
    if (p == end)
        return end;
    if (*p == '"')
        return scan_string(p + 1, end);
    if (*p == '{' || *p == '[')
        return skip_container(p, end);
    while (p < end && *p != ',' && *p != ']' && *p != '}' && !scan_is_space(*p))
        p++;
    return p;
}

unsigned json_depth(struct span value)
{
    const char *p = value.p, *end = value.p + value.n;
    unsigned depth = 0, most = 0;

    while (p < end) {
        char c = *p++;
        if (c == '"')
            p = scan_string(p, end);
        else if (c == '{' || c == '[')
            most = ++depth > most ? depth : most;
        else if (c == '}' || c == ']')
            depth--;
    }
    return most;
}

struct json_iter json_iter(struct span container)
{
    struct span c = scan_trim(container);
    enum json_type type = json_type_of(c);

    if (type != JSON_OBJECT && type != JSON_ARRAY)
        return (struct json_iter){.rest = SPAN_EMPTY};
    return (struct json_iter){
        .rest = span_from(c, 1), .first = true, .object = type == JSON_OBJECT};
}

bool json_next(struct json_iter *it)
{
    if (!it->rest.n)
        return false;
    const char *end = it->rest.p + it->rest.n, *p = scan_space(it->rest.p, end);

    if (!it->first && p < end && *p == ',')
        p = scan_space(p + 1, end);
    it->first = false;
    if (p == end || *p == '}' || *p == ']') {
        it->rest = SPAN_EMPTY;
        return false;
    }
    const char *member = p;
    it->key = SPAN_EMPTY;
    if (it->object) {
        const char *key_end = skip_value(p, end);
        it->key = span_of(p, (size_t)(key_end - p));
        p = scan_space(key_end, end);
        p = scan_space(p < end ? p + 1 : p, end);
    }
    const char *value_end = skip_value(p, end);
    it->value = span_of(p, (size_t)(value_end - p));
    it->type = json_type_of(it->value);
    it->member = span_of(member, (size_t)(value_end - member));
    it->rest = span_of(value_end, (size_t)(end - value_end));
    return true;
}

struct json_slot json_get(struct span object, const char *key)
{
    struct json_iter it = json_iter(object);

    while (it.object && json_next(&it)) {
        if (json_string_is(it.key, span_str(key)))
            return (struct json_slot){it.type, it.value, it.member};
    }
    return (struct json_slot){.type = JSON_NONE};
}
