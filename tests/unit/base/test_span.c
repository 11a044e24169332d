#include "../unit.h"

static void test_equality(void **state)
{
    (void)state;
    assert_true(span_eq(SPAN_EMPTY, SPAN("")));
    assert_true(span_eq(SPAN("ab"), span_of("abc", 2)));
    assert_false(span_eq(SPAN("ab"), SPAN("aB")));
    assert_false(span_eq(SPAN("ab"), SPAN("abc")));
    assert_true(span_is(SPAN("x"), "x"));
    assert_true(span_is(SPAN_EMPTY, ""));
    assert_true(span_eq_nocase(SPAN("Content-TYPE"), SPAN("content-type")));
    assert_false(span_eq_nocase(SPAN("content-type"), SPAN("content_type")));
    assert_false(span_eq_nocase(SPAN("a"), SPAN("ab")));
    /* Only letters have case: these pairs differ in the same bit. */
    assert_false(span_eq_nocase(SPAN("@"), SPAN("`")));
    assert_false(span_eq_nocase(SPAN("["), SPAN("{")));
    /* Eight bytes are compared at once: every pair of bytes must give the same result as alone. */
    for (int i = 0; i < 256 * 256; i++) {
        char left[] = "xxxxxxxxx", right[] = "xXxXxXxXx";
        char one = (char)(i >> 8), other = (char)i;
        left[i % 8] = one;
        right[i % 8] = other;
        bool same = span_eq_nocase(span_of(&one, 1), span_of(&other, 1));
        assert_int_equal(span_eq_nocase(span_of(left, 9), span_of(right, 9)), same);
    }
    assert_true(span_has_nocase(SPAN("it Timed OUT again"), SPAN("timed out")));
    assert_true(span_has_nocase(SPAN("ends so"), SPAN("SO")));
    assert_true(span_has_nocase(SPAN_EMPTY, SPAN_EMPTY));
    assert_false(span_has_nocase(SPAN("time"), SPAN("timed")));
    assert_true(span_starts(SPAN("abc"), SPAN("ab")));
    assert_true(span_starts(SPAN("abc"), SPAN_EMPTY));
    assert_false(span_starts(SPAN("ab"), SPAN("abc")));
    assert_false(span_starts(SPAN_EMPTY, SPAN("a")));
}

static void test_cutting(void **state)
{
    struct span s = SPAN("abcdef");

    (void)state;
    assert_span(span_from(s, 0), "abcdef");
    assert_span(span_from(s, 4), "ef");
    assert_int_equal(span_from(s, 6).n, 0);
    assert_ptr_equal(span_from(s, 99).p, s.p + 6);
    assert_span(span_cut(s, 1, 2), "bc");
    assert_span(span_cut(s, 4, 99), "ef");
    assert_int_equal(span_cut(s, 7, 1).n, 0);
    assert_int_equal(span_cut(SPAN_EMPTY, 0, 5).n, 0);
    assert_int_equal(span_find(s, 'c'), 2);
    assert_int_equal(span_find(s, 'z'), 6);
    assert_int_equal(span_find(SPAN_EMPTY, 'z'), 0);
}

static void test_trim(void **state)
{
    (void)state;
    assert_span(span_trim(SPAN(" \t a b\t ")), "a b");
    assert_span(span_trim(SPAN("ab")), "ab");
    assert_span(span_trim(SPAN(" \t ")), "");
    assert_span(span_trim(SPAN_EMPTY), "");
    assert_span(span_trim(SPAN("\na\r")), "\na\r");
}

static void test_order(void **state)
{
    static const char *const sorted[] = {"", "A", "Aa", "B", "a", "a\x01", "aa", "\x80", "\xff"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sorted); i++) {
        for (size_t j = 0; j < COUNT_OF(sorted); j++) {
            int order = span_cmp(span_str(sorted[i]), span_str(sorted[j]));
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

static void test_glob(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"**", "x", true},
        {"?", "", false},
        {"?", "x", true},
        {"?", "xy", false},
        {"a*", "abc", true},
        {"a*", "ba", false},
        {"*c", "abc", true},
        {"*c", "abcd", false},
        {"a*c", "ac", true},
        {"a*c", "abcbc", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"Git*", "github", true},
        {"*_FILE", "read_file", true},
        {"[a]", "a", false},
        {"[a]", "[a]", true},
        {"a.c", "abc", false},
        {"\\*", "*", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (span_glob(span_str(cases[i].pattern), span_str(cases[i].text)) != cases[i].match)
            fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
}

/* The plain definition of matching; it takes exponential time, which is fine for a few bytes. */
static bool naive_glob(const char *p, const char *t)
{
    if (!*p)
        return !*t;
    if (*p == '*')
        return naive_glob(p + 1, t) || (*t && naive_glob(p, t + 1));
    return *t && (*p == '?' || *p == *t) && naive_glob(p + 1, t + 1);
}

static void test_glob_against_definition(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int round = 0; round < 50000; round++) {
        char pattern[9] = {0}, text[9] = {0};
        for (size_t i = unit_below(&seed, 9); i-- > 0;)
            pattern[i] = "ab*?"[unit_below(&seed, 4)];
        for (size_t i = unit_below(&seed, 9); i-- > 0;)
            text[i] = "ab"[unit_below(&seed, 2)];
        bool matches = naive_glob(pattern, text);
        if (span_glob(span_str(pattern), span_str(text)) != matches ||
            span_glob_exact(span_str(pattern), span_str(text)) != matches)
            fail_msg("\"%s\" on \"%s\"", pattern, text);
    }
}

/* A pattern for which backtracking matchers take exponential time. */
static void test_glob_is_fast(void **state)
{
    char text[20001], pattern[65] = {0};

    (void)state;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < 64; i += 2)
        memcpy(pattern + i, "a*", 2);
    pattern[63] = 'b';
    assert_false(span_glob(span_str(pattern), span_str(text)));
    assert_false(span_glob_exact(span_str(pattern), span_str(text)));
    assert_true(span_glob_exact(SPAN("/etc/*x"), SPAN("/etc/a/x")));
    assert_false(span_glob_exact(SPAN("/etc/*"), SPAN("/Etc/a")));
}

static void test_eq_secret(void **state)
{
    (void)state;
    assert_true(span_eq_secret(SPAN("token"), SPAN("token")));
    assert_false(span_eq_secret(SPAN("token"), SPAN("tokem")));
    assert_false(span_eq_secret(SPAN("tokentoken"), SPAN("token")));
    assert_false(span_eq_secret(SPAN("toke"), SPAN("token")));
    assert_false(span_eq_secret(SPAN_EMPTY, SPAN("token")));
    assert_false(span_eq_secret(SPAN_EMPTY, SPAN_EMPTY)); /* an empty text is never a secret */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eq_secret),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_glob_against_definition),
        cmocka_unit_test(test_glob_is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
