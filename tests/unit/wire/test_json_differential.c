/*
 * Our reader against another parser, on random JSON and on the same text damaged at random. Both
 * must agree on what is JSON and on every value. Where they may differ, and why:
 *
 *   range      numbers that a 64-bit integer or a double cannot hold. We pass number lexemes
 *              through and never convert them; jansson must convert and refuses.
 *   surrogate  \ud800 without its other half. The grammar of RFC 8259 allows it, so we accept it
 *              (and read it as U+FFFD); jansson refuses.
 *   nul_key    \u0000 in a key, which jansson's C strings cannot hold. We can.
 *   depth      we stop at JSON_MAX_DEPTH, jansson far deeper.
 *   NUL        jansson 2.14 skips a NUL byte after a number ("[1\0]"): a bug there.
 *
 * Equal keys are no difference here: without a shape we accept them, and jansson keeps the last, as
 * our account does. test_json.c tests how a shape treats them.
 */
#include "../unit.h"

#include "base/buf.h"
#include "jansson_oracle.h"
#include "wire/json.h"

enum { ROUNDS = 4000, ACCIDENTS = 12 };

struct account {
    struct buf text; /* as in jansson_oracle.c */
    bool range, surrogate, nul_key;
};

/* The four hex digits of a checked escape. */
static unsigned unit_at(const char *p)
{
    char digits[5] = {0};

    memcpy(digits, p, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

static bool has_lone_surrogate(struct span raw)
{
    for (size_t i = 0; i + 5 < raw.n; i++) {
        if (raw.p[i] != '\\')
            continue;
        if (raw.p[i + 1] != 'u') {
            i++;
            continue;
        }
        unsigned unit = unit_at(raw.p + i + 2);
        i += 5;
        if (unit < 0xd800 || unit > 0xdfff)
            continue;
        if (unit >= 0xdc00 || i + 6 >= raw.n || raw.p[i + 1] != '\\' || raw.p[i + 2] != 'u')
            return true;
        unsigned low = unit_at(raw.p + i + 3);
        if (low < 0xdc00 || low > 0xdfff)
            return true;
        i += 6;
    }
    return false;
}

static void put_string(struct account *a, struct span raw, bool key)
{
    struct buf b = {0};

    if (has_lone_surrogate(raw))
        a->surrogate = true;
    json_unescape(&b, raw);
    if (key && b.n && memchr(b.p, '\0', b.n))
        a->nul_key = true;
    buf_printf(&a->text, "s%zu:", b.n);
    buf_span(&a->text, buf_view(&b));
    buf_fini(&b);
}

static void put_number(struct account *a, struct span raw)
{
    bool real =
        span_find(raw, '.') < raw.n || span_find(raw, 'e') < raw.n || span_find(raw, 'E') < raw.n;
    int64_t i = 0;
    double d = 0;

    if (!real && json_int(raw, &i))
        buf_printf(&a->text, "i%lld", (long long)i);
    else if (real && json_double(raw, &d))
        buf_printf(&a->text, "r%.17g", d);
    else
        a->range = true;
}

static bool same_key(struct span a, struct span b)
{
    struct buf x = {0};
    json_unescape(&x, a);
    bool same = json_string_is(b, buf_view(&x));
    buf_fini(&x);
    return same;
}

static void put_value(struct account *a, struct span value);

/* If a key occurs several times, its last value is written at the position of the first. */
static void put_object(struct account *a, struct span object)
{
    for (struct json_iter it = json_iter(object); json_next(&it);) {
        struct span value = it.value;
        bool repeated = false;
        for (struct json_iter other = json_iter(object); json_next(&other);) {
            if (!same_key(it.key, other.key))
                continue;
            repeated = repeated || other.key.p < it.key.p;
            value = other.value;
        }
        /* Values that a later one replaces are not in the account, but set its flags. */
        size_t before = a->text.n;
        put_value(a, it.value);
        a->text.n = before;
        if (repeated)
            continue;
        put_string(a, it.key, true);
        put_value(a, value);
    }
}

static void put_value(struct account *a, struct span value)
{
    switch (json_type_of(value)) {
    case JSON_NULL:
        buf_char(&a->text, 'n');
        break;
    case JSON_TRUE:
        buf_char(&a->text, 't');
        break;
    case JSON_FALSE:
        buf_char(&a->text, 'f');
        break;
    case JSON_NUMBER:
        put_number(a, value);
        break;
    case JSON_STRING:
        put_string(a, value, false);
        break;
    case JSON_ARRAY:
        buf_char(&a->text, '[');
        for (struct json_iter it = json_iter(value); json_next(&it);)
            put_value(a, it.value);
        buf_char(&a->text, ']');
        break;
    case JSON_OBJECT:
        buf_char(&a->text, '{');
        put_object(a, value);
        buf_char(&a->text, '}');
        break;
    case JSON_NONE:
        fail_msg("a checked value without type");
    }
}

static struct span trimmed(struct span s)
{
    while (s.n && strchr(" \t\r\n", s.p[0]))
        s = span_from(s, 1);
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* How often each outcome occurred: a run with only refusals would prove nothing. */
struct tally {
    unsigned accepted, refused, named;
};

static void compare(struct span text, struct tally *tally)
{
    struct span copy = unit_exact(text);
    struct buf theirs = {0};
    struct account ours = {0};
    int error = json_skim(copy, NULL, NULL, NULL, NULL);
    bool accepted = oracle_read(copy, &theirs);

    if (!error)
        put_value(&ours, trimmed(copy));
    bool named = ours.range || ours.surrogate || ours.nul_key;
    if (error && accepted && error != ERR_DEPTH && span_find(copy, '\0') == copy.n)
        fail_msg("we refuse (%d), jansson accepts: " SPAN_FMT, error, SPAN_ARG(text));
    if (!error && !accepted && !named)
        fail_msg("we accept, jansson refuses: " SPAN_FMT, SPAN_ARG(text));
    if (!error && accepted && !span_eq(buf_view(&ours.text), buf_view(&theirs)))
        fail_msg("different values in: " SPAN_FMT, SPAN_ARG(text));
    tally->accepted += !error && accepted;
    tally->refused += error && !accepted;
    tally->named += !error != accepted;
    buf_fini(&ours.text);
    buf_fini(&theirs);
    unit_free(copy);
}

static void make_space(struct buf *b, uint64_t *seed)
{
    while (unit_below(seed, 8) == 0)
        buf_char(b, " \t\r\n"[unit_below(seed, 4)]);
}

static void make_string(struct buf *b, uint64_t *seed, bool key)
{
    /* The last one is for values only, or every second text would be a named difference. */
    static const char *const bits[] = {
        "a",
        "name",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b",
        "\\n",
        "\\u0041",
        "\\u00e9",
        "\\u20ac",
        "\\ud83d\\ude00",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "\x7f",
        "]",
        "}",
        ",",
        "a run of more than sixteen bytes",
        "\\u0000",
    };

    buf_char(b, '"');
    while (unit_below(seed, 4))
        buf_str(b, bits[unit_below(seed, COUNT_OF(bits) - key)]);
    buf_char(b, '"');
}

static void make_number(struct buf *b, uint64_t *seed)
{
    static const char *const exponents[] = {"e", "E", "e+", "E-"};

    if (unit_below(seed, 3) == 0)
        buf_char(b, '-');
    buf_u64(b, unit_random(seed) >> 1 >> unit_below(seed, 63));
    if (unit_below(seed, 4) == 0)
        buf_printf(b, ".%0*zu", (int)unit_below(seed, 8), unit_below(seed, 1000));
    if (unit_below(seed, 4) == 0) {
        buf_str(b, exponents[unit_below(seed, COUNT_OF(exponents))]);
        buf_u64(b, unit_below(seed, 290));
    }
}

static void make_value(struct buf *b, uint64_t *seed, size_t depth)
{
    static const char *const words[] = {"null", "true", "false"};
    size_t kind = unit_below(seed, depth < 6 ? 8 : 5);

    if (depth == 0 && unit_below(seed, 8))
        kind = 5 + unit_below(seed, 3);
    make_space(b, seed);
    if (kind < 3) {
        buf_str(b, words[kind]);
    } else if (kind == 3) {
        make_number(b, seed);
    } else if (kind == 4) {
        make_string(b, seed, false);
    } else {
        bool object = kind > 5;
        buf_char(b, object ? '{' : '[');
        make_space(b, seed);
        for (size_t i = 0, n = unit_below(seed, 6); i < n; i++) {
            if (i)
                buf_char(b, ',');
            if (object) {
                make_space(b, seed);
                make_string(b, seed, true);
                make_space(b, seed);
                buf_char(b, ':');
            }
            make_value(b, seed, depth + 1);
        }
        buf_char(b, object ? '}' : ']');
    }
    make_space(b, seed);
}

/* Damages a text: bytes lost, changed, doubled or inserted. */
static void have_accident(struct buf *b, uint64_t *seed)
{
    static const char *const debris[] = {"\"",
                                         "\\",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "0",
                                         "-",
                                         ".",
                                         "e",
                                         " ",
                                         "\n",
                                         "\x1f",
                                         "\x80",
                                         "\xff",
                                         "\xc3",
                                         "\xe0\x80\x80",
                                         "u",
                                         "\\u",
                                         "true",
                                         "null",
                                         "\\ud800",
                                         "\\udc00",
                                         "1e999"};
    size_t at = unit_below(seed, b->n + 1), n = unit_below(seed, 4);
    struct buf out = {0};

    buf_bytes(&out, b->p, at);
    switch (unit_below(seed, 5)) {
    case 0:
        at += n;
        break;
    case 1:
        buf_str(&out, debris[unit_below(seed, COUNT_OF(debris))]);
        break;
    case 2:
        buf_str(&out, debris[unit_below(seed, COUNT_OF(debris))]);
        at++;
        break;
    case 3:
        buf_span(&out, span_cut(buf_view(b), unit_below(seed, b->n + 1), n));
        break;
    default:
        buf_char(&out, (char)unit_random(seed));
        at++;
    }
    if (at < b->n)
        buf_bytes(&out, b->p + at, b->n - at);
    buf_fini(b);
    *b = out;
}

static void test_random_json(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t seed = round;
        struct buf b = {0};
        make_value(&b, &seed, 0);
        compare(buf_view(&b), &tally);
        buf_fini(&b);
    }
    assert_int_equal(tally.refused, 0);
    assert_true(tally.accepted > ROUNDS / 10 * 9);
}

static void test_random_accidents(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t seed = round + 1000000;
        struct buf whole = {0};
        make_value(&whole, &seed, 0);
        for (size_t i = 0; i < ACCIDENTS; i++) {
            struct buf b = {0};
            buf_span(&b, buf_view(&whole));
            for (size_t n = 0; n <= i / 4; n++)
                have_accident(&b, &seed);
            compare(buf_view(&b), &tally);
            buf_fini(&b);
        }
        buf_fini(&whole);
    }
    assert_true(tally.accepted > ROUNDS);
    assert_true(tally.refused > ROUNDS);
    assert_true(tally.named > 0);
}

/* Each difference listed at the top of this file must really exist. */
static void test_named_differences(void **state)
{
    static const char *const ours_only[] = {
        "9223372036854775808", "-9223372036854775809", "1e400",
        "\"\\ud800\"",         "\"\\udc00\"",          "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",  "{\"a\\u0000b\":1}",
    };
    struct buf account = {0}, deep = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ours_only); i++) {
        struct tally tally = {0};
        compare(span_str(ours_only[i]), &tally);
        assert_int_equal(tally.named, 1);
    }
    for (int i = 0; i <= JSON_MAX_DEPTH; i++)
        buf_char(&deep, '[');
    for (int i = 0; i <= JSON_MAX_DEPTH; i++)
        buf_char(&deep, ']');
    assert_int_equal(json_skim(buf_view(&deep), NULL, NULL, NULL, NULL), ERR_DEPTH);
    assert_true(oracle_read(buf_view(&deep), &account));
    assert_int_equal(json_skim(SPAN("[1\0]"), NULL, NULL, NULL, NULL), ERR_SYNTAX);
    buf_fini(&deep);
    buf_fini(&account);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_json),
        cmocka_unit_test(test_random_accidents),
        cmocka_unit_test(test_named_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
