/* The cage rules made from `servers.*.sandbox`, and the command lines of npx and uvx. No processes
 * are started. */
#include "../unit.h"

#include "hub/graph/install.h"
#include "hub/graph/sandbox.h"

static const struct sandbox_places places = {.home = "/home/u", .own = "/state/servers/a"};

static unsigned may_of(const struct cage_rules *rules, const char *path)
{
    for (size_t i = 0; i < rules->n_paths; i++)
        if (strcmp(rules->paths[i].path, path) == 0)
            return rules->paths[i].may;
    return 0;
}

static void test_levels(void **state)
{
    (void)state;
    struct arena a = {0};
    struct config_sandbox s = {.level = SANDBOX_OFF};

    assert_null(sandbox_rules(&a, &s, NULL, NULL, &places));
    s.level = SANDBOX_LIGHT;
    const struct cage_rules *light = sandbox_rules(&a, &s, NULL, NULL, &places);
    s.level = SANDBOX_STRICT;
    const struct cage_rules *strict = sandbox_rules(&a, &s, NULL, NULL, &places);
    assert_string_equal(light->level, "light");
    assert_true(light->runs_what_it_writes);
    assert_int_equal(light->network, CAGE_OPEN);
    assert_string_equal(strict->level, "strict");
    assert_false(strict->runs_what_it_writes);
    assert_int_equal(strict->network, CAGE_NO_SOCKET);
    assert_int_equal(may_of(strict, "/usr"), CAGE_READ | CAGE_RUN);
    assert_int_equal(may_of(strict, "/etc"), CAGE_READ);
    assert_false(cage_allows(light, SPAN("/home/u/x"), CAGE_READ));
    assert_false(cage_allows(light, SPAN("/usr/x"), CAGE_WRITE));
    assert_true(cage_allows(light, SPAN("/state/servers/a/tmp/x"), CAGE_WRITE | CAGE_RUN));
    assert_false(cage_allows(strict, SPAN("/state/servers/a/tmp/x"), CAGE_RUN));
    assert_false(cage_allows(light, SPAN("/state/servers/ab"), CAGE_READ));
    arena_fini(&a);
}

static void test_map(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *ports[] = {"443", "8080"}, *all[] = {"*"};
    const char *const read[] = {"~/lib/", "/srv", NULL}, *const write[] = {"~", NULL};
    struct config_sandbox s = {.level = SANDBOX_MAP,
                               .network = {ports, 2},
                               .memory = 1 << 20,
                               .processes = 7,
                               .cpu = 1000,
                               .files = 9};

    const struct cage_rules *r = sandbox_rules(&a, &s, read, write, &places);
    assert_int_equal(r->network, CAGE_PORTS);
    assert_int_equal(r->n_ports, 2);
    assert_int_equal(r->ports[0], 443);
    assert_int_equal(r->ports[1], 8080);
    assert_int_equal(may_of(r, "/home/u/lib"), CAGE_READ | CAGE_RUN);
    assert_int_equal(may_of(r, "/srv"), CAGE_READ | CAGE_RUN);
    assert_int_equal(may_of(r, "/home/u"), CAGE_READ | CAGE_WRITE);
    assert_int_equal(r->memory, 1 << 20);
    assert_int_equal(r->processes, 7);
    assert_int_equal(r->cpu, 1000);
    assert_int_equal(r->files, 9);
    s.network = (struct config_strings){all, 1};
    assert_int_equal(sandbox_rules(&a, &s, read, write, &places)->network, CAGE_NO_UNIX);
    s.network.n = 0;
    assert_int_equal(sandbox_rules(&a, &s, read, write, &places)->network, CAGE_NO_SOCKET);

    /* Access to a system folder does not include a service's home folder inside it. */
    struct sandbox_places service = {.home = "/opt/service", .own = "/opt/service/own"};
    r = sandbox_rules(&a, &s, NULL, NULL, &service);
    assert_false(cage_allows(r, SPAN("/opt/service/.ssh"), CAGE_READ));
    assert_true(cage_allows(r, SPAN("/usr/bin"), CAGE_READ));
    arena_fini(&a);
}

static void test_install_rules(void **state)
{
    (void)state;
    struct arena a = {0};
    struct config_sandbox s = {.level = SANDBOX_STRICT};
    struct sandbox_places with = places;

    with.installed = "/state/installed/a-1";
    const struct cage_rules *run = sandbox_rules(&a, &s, NULL, NULL, &with);
    const struct cage_rules *step = sandbox_rules_to_install(&a, run, with.installed);
    assert_int_equal(may_of(run, with.installed), CAGE_READ | CAGE_RUN);
    assert_int_equal(run->network, CAGE_NO_SOCKET);
    assert_int_equal(may_of(step, with.installed), CAGE_READ | CAGE_RUN | CAGE_WRITE);
    assert_int_equal(may_of(step, "/home/u/.npmrc"), CAGE_READ);
    assert_int_equal(step->network, CAGE_OPEN);
    assert_false(cage_allows(step, SPAN("/home/u/x"), CAGE_READ));
    arena_fini(&a);
}

static void check_words(const char *const *argv, const char *package, const char *program,
                        size_t rest)
{
    struct install_words w;

    assert_int_equal(install_read(argv, &w), package != NULL);
    if (!package)
        return;
    assert_string_equal(w.package, package);
    if (program)
        assert_string_equal(w.program, program);
    else
        assert_null(w.program);
    assert_ptr_equal(w.rest, argv + rest);
}

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_install_words(void **state)
{
    (void)state;
    check_words(ARGV("npx", "-y", "@a/b@1.2", "x"), "@a/b@1.2", NULL, 3);
    check_words(ARGV("/opt/node/bin/npx", "b"), "b", NULL, 2);
    check_words(ARGV("uvx", "mcp-server-time"), "mcp-server-time", NULL, 2);
    check_words(ARGV("uvx", "--from", "pkg", "run", "x"), "pkg", "run", 4);
    check_words(ARGV("npx"), NULL, NULL, 0);
    check_words(ARGV("npx", "-y"), NULL, NULL, 0);
    check_words(ARGV("npx", "-p", "a", "b"), NULL, NULL, 0);
    check_words(ARGV("uvx", "--from", "pkg"), NULL, NULL, 0);
    check_words(ARGV("uvx", "--python", "3.12", "x"), NULL, NULL, 0);
    check_words(ARGV("node", "npx"), NULL, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_install_rules),
        cmocka_unit_test(test_install_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
