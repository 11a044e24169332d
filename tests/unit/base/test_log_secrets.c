/*
 * The redactor compared texts with the secrets byte by byte. When a server put its secret into
 * JSON, a URL or a header, or printed a key line by line, the secret was visible in logs and pages.
 */
#include "../unit.h"

#include "base/base64.h"
#include "base/log.h"

#include <stdio.h>

static int forget(void **state)
{
    (void)state;
    log_forget_secrets();
    return 0;
}

static void check_redact(const char *text, const char *expected)
{
    struct span copy = unit_exact(span_str(text));
    struct buf b = {0};

    log_redact(&b, copy);
    assert_string_equal(buf_cstr(&b), expected);
    buf_fini(&b);
    unit_free(copy);
}

/* Every row: a secret, a text that contains it in some encoding, and the redacted text. */
static void test_forms(void **state)
{
    static const struct {
        const char *secret, *shown, *expected;
    } rows[] = {
        {"pa\"ss\\w/d", "[pa\"ss\\w/d]", "[***]"},
        {"pa\"ss\\w/d", "[pa\\\"ss\\\\w\\/d]", "[***]"},
        {"pa\"ss\\w/d", "[pa\\u0022ss\\u005Cw\\u002fd]", "[***]"},
        {"pa\"ss\\w/d", "[pa\\\\\\\"ss\\\\\\\\w\\\\/d]", "[***]"}, /* JSON in JSON */
        {"pa\"ss\\w/d", "[pa%22ss%5Cw%2fd]", "[***]"},
        {"pa\"ss\\w/d", "[pa%2522ss%255Cw%252fd]", "[***]"},
        {"pa\"ss\\w/d", "[pa&quot;ss\\w/d]", "[***]"},
        {"pa\"ss\\w/d", "[pa&amp;quot;ss&#92;w&#x2F;d]", "[***]"},
        {"caf\xc3\xa9-1", "caf\\u00e9-1 caf\\u00E9-1", "*** ***"},
        {"caf\xc3\xa9-1", "caf\\xc3\\xa9-1 caf\\303\\251-1", "*** ***"},
        {"caf\xc3\xa9-1", "caf%C3%A9-1 caf%c3%a9-1", "*** ***"},
        {"caf\xc3\xa9-1", "caf&#233;-1 caf&#xe9;-1 caf\\u{e9}-1", "*** *** ***"},
        {"key\xf0\x9f\x98\x80", "key\\ud83d\\ude00 key\\U0001F600", "*** ***"},
        {"\xc3\xa9t\xc3\xa9!", "\\u00e9t\\u00e9! %c3%a9t%C3%A9!", "*** ***"},
        {"a b+c&d", "q=a+b%2Bc%26d;", "q=***;"},
        {"a b+c&d", "a b+c&amp;d", "***"},
        {"a b+c&d", "a\\ b+c\\&d", "***"},
        {"it's here", "'it'\\''s here'", "'***'"},
        {"it's here", "'it'\"'\"'s here' 'it''s here' it\\'s\\ here", "'***' '***' ***"},
        {"it's here", "it&#39;s here it&apos;s+here it%27s%20here", "*** *** ***"},
        {"100%25-proof", "100%25-proof 100%2525-proof", "*** ***"},
        {"a\\nb-long", "a\\nb-long a\\\\nb-long", "*** ***"},
        {"x\\\ny-long", "x\\\\\\ny-long", "***"},
        {"unix-u", "\\u0075\\u006e\\u0069\\u0078\\u002d\\u0075", "***"},
        {"tab\there", "tab\\there tab\\u0009here tab%09here", "*** *** ***"},
        /* Also inside the base64 of "user:secret", at each of the three possible alignments. */
        {"open sesame", "b3BlbiBzZXNhbWU=", "***"},
        {"open sesame", "Basic dTpvcGVuIHNlc2FtZQ==", "Basic dTp***"},
        {"open sesame", "Basic dXM6b3BlbiBzZXNhbWU=", "Basic dXM6***"},
        {"open sesame", "Basic dXNlOm9wZW4gc2VzYW1l.", "Basic dXNlOm***."},
        {"?>?>?>?>",
         "Pz4/Pj8+Pz4= Pz4_Pj8-Pz4 Pz4%2fPj8%2BPz4%3D Pz4\\/Pj8+Pz4=", "*** *** ***%3D ***"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        log_add_secret(span_str(rows[i].secret));
        check_redact(rows[i].shown, rows[i].expected);
        log_forget_secrets();
        check_redact(rows[i].shown, rows[i].shown);
    }
}

static const char pem[] = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
                          "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyji\n-----END PRIVATE KEY-----";

/* A key may be printed line by line; its first and last line are the same in every key. */
static void test_lines_of_a_secret(void **state)
{
    (void)state;
    log_add_secret(span_str(pem));
    check_redact("BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "***");
    check_redact("  MzEfYyji\r", "  ***\r");
    check_redact("-----BEGIN PRIVATE KEY----- ", "-----BEGIN PRIVATE KEY----- ");
    check_redact(pem, "***");
    log_forget_secrets();
    /* The key inside a JSON document that is itself the secret. */
    log_add_secret(SPAN("{\"key\": \"-----BEGIN KEY-----\\nMIIEvQIBADANBgkq\\nBKcwggSjAgEA\\n\"}"));
    check_redact("MIIEvQIBADANBgkq", "***");
    check_redact("BKcwggSjAgEA", "***");
}

/* The program `base64` breaks its output into lines. */
static void test_wrapped_base64(void **state)
{
    struct buf text = {0};

    (void)state;
    log_add_secret(span_str(pem));
    base64_put(&text, span_str(pem));
    for (size_t width = 64; width <= 76; width += 12)
        for (size_t at = 0; at < text.n; at += width) {
            struct buf shown = {0};
            log_redact(&shown, span_cut(buf_view(&text), at, width));
            assert_string_equal(buf_cstr(&shown), "***");
            buf_fini(&shown);
        }
    buf_fini(&text);
}

/* Log lines and error reasons are cut at some length, possibly in the middle of a secret. */
static void test_cut_short(void **state)
{
    (void)state;
    log_add_secret(SPAN("correct\"horse\"battery"));
    check_redact("it is correct\\\"ho", "it is ***");
    check_redact("it is correct\\", "it is correct\\");
    check_redact("it is correct\\\"horse\\", "it is ***");
    check_redact("it is correct\\\"horse\\u00", "it is ***");
    check_redact("it is correct", "it is correct");
}

static void test_what_is_no_secret(void **state)
{
    static const char *const words[] = {"abc", "true", "8080", "65535", "None", "localhost"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        log_add_secret(span_str(words[i]));
        check_redact(words[i], words[i]);
    }
    log_add_secret(SPAN("123456"));
    check_redact("123456", "***");
}

static void test_names(void **state)
{
    static const char *const secret[] = {
        "PGPASSWORD",         "PGPASS", "X-Api-Key", "MAIN_DSN",          "DB_PWD",
        "AWS_CRED",           "Cookie", "SESSION",   "CONNECTION_STRING", "Authorization",
        "sqlConnectionString"};
    static const char *const plain[] = {"PATH", "TOKEN_FILE", "HOST", "design", "KEY_PATH"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(secret); i++)
        assert_true(log_names_secret(span_str(secret[i])));
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        assert_false(log_names_secret(span_str(plain[i])));
}

static void test_query(void **state)
{
    (void)state;
    check_redact("not the URL of a WebSocket: ws://h p/?token=abc&x=1",
                 "not the URL of a WebSocket: ws://h p/?token=***&x=1");
    check_redact("{\"url\":\"http://h/?x=1\\u0026api_key=abc\"}",
                 "{\"url\":\"http://h/?x=1\\u0026api_key=***\"}");
    check_redact("http://h/?x=1&amp;sig=abc#top", "http://h/?x=1&amp;sig=***#top");
    check_redact("http://h/?page=2&sort=up", "http://h/?page=2&sort=up");
    check_redact("a=b", "a=b");
    check_redact("=", "=");
}

/* --- random secrets in every encoding --- */

static void put_json(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20)
            buf_printf(out, "\\u%04x", c);
        else
            buf_char(out, (char)c);
    }
}

