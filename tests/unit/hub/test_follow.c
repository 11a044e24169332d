/* The configuration file, read again while the bridge runs. */
#include "hub_rig.h"

#include "hub/graph/follow.h"

#define WORKING "servers: {a: {command: FAKE, allow: [echo]}, b: {command: FAKE, allow: [add]}}"

/* A bridge that follows its file. */
struct reader {
    struct hub_rig rig;
    struct follow *follow;
    struct provider *a;
    int pid;
};

static int open_reader(void **state)
{
    struct reader *f = MEM_NEW(struct reader);

    rig_set_up(&f->rig, WORKING);
    f->follow = follow_new(f->rig.loop, f->rig.bridge, NULL);
    f->a = rig_server(&f->rig, "a");
    f->pid = rig_pid(f->a);
    *state = f;
    return 0;
}

static int close_reader(void **state)
{
    struct reader *f = *state;

    unsetenv("RIALTO_LOG_LEVEL");
    follow_free(f->follow);
    rig_tear_down(&f->rig);
    mem_free(f);
    return 0;
}

/* Checks the report of follow_now for this file. */
static void check_report(struct reader *f, const char *yaml, const char *expected)
{
    struct buf report = {0};
    struct err err = {0};

    rig_write(&f->rig, yaml);
    assert_int_equal(follow_now(f->follow, &report, &err), 0);
    assert_string_equal(buf_cstr(&report), expected);
    buf_fini(&report);
}

