#include "../unit.h"
#include "base/log.h"
#include "config/credentials.h"
#include "config/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static void write_secret(const struct folder *f, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_secret(const struct folder *f, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    unlink(path);
}

static void expect_filled(struct secrets *s, const char *text, const char *filled,
                          const char *missing)
{
    struct buf out = {0}, lost = {0};

    secrets_fill(s, text, &out, &lost);
    assert_string_equal(buf_cstr(&out), filled);
    assert_string_equal(buf_cstr(&lost), missing);
    buf_fini(&out);
    buf_fini(&lost);
}

static void test_sources_in_order(void **state)
{
    struct folder f;
    const char *command[] = {"sh", "-c", "test \"$0\" = FROM_COMMAND && echo told-by-command"};
    struct config c = {.secrets = {.directory = f.path, .command = {command, 3}}};

    (void)state;
    strcpy(f.path, "/tmp/rialto-test-XXXXXX");
    assert_non_null(mkdtemp(f.path));
    write_secret(&f, "FROM_FILE", "in-the-file\n");
    setenv("FROM_FILE", "not-this", 1);
    setenv("FROM_ENV", "in-the-environment", 1);
    unsetenv("CREDENTIALS_DIRECTORY");
    struct secrets *s = secrets_new(&c);
    expect_filled(s, "a ${FROM_FILE} b", "a in-the-file b", "");
    expect_filled(s, "${FROM_COMMAND}", "told-by-command", "");
    expect_filled(s, "${FROM_ENV}${env:FROM_ENV}", "in-the-environmentin-the-environment", "");
    expect_filled(s, "x${NOWHERE_1}y${NOWHERE_2}", "xy", "NOWHERE_1, NOWHERE_2");
    secrets_free(s);
    remove_secret(&f, "FROM_FILE");
    rmdir(f.path);
    log_forget_secrets();
}

static void test_what_is_no_reference(void **state)
{
    struct config c = {0};
    struct secrets *s = secrets_new(&c);

    (void)state;
    expect_filled(s, "", "", "");
    expect_filled(s, "$HOME $ {A} ${} ${a b} ${", "$HOME $ {A} ${} ${a b} ${", "");
    expect_filled(s, "$${NAME}", "${NAME}", "");
    expect_filled(s, "}${", "}${", "");
    secrets_free(s);
}

/* A value that was filled in must never appear in the log, wherever it is printed from. */
static void test_values_are_redacted(void **state)
{
    struct config c = {0};
    struct buf out = {0};

    (void)state;
    setenv("REDACT_ME", "correct-horse-battery", 1);
    struct secrets *s = secrets_new(&c);
    expect_filled(s, "${REDACT_ME}", "correct-horse-battery", "");
    log_redact(&out, SPAN("failed with correct-horse-battery"));
    assert_string_equal(buf_cstr(&out), "failed with ***");
    buf_fini(&out);
    secrets_free(s);
    log_forget_secrets();
}

/* In `rialto stdio` our standard input is the host's: a command that read its own input consumed
 * the host's first messages, or waited for more until its timeout. */
static void test_a_command_does_not_read_our_input(void **state)
{
    const char *command[] = {"sh", "-c", "read line; echo \"got:$line\""};
    struct config c = {.secrets = {.command = {command, 3}}};
    int ends[2], before = dup(STDIN_FILENO);
    char left[16] = {0};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "for us\n", 7), 7);
    dup2(ends[0], STDIN_FILENO);
    struct secrets *s = secrets_new(&c);
    expect_filled(s, "${ANY}", "got:", "");
    secrets_free(s);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(read(STDIN_FILENO, left, sizeof left), 7);
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    log_forget_secrets();
}

/* Plain secrets in the file were hidden only under a few names, and never in arguments and URLs.
 * Each row is NAME=VALUE, an argument and the next one, or a text, and whether it has a secret. */
static void test_credentials_in_plain_sight(void **state)
{
    static const struct {
        const char *name, *value; /* without a name the value is a text */
        bool secret;
    } pairs[] =
        {
            {"PGPASS", "abc-def", true},
            {"Authorization", "Bearer abc-def", true},
            {"Authorization", "Basic Ym9iOmFiYy1kZWY=", true},
            {"Cookie", "a=1; theme=abc-def", true},
            {"MAIN_DSN", "bob:abc-def@tcp(db)/x", true},
            {"LOG_LEVEL", "abc-def", false},
            {"TOKEN_FILE", "abc-def", false},
            {"DATABASE_URL", "postgres://bob:abc%2Ddef@db/x", true},
            {NULL, "wss://h/?x=1&token=abc-def#top", true},
            {NULL, "host=db password='abc-def' user=bob", true},
            {NULL, "Server=db;Pwd=abc-def;", true},
            {NULL, "http://h/?x=abc-def", false},
        },
      args[] = {
          {"--token=abc-def", "", true},    {"--api-key", "abc-def", true},
          {"-p", "abc-def", true},          {"-u", "bob:abc-def", true},
          {"X-Api-Key: abc-def", "", true}, {"--folder", "abc-def", false},
          {"-p", "./abc-def", false},       {"--api-key", "-abc-def", false},
      };
    struct buf out = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs) + COUNT_OF(args); i++) {
        bool is_arg = i >= COUNT_OF(pairs);
        const char *name = is_arg ? args[i - COUNT_OF(pairs)].name : pairs[i].name;
        const char *value = is_arg ? args[i - COUNT_OF(pairs)].value : pairs[i].value;
        bool secret = is_arg ? args[i - COUNT_OF(pairs)].secret : pairs[i].secret;
        if (is_arg)
            credentials_in_args((const char *const[]){name, value, NULL});
        else if (name)
            credentials_in_pair(span_str(name), span_str(value));
        else
            credentials_in_text(span_str(value));
        out.n = 0;
        log_redact(&out, SPAN("say abc-def."));
        if (strcmp(buf_cstr(&out), secret ? "say ***." : "say abc-def.") != 0)
            fail_msg("%s %s gave: %s", name, value, buf_cstr(&out));
        log_forget_secrets();
    }
    buf_fini(&out);
}