static void put_json_twice(struct buf *out, struct span s)
{
    struct buf once = {0};

    put_json(&once, s);
    put_json(out, buf_view(&once));
    buf_fini(&once);
}

static void put_percent(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            buf_char(out, (char)c);
        else
            buf_printf(out, i % 2 ? "%%%02X" : "%%%02x", c);
    }
}

static void put_form(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ')
            buf_char(out, '+');
        else
            put_percent(out, span_cut(s, i, 1));
}

static void put_html(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (strchr("<>&\"'", s.p[i]))
            buf_printf(out, s.p[i] == '&' ? "&amp;" : "&#%d;", s.p[i]);
        else
            buf_char(out, s.p[i]);
}

static void put_shell(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\'')
            buf_str(out, "'\\''");
        else
            buf_char(out, s.p[i]);
}

static void put_shell_backslashes(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (strchr(" \"'\\&%+", s.p[i]))
            buf_char(out, '\\');
        buf_char(out, s.p[i]);
    }
}

static void put_c(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        buf_printf(out, "\\x%02x", (unsigned char)s.p[i]);
}

static void (*const forms[])(struct buf *out, struct span s) = {
    buf_span, put_json,  put_json_twice,        put_percent, put_form,
    put_html, put_shell, put_shell_backslashes, put_c,       base64_put};