/* The file is refused with an error that contains these words, and nothing has changed. */
static void check_refused(struct reader *f, const char *words)
{
    const struct config *before = bridge_config(f->rig.bridge);
    struct buf report = {0};
    struct err err = {0};

    assert_int_equal(follow_now(f->follow, &report, &err), ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say: %s", err.text, words);
    assert_int_equal(report.n, 0);
    assert_ptr_equal(bridge_config(f->rig.bridge), before);
    assert_ptr_equal(rig_server(&f->rig, "a"), f->a);
    assert_int_equal(rig_pid(f->a), f->pid);
    assert_int_equal(rig_children(), 2);
    assert_int_equal(f->rig.n_changes, 0);
    assert_string_equal(rig_names(&f->rig, exposure_view(bridge_all(f->rig.bridge)), ITEM_TOOL),
                        "a__echo b__add");
}

/* A truncated file, a wrong key, a file that an editor has just emptied, a missing file: each has
 * its own error, and nothing changes. A valid file after them is applied. */
static void a_broken_file_changes_nothing(void **state)
{
    struct reader *f = *state;

    rig_write(&f->rig, "servers: {a: {command: FAKE");
    check_refused(f, f->rig.file);
    rig_write(&f->rig, "servers: {c: {comand: FAKE}}");
    check_refused(f, "servers.c: expected the key 'command'");
    rig_write(&f->rig, "servers: {a: {command: FAKE, timeout: soon}}");
    check_refused(f, "servers.a.timeout");
    rig_write(&f->rig, " \n\t\n");
    check_refused(f, "is empty");
    assert_int_equal(unlink(f->rig.file), 0);
    check_refused(f, f->rig.file);
    rig_write(&f->rig, "servers: {}");
    setenv("RIALTO_LOG_LEVEL", "loud", 1); /* the environment is read with the file */
    check_refused(f, "RIALTO_LOG_LEVEL");
    unsetenv("RIALTO_LOG_LEVEL");
    check_report(f, "servers: {a: {command: FAKE, allow: [echo]}}",
                 "{\"kept\":[\"a\"],\"adjusted\":[],\"replaced\":[],\"added\":[],"
                 "\"removed\":[\"b\"],\"at_next_start\":\"\"}");
    assert_int_equal(rig_pid(f->a), f->pid);
}

/* Keys that a reload cannot change are reported. They are compared with the configuration of the
 * start each time, not with the last file. */
static void other_keys_wait_for_the_next_start(void **state)
{
    static const char yaml[] = "{names: bare, limits: {sessions: 3}, servers: {}}";
    struct reader *f = *state;

    check_report(f, yaml,
                 "{\"kept\":[],\"adjusted\":[],\"replaced\":[],\"added\":[],"
                 "\"removed\":[\"a\",\"b\"],\"at_next_start\":\"names, limits\"}");
    assert_true(rig_heard(&f->rig, "changes of names, limits take effect at the next start"));
    assert_string_equal(view_pattern(exposure_view(bridge_all(f->rig.bridge))), "{server}__{tool}");
    check_report(f, yaml,
                 "{\"kept\":[],\"adjusted\":[],\"replaced\":[],\"added\":[],\"removed\":[],"
                 "\"at_next_start\":\"names, limits\"}");
}

/* A saved file is read automatically, once; a broken one is only logged. */
static void a_file_that_changes_is_read_by_itself(void **state)
{
    struct reader *f = *state;

    rig_write(&f->rig, "servers: {a: {command: FAKE, allow: [echo]}, c: {command: FAKE}}");
    WAIT(f->rig.loop, rig_has_server(&f->rig, "c"));
    assert_false(rig_has_server(&f->rig, "b"));
    assert_int_equal(f->rig.n_changes, 1);
    rig_write(&f->rig, "servers: [");
    WAIT(f->rig.loop, rig_heard(&f->rig, "is not taken, all goes on as it was"));
    assert_int_equal(f->rig.n_changes, 1);
    assert_int_equal(rig_pid(f->a), f->pid);
}

/* After our own write the file is read at once, and not again when the kernel reports it. */
static void our_own_writing_is_read_once(void **state)
{
    struct reader *f = *state;
    struct err err = {0};

    rig_write(&f->rig, "servers: {a: {command: FAKE, allow: [echo]}}");
    assert_int_equal(follow_own_write(f->follow, &err), 0);
    assert_int_equal(f->rig.n_changes, 1);
    run_for(f->rig.loop, 500);
    assert_int_equal(f->rig.n_changes, 1);
}

/* Without a file a reload fails with an error that says what to do. */
static void without_a_file_there_is_nothing_to_read(void **state)
{
    struct hub_rig r;
    struct err err = {0};

    (void)state;
    rig_prepare(&r, "servers: {}");
    r.config->file = NULL;
    rig_build(&r);
    struct follow *f = follow_new(r.loop, r.bridge, NULL);
    assert_int_equal(follow_now(f, NULL, &err), ERR_CONFIG);
    assert_string_equal(err.text, "there is no configuration file to read");
    assert_string_equal(err.hint, "start it with -c FILE");
    assert_int_not_equal(follow_own_write(f, &err), 0);
    follow_free(f);
    rig_tear_down(&r);
}

/* An address of the command line replaces the file's each time the file is read. */
static void an_option_holds_for_every_reading(void **state)
{
    struct reader *f = *state;

    follow_free(f->follow);
    f->rig.config->listen.items[0].address = "127.0.0.1:7";
    f->follow = follow_new(f->rig.loop, f->rig.bridge, "127.0.0.1:7");
    check_report(f, "{listen: '127.0.0.1:9', " WORKING "}",
                 "{\"kept\":[\"a\",\"b\"],\"adjusted\":[],\"replaced\":[],\"added\":[],"
                 "\"removed\":[],\"at_next_start\":\"\"}");
}

int main(void)
{
#define WITH_READER(test) cmocka_unit_test_setup_teardown(test, open_reader, close_reader)
    const struct CMUnitTest tests[] = {
        WITH_READER(a_broken_file_changes_nothing),
        WITH_READER(other_keys_wait_for_the_next_start),
        WITH_READER(a_file_that_changes_is_read_by_itself),
        WITH_READER(our_own_writing_is_read_once),
        WITH_READER(an_option_holds_for_every_reading),
        cmocka_unit_test(without_a_file_there_is_nothing_to_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
