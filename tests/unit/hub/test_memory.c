/* The catalogs of servers' last runs: kept in a file, found again, and ignored if the file is not
 * valid. */
#include "hub_rig.h"

#include "base/log.h"
#include "config/load.h"
#include "hub/graph/memory.h"
#include "hub/graph/server.h"

#include <fcntl.h>
#include <sys/stat.h>

/* --- the file --- */

struct drawer {
    struct hub_rig rig;
    char *path;
};

static int open_drawer(void **state)
{
    struct drawer *d = MEM_NEW(struct drawer);

    rig_prepare(&d->rig, "servers: {a: {command: FAKE, start: lazy}}");
    d->path = memory_path(d->rig.config, config_server(d->rig.config, "a"));
    assert_non_null(d->path);
    *state = d;
    return 0;
}

static int close_drawer(void **state)
{
    struct drawer *d = *state;

    rig_build(&d->rig);
    rig_tear_down(&d->rig);
    mem_free(d->path);
    mem_free(d);
    return 0;
}

static void keep(const struct drawer *d, const char *words)
{
    struct catalog *c = catalog_of_words(words);

    memory_keep(d->path, c, SERVER_ASKS);
    catalog_free(c);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static bool is_known(const struct drawer *d)
{
    unsigned traits = 0;
    struct catalog *known = memory_recall(d->path, &traits);

    catalog_free(known);
    return known != NULL;
}

static void what_was_kept_is_recalled(void **state)
{
    const struct drawer *d = *state;

    assert_false(is_known(d));
    keep(d, "read write p:greet r:file:///a t:file:///{x}");
    keep(d, "read p:greet r:file:///a");
    unsigned traits = 0;
    struct catalog *known = memory_recall(d->path, &traits);
    assert_non_null(known);
    assert_int_equal(traits, SERVER_ASKS);
    assert_non_null(catalog_find(known, ITEM_TOOL, SPAN("read")));
    assert_non_null(catalog_find(known, ITEM_PROMPT, SPAN("greet")));
    assert_non_null(catalog_find(known, ITEM_RESOURCE, SPAN("file:///a")));
    assert_null(catalog_find(known, ITEM_TOOL, SPAN("write"))); /* the newest catalog counts */
    assert_int_equal(known->n[ITEM_TEMPLATE], 0);
    catalog_free(known);
}

/* The file lists what a user's servers can do, so other users may not read it. */
static void nobody_else_may_read_it(void **state)
{
    const struct drawer *d = *state;
    struct stat st;
    struct buf folder = {0};

    keep(d, "read");
    assert_int_equal(stat(d->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    buf_printf(&folder, "%s/cache/rialto/catalogs", d->rig.folder);
    assert_int_equal(stat(buf_cstr(&folder), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    buf_fini(&folder);
}

/* A server that starts a hundred times a day with the same tools causes no writes. Writing replaces
 * the file, so the inode number shows it. */
static void what_reads_the_same_is_not_written_again(void **state)
{
    const struct drawer *d = *state;
    struct stat before, after;

    keep(d, "read");
    int held = open(d->path, O_RDONLY | O_CLOEXEC); /* keeps the inode number from being reused */
    assert_int_equal(stat(d->path, &before), 0);
    keep(d, "read");
    assert_int_equal(stat(d->path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    keep(d, "read write");
    assert_int_equal(stat(d->path, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    close(held);
}

/* An empty or truncated file, other contents, a symbolic link, a file that is far too large: it is
 * ignored without an error. */
static void a_broken_file_is_as_none(void **state)
{
    const struct drawer *d = *state;
    struct buf elsewhere = {0};

    write_file(d->path, "");
    assert_false(is_known(d));
    write_file(d->path, "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n");
    assert_false(is_known(d));
    write_file(d->path, "not what it was\n");
    assert_false(is_known(d));

    keep(d, "read");
    assert_int_equal(truncate(d->path, 17 * 1024 * 1024), 0);
    assert_false(is_known(d));

    keep(d, "read"); /* the next write repairs it */
    assert_true(is_known(d));
    buf_printf(&elsewhere, "%s/elsewhere", d->rig.folder);
    assert_int_equal(rename(d->path, buf_cstr(&elsewhere)), 0);
    assert_int_equal(symlink(buf_cstr(&elsewhere), d->path), 0);
    assert_false(is_known(d));
    assert_int_equal(unlink(d->path), 0);
    assert_int_equal(mkdir(d->path, 0700), 0);
    assert_false(is_known(d));
    keep(d, "read"); /* cannot be written, which is no error either */
    assert_false(is_known(d));
    assert_int_equal(rmdir(d->path), 0);
    buf_fini(&elsewhere);
}

/* If a server puts its secret into a catalog, that catalog is not remembered, and the older one,
 * which is outdated, is forgotten. */
static void a_secret_is_not_written_down(void **state)
{
    const struct drawer *d = *state;
    struct stat st;

    keep(d, "read");
    log_add_secret(SPAN("hunter2-hunter2"));
    keep(d, "read p:hunter2-hunter2");
    assert_false(is_known(d));
    assert_int_equal(stat(d->path, &st), 0);
    assert_int_equal(st.st_size, 0);
    log_forget_secrets();
}

/* --- which file --- */

static char *path_of(struct hub_rig *r, const char *yaml)
{
    struct config *c = rig_load(r, yaml);
    char *path = memory_path(c, config_server(c, "a"));

    config_free(c);
    return path;
}

/* Any change of an entry may change what its server offers; changes of other entries do not. */
static void a_changed_entry_is_another_server(void **state)
{
    static const char *const others[] = {
        "servers: {a: {command: x, args: [y]}}", "servers: {a: {command: x, env: {K: v}}}",
        "servers: {a: {command: x, deny: [t]}}", "servers: {a: {url: 'http://h/'}}"};
    struct drawer *d = *state;
    char *one = path_of(&d->rig, "servers: {a: {command: x}}");
    char *same = path_of(&d->rig, "servers: {b: {command: y}, a: {command: x}}");

    assert_string_equal(one, same);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        char *other = path_of(&d->rig, others[i]);
        assert_string_not_equal(one, other);
        mem_free(other);
    }
    mem_free(same);
    mem_free(one);
}

static void nothing_is_remembered_where_that_is_not_wanted(void **state)
{
    struct drawer *d = *state;

    assert_null(path_of(&d->rig, "{remember: false, servers: {a: {command: x}}}"));
    /* The cache folder must be an absolute path; else it is below HOME, which is not set here. */
    char *home = getenv("HOME") ? mem_str(getenv("HOME")) : NULL;
    setenv("XDG_CACHE_HOME", "cache", 1);
    unsetenv("HOME");
    char *path = path_of(&d->rig, "servers: {a: {command: x}}");
    if (home)
        setenv("HOME", home, 1);
    assert_null(path);
    mem_free(home);
}

/* --- a server from one run to the next --- */

/* The second run lists the remembered catalog of the first before its server is up. */
static void the_next_run_knows_what_the_last_has_learned(void **state)
{
    static const char yaml[] = "servers: {a: {command: FAKE, allow: [echo, add]}}";
    struct hub_rig r;

    (void)state;
    rig_set_up(&r, yaml);
    rig_stop(&r); /* writes what is not written yet */
    bridge_unwatch(&r.watch);
    bridge_free(r.bridge);
    r.stopped = false;

    rig_build(&r);
    assert_false(bridge_settled(r.bridge));
    assert_true(bridge_is_known(r.bridge));
    assert_true(rig_server(&r, "a")->remembered);
    assert_string_equal(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL),
                        "a__echo a__add");
    bridge_start(r.bridge);
    assert_string_equal(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL),
                        "a__echo a__add");
    WAIT(r.loop, bridge_settled(r.bridge));
    assert_false(rig_server(&r, "a")->remembered);
    rig_tear_down(&r);
}

/* If the server does not come up, its remembered tools are not listed any longer. */
static void one_that_fails_is_shown_no_longer(void **state)
{
    static const char yaml[] = "servers: {a: {command: FAKE, args: [--exit-at-once], restarts: 1}}";
    struct hub_rig r;

    (void)state;
    rig_prepare(&r, yaml);
    rig_remember(&r, r.config, "a", "read");
    rig_build(&r);
    assert_string_equal(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL), "a__read");
    bridge_start(r.bridge);
    WAIT(r.loop, bridge_settled(r.bridge));
    assert_string_equal(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL), "");
    rig_tear_down(&r);
}

/* Catalogs are written while the servers run, so that they are not lost if the bridge is killed. */
static void lists_are_written_while_it_runs(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE}}");
    char *path = memory_path(r.config, config_server(r.config, "a"));
    WAIT_MS(r.loop, access(path, R_OK) == 0, 3000);
    mem_free(path);
    rig_tear_down(&r);
}

int main(void)
{
#define WITH_DRAWER(test) cmocka_unit_test_setup_teardown(test, open_drawer, close_drawer)
    const struct CMUnitTest tests[] = {
        WITH_DRAWER(what_was_kept_is_recalled),
        WITH_DRAWER(nobody_else_may_read_it),
        WITH_DRAWER(what_reads_the_same_is_not_written_again),
        WITH_DRAWER(a_broken_file_is_as_none),
        WITH_DRAWER(a_secret_is_not_written_down),
        WITH_DRAWER(a_changed_entry_is_another_server),
        WITH_DRAWER(nothing_is_remembered_where_that_is_not_wanted),
        cmocka_unit_test(the_next_run_knows_what_the_last_has_learned),
        cmocka_unit_test(one_that_fails_is_shown_no_longer),
        cmocka_unit_test(lists_are_written_while_it_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