static void put_random(struct buf *out, uint64_t *seed, size_t n, const char *letters)
{
    for (size_t i = 0; i < n; i++)
        buf_char(out, letters[unit_below(seed, strlen(letters))]);
}

/* The "~" around the secret is in no encoding, so every byte of the secret must be replaced. */
static void test_no_form_survives(void **state)
{
    (void)state;
    for (uint64_t round = 0, seed = 7; round < 1000; round++) {
        struct buf secret = {0};
        put_random(&secret, &seed, 6 + unit_below(&seed, 30),
                   "abzXY09 \"\"\\\\'/%%&&+;=<>\n\t-_u25");
        secret.p[0] = secret.p[secret.n - 1] =
            'q'; /* blanks and quotes at the ends would look like our own */
        log_add_secret(buf_view(&secret));
        for (size_t i = 0; i < COUNT_OF(forms); i++) {
            struct buf text = {0}, shown = {0};
            buf_str(&text, "~ ~");
            forms[i](&text, buf_view(&secret));
            buf_str(&text, "~ ~");
            log_redact(&shown, buf_view(&text));
            if (strcmp(buf_cstr(&shown), "~ ~***~ ~") != 0)
                fail_msg("form %zu of <%s> became <%s>", i, buf_cstr(&secret), buf_cstr(&shown));
            buf_fini(&text);
            buf_fini(&shown);
        }
        log_forget_secrets();
        buf_fini(&secret);
    }
}

/* Many secrets and long texts of escape characters: the cost must stay linear in the text. */
static void test_cost(void **state)
{
    char text[64 * 1024], secret[64];

    (void)state;
    for (int i = 0; i < 300; i++) {
        snprintf(secret, sizeof secret, "%c secret number %d", '!' + i % 90, i);
        log_add_secret(span_str(secret));
    }
    for (const char *letter = "\\%&'=:bu"; *letter; letter++) {
        struct buf shown = {0};
        memset(text, *letter, sizeof text);
        log_redact(&shown, span_of(text, sizeof text));
        assert_int_equal(shown.n, sizeof text);
        buf_fini(&shown);
    }
}

/* Tokens are replaced every hour: a dropped secret is forgotten, except lines it shares with
 * another secret. */
static void test_dropped(void **state)
{
    struct buf out = {0};

    (void)state;
    log_forget_secrets();
    log_add_secret(SPAN("first-of-two-tokens"));
    size_t one = log_secret_count();
    log_add_secret(SPAN("second-of-two-tokens\nfirst-of-two-tokens"));
    log_drop_secret(SPAN("second-of-two-tokens\nfirst-of-two-tokens"));
    assert_int_equal(log_secret_count(), one);
    log_redact(&out, SPAN("a first-of-two-tokens and second-of-two-tokens"));
    assert_string_equal(buf_cstr(&out), "a *** and second-of-two-tokens");
    log_drop_secret(SPAN("first-of-two-tokens"));
    log_drop_secret(SPAN("first-of-two-tokens"));
    assert_int_equal(log_secret_count(), 0);
    buf_fini(&out);
}

static void check_hidden(const char *text, bool hidden)
{
    check_redact(text, hidden ? "***" : text);
}

/* Two sign-ins may have got the same token. The first one that did not need it any more made it
 * visible, also when it had only been given the same one again; and so did one whose token stood in
 * the configuration as well. */
static void test_held_by_several(void **state)
{
    static const char token[] = "token-of-two", both[] = "first-line\ntoken-of-two";

    (void)state;
    log_forget_secrets();
    log_hold_secret(span_str(token));
    log_hold_secret(span_str(token));
    log_release_secret(span_str(token));
    check_hidden(token, true);
    log_add_secret(span_str(token)); /* a reload adds all of its secrets again */
    log_add_secret(span_str(token));
    log_release_secret(span_str(token));
    check_hidden(token, true);
    log_drop_secret(span_str(token));
    check_hidden(token, false);
    log_release_secret(span_str(token));
    log_release_secret(span_str("aa")); /* too short: never held */

    log_add_secret(span_str(both)); /* the token is a line of it */
    log_hold_secret(span_str(token));
    log_drop_secret(span_str(both));
    check_hidden(token, true);
    log_release_secret(span_str(token));
    assert_int_equal(log_secret_count(), 0);
    log_forget_secrets();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_forms, forget),
        cmocka_unit_test_teardown(test_lines_of_a_secret, forget),
        cmocka_unit_test_teardown(test_wrapped_base64, forget),
        cmocka_unit_test_teardown(test_cut_short, forget),
        cmocka_unit_test_teardown(test_what_is_no_secret, forget),
        cmocka_unit_test(test_names),
        cmocka_unit_test_teardown(test_query, forget),
        cmocka_unit_test_teardown(test_no_form_survives, forget),
        cmocka_unit_test_teardown(test_cost, forget),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_held_by_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
