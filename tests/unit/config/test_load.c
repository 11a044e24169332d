/* Files: where they are searched, which format they have, other programs' formats, environment. */
#include "config_test.h"

#include "config/env_file.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const variables[] = {"RIALTO_CONFIG",     "RIALTO_LISTEN", "RIALTO_LOG_LEVEL",
                                        "RIALTO_LOG_FORMAT", "HOME",          "XDG_CONFIG_HOME"};

struct world {
    char folder[64];
    char before[4096];
};

/* Each test has its own empty working folder and an empty environment. */
static int set_up(void **state)
{
    struct world *w = MEM_NEW(struct world);

    snprintf(w->folder, sizeof w->folder, "%s", "/tmp/rialto-test-XXXXXX");
    if (!getcwd(w->before, sizeof w->before) || !mkdtemp(w->folder) || chdir(w->folder) != 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        unsetenv(variables[i]);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    struct world *w = *state;
    int rc = chdir(w->before) || nftw(w->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    mem_free(w);
    return rc;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void expect_found(const char *given, const char *expected)
{
    char *path = config_find(given);

    if (expected)
        assert_string_equal(path, expected);
    else
        assert_null(path);
    mem_free(path);
}

static void test_search_order(void **state)
{
    const struct world *w = *state;
    struct buf user = {0}, xdg = {0};

    /* No file is found; skipped if this machine has a system-wide configuration file. */
    if (access("/etc/rialto/rialto.yaml", F_OK) != 0)
        expect_found(NULL, NULL);
    setenv("HOME", w->folder, 1);
    assert_int_equal(mkdir(".config", 0700) || mkdir(".config/rialto", 0700), 0);
    write_file(".config/rialto/rialto.yaml", "");
    buf_printf(&user, "%s/.config/rialto/rialto.yaml", w->folder);
    expect_found(NULL, buf_cstr(&user));
    setenv("XDG_CONFIG_HOME", "relative", 1);
    expect_found(NULL, buf_cstr(&user));
    assert_int_equal(mkdir("xdg", 0700) || mkdir("xdg/rialto", 0700), 0);
    write_file("xdg/rialto/rialto.yaml", "");
    buf_printf(&xdg, "%s/xdg", w->folder);
    setenv("XDG_CONFIG_HOME", buf_cstr(&xdg), 1);
    buf_str(&xdg, "/rialto/rialto.yaml");
    expect_found(NULL, buf_cstr(&xdg));
    write_file("mcp.json", "{}");
    expect_found(NULL, "./mcp.json");
    write_file("rialto.json", "{}");
    expect_found(NULL, "./rialto.json");
    write_file("rialto.yaml", "");
    expect_found(NULL, "./rialto.yaml");
    setenv("RIALTO_CONFIG", "/no/such/file", 1);
    expect_found(NULL, "/no/such/file"); /* a file named explicitly is not skipped if missing */
    setenv("RIALTO_CONFIG", "", 1);
    expect_found(NULL, "./rialto.yaml");
    setenv("RIALTO_CONFIG", "/env", 1);
    expect_found("/given", "/given");
    buf_fini(&user);
    buf_fini(&xdg);
}

static void test_places_named(void **state)
{
    (void)state;
    struct buf out = {0};

    setenv("HOME", "/h", 1);
    config_put_places(&out);
    assert_span(buf_view(&out), "$RIALTO_CONFIG, ./rialto.yaml, ./rialto.json, ./mcp.json, "
                                "/h/.config/rialto/rialto.yaml, /etc/rialto/rialto.yaml");
    buf_fini(&out);
}

static void test_formats(void **state)
{
    (void)state;
    assert_int_equal(config_format_of("a.json", SPAN("a: b")), CONFIG_JSON);
    assert_int_equal(config_format_of("a.YML", SPAN("{}")), CONFIG_YAML);
    assert_int_equal(config_format_of("a.yaml", SPAN("{}")), CONFIG_YAML);
    assert_int_equal(config_format_of("a.conf", SPAN(" \n\t{}")), CONFIG_JSON);
    assert_int_equal(config_format_of("a.conf", SPAN("a: {}")), CONFIG_YAML);
    assert_int_equal(config_format_of("/dev/stdin", SPAN("")), CONFIG_YAML);
    assert_int_equal(config_format_of(".json", SPAN("x")), CONFIG_YAML);
}

static struct config *load(const char *path, const char *expected_problems)
{
    struct problems ps = {0};
    struct config *c = config_load(path, &ps);

    assert_problems(&ps, expected_problems);
    assert_int_equal(c == NULL, ps.errors > 0);
    problems_fini(&ps);
    return c;
}

static void test_load(void **state)
{
    (void)state;
    write_file("a.yaml", "\xef\xbb\xbfservers: {a: {command: x}}\n");
    struct config *c = load("a.yaml", "");
    assert_string_equal(c->file, "a.yaml");
    assert_int_equal(c->servers.n, 1);
    config_free(c);

    /* Windows editors put a byte order mark before JSON, too. */
    write_file("a.json", "\xef\xbb\xbf{\"servers\": {\"a\": {\"command\": \"x\"}}}");
    config_free(load("a.json", ""));
    write_file("b.json", "{\"listen\": 5,\n \"log\": {\"level\": \"x\"}}");
    load("b.json", "b.json:1:12: listen: expected an address: HOST:PORT, [IPv6]:PORT, :PORT or "
                   "unix:PATH, as in 127.0.0.1:8765\n"
                   "b.json:2:19: log.level: 'x' is not known here; expected error, warn, info or "
                   "debug\n");
    write_file("empty.yaml", "");
    c = load("empty.yaml", "");
    assert_int_equal(c->servers.n, 0);
    config_free(c);
}

static void test_unreadable(void **state)
{
    (void)state;
    load("none.yaml", "none.yaml: cannot read it: No such file or directory\n");
    load(".", ".: cannot read it: Is a directory\n");

    int fd = open("big.yaml", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, CONFIG_MAX_BYTES + 1), 0);
    close(fd);
    load("big.yaml", "big.yaml: too large for a configuration, more than 4 MiB\n");
}

static void test_default(void **state)
{
    (void)state;
    struct config *c = config_default();

    assert_non_null(c);
    assert_null(c->file);
    assert_int_equal(c->servers.n, 0);
    assert_int_equal(c->listen.n, 1);
    config_free(c);
    config_free(NULL);
}

static void test_environment(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct config *c = read_config("listen: ':1'\nlog: {level: warn}");

    setenv("RIALTO_LISTEN", "127.0.0.1:0, unix:/run/x", 1);
    setenv("RIALTO_LOG_LEVEL", "debug", 1);
    setenv("RIALTO_LOG_FORMAT", "", 1);
    config_environment(c, &ps);
    assert_problems(&ps, "");
    assert_int_equal(c->listen.n, 2);
    assert_string_equal(c->listen.items[0].address, "127.0.0.1:0");
    assert_string_equal(c->listen.items[1].address, "unix:/run/x");
    assert_int_equal(c->log.level, LOG_DEBUG);
    assert_int_equal(c->log.format, LOG_FORMAT_TEXT);

    setenv("RIALTO_LOG_LEVEL", "dbug", 1);
    setenv("RIALTO_LISTEN", "nowhere", 1);
    config_environment(c, &ps);
    assert_problems(
        &ps, "RIALTO_LISTEN: listen[0]: expected an address: HOST:PORT, [IPv6]:PORT, :PORT "
             "or unix:PATH, as in 127.0.0.1:8765\n"
             "RIALTO_LOG_LEVEL: log.level: 'dbug' is not known here; expected error, warn, info "
             "or debug; did you "
             "mean 'debug'?\n");
    problems_fini(&ps);
    config_free(c);
}

static void test_set(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct config *c = config_default();

    config_set(c, "limits.message", "2MiB", &ps);
    config_set(c, "limits.sessions", "3", &ps);
    config_set(c, "names", "bare", &ps);
    assert_problems(&ps, "");
    assert_int_equal(c->limits.message, 2 << 20);
    assert_int_equal(c->limits.sessions, 3);
    config_set(c, "limits.sessions", "three", &ps);
    assert_problems(&ps, "limits.sessions: expected a whole number, not text\n");
    assert_int_equal(c->limits.sessions, 3);
    problems_fini(&ps);
    config_free(c);
}

/* --- other programs' files --- */

static const char rockbot[] =
    "{\"mcpServers\": {\n"
    "  \"My Files!\": {\"Command\": \"npx\", \"args\": [\"-y\", 5], \"url\": \"\", \"headers\": "
    "{},\n"
    "    \"allowedTools\": [\"read\"], \"deniedTools\": [], \"toolTimeoutMs\": 2500,\n"
    "    \"disabled\": true, \"autoApprove\": [\"x\"], \"type\": null},\n"
    "  \"far\": {\"type\": \"sse\", \"url\": \"https://x.example/sse\", \"headers\": {\"A\": "
    "\"b\"}},\n"
    "  \"none\": {\"type\": \"stdio\", \"command\": \"\"},\n"
    "  \"own\": {\"command\": \"g\", \"timeout\": \"5s\", \"start\": \"lazy\", \"allow\": "
    "[\"a\"]},\n"
    "  \"odd\": {\"command\": \"g\", \"timeout\": 600, \"argGuards\": []}\n"
    " }, \"globalShortcut\": \"X\", \"listen\": \":0\"}";

static void test_mcp_servers(void **state)
{
    (void)state;
    write_file("mcp.json", rockbot);
    struct config *c = load(
        "mcp.json",
        "mcp.json:2:3: warning: mcpServers.My Files!: this server is called 'My-Files-' here\n"
        "mcp.json:6:3: warning: mcpServers.none: server left out: it has neither 'command' nor "
        "'url'\n"
        "mcp.json:8:38: warning: mcpServers.odd.timeout: ignored: a number may mean seconds or "
        "milliseconds; write 30s or 500ms\n"
        "mcp.json:9:5: warning: globalShortcut: unknown key, ignored\n");
    const struct config_server *files = config_server(c, "My-Files-");
    const struct config_server *own = config_server(c, "own");

    assert_int_equal(c->servers.n, 4);
    assert_string_equal(config_server(c, "far")->url, "https://x.example/sse");
    assert_int_equal(config_server(c, "far")->transport, TRANSPORT_AUTO);
    assert_string_equal(c->listen.items[0].address, ":0");
    assert_string_equal(files->command, "npx");
    assert_string_equal(files->args.items[1], "5");
    assert_string_equal(files->allow.items[0], "read");
    assert_int_equal(files->deny.n, 0);
    assert_int_equal(files->timeout, 2500);
    assert_false(files->enabled);
    assert_int_equal(own->timeout, 5000);
    assert_int_equal(own->start, START_LAZY);
    assert_string_equal(own->allow.items[0], "a");
    assert_int_equal(config_server(c, "odd")->timeout, 60000);
    config_free(c);
}

static void test_mcp_servers_wrong(void **state)
{
    (void)state;
    expect_problems("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"y\",\n"
                    "\"allow\": [\"a\"], \"allowedTools\": [\"b\"]}, \"b\": 5},\n"
                    "\"servers\": {}}",
                    CONFIG_JSON,
                    "f:1:2: mcpServers: 'servers' and 'mcpServers' exclude each other; keep one\n"
                    "f:1:47: mcpServers.a.args: expected a list of texts, not text\n"
                    "f:2:17: mcpServers.a.allowedTools: this says the same as 'allow'; keep one\n"
                    "f:2:46: mcpServers.b: expected a map of keys, not a number\n");
    expect_problems("mcpServers: [a]", CONFIG_YAML,
                    "f:1:13: mcpServers: expected a map of names to maps of keys, not a list\n");
    /* Two names that become the same alias. */
    expect_problems("mcpServers: {a b: {command: x}, a-b: {command: y}}", CONFIG_YAML,
                    "f:1:14: warning: mcpServers.a b: this server is called 'a-b' here\n"
                    "f:1:33: mcpServers.a-b: too much like 'a b' on line 1; choose another name\n");
}

static void test_mcp_servers_remote(void **state)
{
    (void)state;
    struct config *c = read_config("mcpServers: {a: {serverUrl: 'https://x.example/', type: http,\n"
                                   "  headers: {A: b}}}");
    assert_string_equal(c->servers.items[0].url, "https://x.example/");
    assert_string_equal(c->servers.items[0].headers.items[0].name, "A");
    config_free(c);
}

static void test_examples(void **state)
{
    (void)state;
    struct config *c = load(EXAMPLES "/claude-desktop.json", "");
    assert_int_equal(c->servers.n, 2);
    assert_string_equal(c->servers.items[0].alias, "filesystem");
    config_free(c);
    c = load(EXAMPLES "/aggregator.yaml", "");
    assert_int_equal(c->servers.n, 4);
    assert_string_equal(config_server(c, "files")->command, "npx");
    assert_int_equal(config_server(c, "everything")->timeout, 300000);
    assert_false(config_server(c, "old-notes")->enabled);
    config_free(c);
    c = load(EXAMPLES "/sandbox.yaml", "");
    assert_int_equal(config_server(c, "everything")->sandbox.level, SANDBOX_STRICT);
    assert_int_equal(config_server(c, "files")->sandbox.level, SANDBOX_MAP);
    config_free(c);
    c = load(EXAMPLES "/shared.yaml", "");
    assert_string_equal(c->listen.items[1].tls_key, "/etc/rialto/key.pem");
    assert_int_equal(c->tokens.n, 3);
    assert_string_equal(c->tokens.items[2].view, c->views.items[1].name);
    config_free(c);
}

/* A comment behind a value in quotes made the quotes, or the comment, a part of the value; so did a
 * comment behind a value that is not filled in yet. */
static void test_env_file(void **state)
{
    static const char *const rows[][2] = {
        {"A=\"s3cret\" # key", "s3cret"},
        {"A='s3cret'\t# key", "s3cret"},
        {"A= # put key here", ""},
        {"A=\t# put key here", ""},
        {"A=\"a\" # see \"b\"", "a"},
        {"A=\"a\\\"b\\n\" # c", "a\"b\n"},
        {"A='a\\n' # c", "a\\n"},
        {"A=\"\"", ""},
        {"A=\"a # b\"", "a # b"},
        {"A=\"say \"hi\"\"", "say \"hi\""},
        {"A=a # b", "a"},
        {"A = a\t# b", "a"},
        {"A=a#b", "a#b"},
        {"A=#fff", "#fff"},
        /* What is not a value in quotes stays as it is written. */
        {"A=\"a", "\"a"},
        {"A='a' b", "'a' b"},
        {"A=\"", "\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config_pairs pairs;
        struct arena arena = {0};
        struct err err = {0};
        write_file("env", rows[i][0]);
        assert_int_equal(env_file_read(&arena, "env", &pairs, &err), 0);
        assert_int_equal(pairs.n, 1);
        if (strcmp(pairs.items[0].value, rows[i][1]) != 0)
            fail_msg("%s: %s", rows[i][0], pairs.items[0].value);
        arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_places_named, set_up, tear_down),
        cmocka_unit_test(test_formats),
        cmocka_unit_test_setup_teardown(test_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
        cmocka_unit_test(test_default),
        cmocka_unit_test_setup_teardown(test_environment, set_up, tear_down),
        cmocka_unit_test(test_set),
        cmocka_unit_test_setup_teardown(test_mcp_servers, set_up, tear_down),
        cmocka_unit_test(test_mcp_servers_wrong),
        cmocka_unit_test(test_mcp_servers_remote),
        cmocka_unit_test_setup_teardown(test_env_file, set_up, tear_down),
        cmocka_unit_test(test_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