/* A caller's values replace our whole environment, so that it never sees values of another host
 * there. Secrets from files and from the command are the same for every caller. */
static void test_a_caller_brings_its_own(void **state)
{
    struct folder f;
    struct config c = {.secrets = {.directory = f.path}};

    (void)state;
    strcpy(f.path, "/tmp/rialto-test-XXXXXX");
    assert_non_null(mkdtemp(f.path));
    write_secret(&f, "FROM_FILE", "in-the-file\n");
    setenv("FROM_ENV", "in-the-environment", 1);
    setenv("BOTH", "ours-of-both", 1);
    setenv("PROJECT", "/not/this", 1);
    struct secrets *ours = secrets_new(&c);
    struct variables *v = variables_read(SPAN(
        "{\"BOTH\":\"theirs-of-both\",\"FROM_FILE\":\"not-this\",\"PROJECT\":\"/home/me/shop\"}"));
    struct secrets *theirs = secrets_for_caller(ours, v);
    expect_filled(ours, "${BOTH} ${FROM_FILE} ${FROM_ENV}",
                  "ours-of-both in-the-file in-the-environment", "");
    expect_filled(ours, "${PROJECT}", "", "PROJECT");
    expect_filled(theirs, "${BOTH} ${FROM_FILE}", "theirs-of-both in-the-file", "");
    expect_filled(theirs, "${FROM_ENV} ${FROM_ENV:-preset} ${PROJECT}", " preset /home/me/shop",
                  "FROM_ENV");
    struct buf names = {0}, line = {0};
    secrets_put_open(ours, &names);
    assert_null(strstr(buf_cstr(&names), "FROM_FILE")); /* callers cannot bring it */
    assert_non_null(strstr(buf_cstr(&names), "BOTH"));
    log_redact(&line, SPAN("theirs-of-both in /home/me/shop"));
    assert_null(strstr(buf_cstr(&line), "theirs"));
    assert_non_null(strstr(buf_cstr(&line), "/home/me/shop"));
    buf_fini(&names);
    buf_fini(&line);
    secrets_free(theirs);
    secrets_free(ours);
    variables_drop(v);
    unsetenv("PROJECT");
    remove_secret(&f, "FROM_FILE");
    rmdir(f.path);
}

static void expect_brought(const char *json, const char *name, const char *value)
{
    struct variables *v = variables_read(span_str(json));

    assert_non_null(v);
    assert_true(span_is(variables_get(v, span_str(name)), value));
    variables_drop(v);
}

static void test_what_nobody_can_mean_is_not_taken(void **state)
{
    struct buf much = {0};

    (void)state;
    expect_brought("{\"A\":\"\u00e4 1\"}", "A", "\u00e4 1");
    expect_brought("{\"A\":\"b\\r\\nX-Evil: 1\"}", "A", "");
    expect_brought("{\"A\":\"b\\u0000c\"}", "A", "");
    expect_brought("{\"A\":1,\"A-B\":\"c\"}", "A-B", "");
    expect_brought("{\"PROJECT\":\"/a/b\"}", "PROJECT", "/a/b");
    static const char *const paths[] = {"a/b", "/a/../b", "/a/./b", "/a//b", "/a/"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"PROJECT\":\"%s\"}", paths[i]);
        expect_brought(json, "PROJECT", "");
    }
    buf_str(&much, "{\"A0\":\"b\"");
    for (int i = 1; i <= VARIABLES_MAX; i++)
        buf_printf(&much, ",\"A%d\":\"b\"", i);
    buf_char(&much, '}');
    assert_null(variables_read(buf_view(&much)));
    assert_null(variables_read(SPAN("[]")));
    buf_fini(&much);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_caller_brings_its_own),
        cmocka_unit_test(test_what_nobody_can_mean_is_not_taken),
        cmocka_unit_test(test_sources_in_order),
        cmocka_unit_test(test_what_is_no_reference),
        cmocka_unit_test(test_values_are_redacted),
        cmocka_unit_test(test_a_command_does_not_read_our_input),
        cmocka_unit_test(test_credentials_in_plain_sight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
