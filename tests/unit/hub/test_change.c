/* Servers that are added, adjusted, replaced and removed while others are not affected. */
#include "hub_rig.h"

/* A caller with the view of all servers. */
static void enter_all(struct rig_agent *c, struct hub_rig *r)
{
    struct mcp_host host = bridge_host(r->bridge, bridge_all(r->bridge));

    rig_agent_enter(c, &host);
}

static struct view *all(const struct hub_rig *r)
{
    return exposure_view(bridge_all(r->bridge));
}

/* --- the start --- */

/* A new bridge has its servers in the order of the file. None runs before the bridge is started,
 * and a lazy one not before bridge_wake. */
static void boot_is_a_change_from_nothing(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_prepare(&r, "servers: {b: {command: FAKE}, off: {command: FAKE, enabled: false},"
                    " a: {command: FAKE, start: lazy}}");
    rig_build(&r);
    struct provider *first = bridge_next(r.bridge, NULL), *second = bridge_next(r.bridge, first);
    assert_string_equal(first->alias, "b");
    assert_string_equal(second->alias, "a");
    assert_null(bridge_next(r.bridge, second));
    bridge_wake(r.bridge); /* too early: the bridge is not started */
    assert_int_equal(rig_children(), 0);
    rig_tear_down(&r);

    rig_set_up(&r, "servers: {b: {command: FAKE}, a: {command: FAKE, start: lazy}}");
    assert_int_equal(rig_server(&r, "b")->state, PROVIDER_READY);
    assert_int_equal(rig_server(&r, "a")->state, PROVIDER_DOWN);
    assert_non_null(bridge_mcp_provider(rig_server(&r, "b")));
    bridge_wake(r.bridge);
    assert_false(bridge_settled(r.bridge));
    WAIT(r.loop, bridge_settled(r.bridge));
    assert_int_equal(rig_server(&r, "a")->state, PROVIDER_READY);
    rig_tear_down(&r);
}

/* A file with `servers: {}` means no servers; without any file there is the demo server. */
static void only_without_a_file_there_is_a_demo(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_prepare(&r, "servers: {}");
    rig_build(&r);
    assert_null(bridge_next(r.bridge, NULL));
    rig_tear_down(&r);

    rig_prepare(&r, "servers: {}");
    r.config->file = NULL;
    rig_build(&r);
    assert_true(rig_has_server(&r, "demo"));
    rig_tear_down(&r);
}

/* --- a reload --- */

/* A server whose entry did not change keeps its process, although other servers are added and
 * removed and its position in the file changes. */
static void what_did_not_change_is_not_touched(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {gone: {command: FAKE, allow: [echo]},"
                   " kept: {command: FAKE, allow: [echo]}}");
    enter_all(&c, &r);
    struct provider *kept = rig_server(&r, "kept");
    int pid = rig_pid(kept), gone = rig_pid(rig_server(&r, "gone"));
    uint64_t generation = kept->catalog->generation;
    assert_true(pid > 0);

    rig_apply(&r,
              "servers: {fresh: {command: FAKE, allow: [add]},"
              " kept: {command: FAKE, allow: [echo]}}",
              "kept kept; added fresh; removed gone");
    assert_false(rig_has_server(&r, "gone"));
    WAIT(r.loop, bridge_settled(r.bridge) && !rig_is_running(gone));
    assert_string_equal(rig_names(&r, all(&r), ITEM_TOOL), "fresh__add kept__echo");
    assert_ptr_equal(rig_server(&r, "kept"), kept);
    assert_int_equal(rig_pid(kept), pid);
    assert_int_equal(kept->catalog->generation, generation);
    assert_int_equal(kept->stats.starts, 1);
    assert_int_equal(r.n_changes, 1);
    assert_true(rig_agent_heard(&c, "changed tools\n"));
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* Applying the same file twice notifies nobody. */
static void the_same_again_is_no_news(void **state)
{
    static const char yaml[] = "servers: {a: {command: FAKE}, b: {command: FAKE}}";
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, yaml);
    enter_all(&c, &r);
    rig_apply(&r, yaml, "kept a, b");
    run_for(r.loop, 50);
    assert_int_equal(c.said.n, 0);
    assert_int_equal(rig_children(), 2);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* --- another server of the same name --- */

/* The old server takes calls until the new one is ready, and finishes its calls in flight. No call
 * in between fails because there is no server. */
static void a_changed_server_is_replaced_when_the_new_one_is_ready(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE, args: [--name, old]}}");
    enter_all(&c, &r);
    int pid = rig_pid(rig_server(&r, "a"));
    rig_agent_call(&c, "a__sleep", "{\"ms\":1500}");

    rig_apply(&r, "servers: {a: {command: FAKE, args: [--name, new, --init-delay, 200]}}",
              "replaced a");
    WAIT(r.loop, rig_children() == 2); /* the old and the new server */
    assert_int_equal(rig_pid(rig_server(&r, "a")), pid);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"old\""));
    int told = r.n_changes;

    WAIT(r.loop, rig_pid(rig_server(&r, "a")) != pid);
    assert_int_equal(rig_server(&r, "a")->state, PROVIDER_READY);
    assert_int_equal(r.n_changes, told + 1);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"new\""));
    assert_true(rig_is_running(pid));
    assert_false(rig_agent_heard(&c, "slept"));
    WAIT(r.loop, rig_agent_heard(&c, "slept")); /* answered by the old server */
    WAIT(r.loop, !rig_is_running(pid));
    assert_int_equal(rig_children(), 1);
    assert_false(rig_agent_heard(&c, "failed"));
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* Counters never decrease when a server is replaced. */
static void the_new_one_inherits_the_counters(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE}}");
    enter_all(&c, &r);
    rig_agent_ask(&c, &r, "a__echo", NULL);
    uint64_t calls = rig_server(&r, "a")->stats.results;
    assert_int_equal(calls, 1);
    rig_apply(&r, "servers: {a: {command: FAKE, env: {K: v}}}", "replaced a");
    struct provider *before = rig_server(&r, "a");
    WAIT(r.loop, rig_server(&r, "a") != before);
    WAIT(r.loop, rig_children() == 1);
    WAIT(r.loop, rig_server(&r, "a")->stats.results == calls);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* A mistake in a command must not remove a working server. The log says so once, and the next
 * reload of a corrected file succeeds. */
static void one_that_does_not_come_up_leaves_the_old_one_in_place(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE, args: [--name, old]}}");
    enter_all(&c, &r);
    int pid = rig_pid(rig_server(&r, "a"));
    rig_apply(&r, "servers: {a: {command: FAKE, args: [--exit-at-once]}}", "replaced a");
    WAIT(r.loop, rig_heard(&r, "a: the new entry does not come up, so the old one goes on: "));
    run_for(r.loop, 60);
    assert_int_equal(rig_pid(rig_server(&r, "a")), pid);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"old\""));

    rig_apply(&r, "servers: {a: {command: FAKE, args: [--name, mended]}}", "replaced a");
    WAIT(r.loop, rig_pid(rig_server(&r, "a")) != pid);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"mended\""));
    WAIT(r.loop, rig_children() == 1);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* A server that does not run is replaced at once, without waiting for the new one. */
static void one_that_is_down_is_replaced_at_once(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: /nonexistent, restarts: 1}}");
    struct provider *before = rig_server(&r, "a");
    assert_int_not_equal(before->state, PROVIDER_READY);
    rig_apply(&r, "servers: {a: {command: FAKE}}", "replaced a");
    assert_ptr_not_equal(rig_server(&r, "a"), before);
    WAIT(r.loop, rig_server(&r, "a")->state == PROVIDER_READY);
    rig_tear_down(&r);
}

/* --- secrets --- */

/* If the entry is the same but the value of ${NAME} has changed, the server is replaced. A server
 * without a value for its secret is left out, and added when there is one. */
static void another_secret_is_another_server(void **state)
{
    static const char yaml[] =
        "servers: {a: {command: FAKE, env: {WORD: '${HUB_TEST_WORD}'}}, b: {command: FAKE}}";
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    unsetenv("HUB_TEST_WORD");
    rig_set_up(&r, yaml);
    assert_false(rig_has_server(&r, "a"));
    assert_true(rig_heard(&r, "a: is left out: no value for HUB_TEST_WORD"));
    int b = rig_pid(rig_server(&r, "b"));

    setenv("HUB_TEST_WORD", "first-word", 1);
    rig_apply(&r, yaml, "kept b; added a");
    WAIT(r.loop, bridge_settled(r.bridge));
    rig_apply(&r, yaml, "kept a, b");
    setenv("HUB_TEST_WORD", "second-word", 1);
    struct provider *before = rig_server(&r, "a");
    rig_apply(&r, yaml, "kept b; replaced a");
    WAIT(r.loop, rig_server(&r, "a") != before);
    enter_all(&c, &r);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__env", "{\"name\":\"WORD\"}"), "second-word"));
    assert_int_equal(rig_pid(rig_server(&r, "b")), b);
    unsetenv("HUB_TEST_WORD");
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* An entry that changed while it could not be used (its env_file was missing) was forgotten: the
 * log said that the server was left out, but the old one went on, and when the entry could be used,
 * the reload said "kept". */
static void an_entry_that_could_not_be_used_is_not_forgotten(void **state)
{
    struct hub_rig r;
    struct rig_agent c;
    BUF_SCOPED yaml = {0}, path = {0};

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE, args: [--name, old]}}");
    enter_all(&c, &r);
    int pid = rig_pid(rig_server(&r, "a"));
    buf_printf(&path, "%s/env", r.folder);
    buf_printf(&yaml, "servers: {a: {command: FAKE, args: [--name, new], env_file: %s}}",
               buf_cstr(&path));
    rig_apply(&r, buf_cstr(&yaml), "");
    assert_true(rig_heard(&r, "a: goes on as it was before"));
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"old\""));

    FILE *f = fopen(buf_cstr(&path), "w");
    assert_non_null(f);
    fputs("# nothing yet\n", f);
    fclose(f);
    rig_apply(&r, buf_cstr(&yaml), "replaced a");
    WAIT(r.loop, rig_pid(rig_server(&r, "a")) != pid);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__whoami", NULL), "\"name\":\"new\""));
    rig_apply(&r, buf_cstr(&yaml), "kept a");
    assert_int_equal(unlink(buf_cstr(&path)), 0);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* --- the end of a server --- */

/* A removed server is in no list and gets no new calls, but may finish its calls in flight. Code
 * that holds the server, as an open endpoint does, keeps its view until it is released. */
static void a_dropped_server_ends_its_calls_first(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE, allow: [sleep, echo]}}");
    enter_all(&c, &r);
    int pid = rig_pid(rig_server(&r, "a"));
    struct bridge_server *held = bridge_server_hold(r.bridge, SPAN("a"));
    assert_null(bridge_server_hold(r.bridge, SPAN("b")));
    rig_agent_call(&c, "a__sleep", "{\"ms\":500}");
    loop_step(r.loop, 0);

    rig_apply(&r, "servers: {}", "removed a");
    assert_true(bridge_server_is_gone(held));
    assert_null(bridge_one(r.bridge, SPAN("a")));
    assert_string_equal(rig_names(&r, exposure_view(bridge_server_exposure(held)), ITEM_TOOL), "");
    assert_string_equal(rig_names(&r, all(&r), ITEM_TOOL), "");
    assert_true(span_starts(span_str(rig_agent_ask(&c, &r, "a__echo", NULL)), SPAN("failed ")));
    assert_true(rig_is_running(pid));
    WAIT(r.loop, rig_agent_heard(&c, "slept"));
    WAIT(r.loop, !rig_is_running(pid));
    bridge_server_release(held);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* --- stopping the bridge --- */

/* Servers that ignore EOF and SIGTERM, one that is still starting, one that is to replace another,
 * and a removed one whose calls are awaited: rig_stop has one deadline for all of them. */
static void all_ends_within_its_deadline(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {deaf: {command: FAKE, args: [--ignore-eof]}, a: {command: FAKE},"
                   " gone: {command: FAKE}}");
    enter_all(&c, &r);
    rig_agent_call(&c, "deaf__sleep", "{\"ms\":60000}");
    rig_agent_call(&c, "gone__sleep", "{\"ms\":60000}");
    loop_step(r.loop, 0);
    rig_apply(&r,
              "servers: {deaf: {command: FAKE, args: [--ignore-eof]},"
              " a: {command: FAKE, args: [--silent]}, mute: {command: FAKE, args: [--silent]}}",
              "kept deaf; replaced a; added mute; removed gone");
    WAIT(r.loop, rig_children() == 5);
    rig_stop(&r);
    assert_int_equal(c.n_done, 2);
    assert_false(rig_agent_heard(&c, "slept"));
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* If nothing was started, the end is reported from the loop, too. */
static void one_that_was_never_started_ends_as_well(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_prepare(&r, "servers: {a: {command: FAKE}, b: {command: FAKE}}");
    rig_build(&r);
    rig_stop(&r);
    rig_tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boot_is_a_change_from_nothing),
        cmocka_unit_test(only_without_a_file_there_is_a_demo),
        cmocka_unit_test(what_did_not_change_is_not_touched),
        cmocka_unit_test(the_same_again_is_no_news),
        cmocka_unit_test(a_changed_server_is_replaced_when_the_new_one_is_ready),
        cmocka_unit_test(the_new_one_inherits_the_counters),
        cmocka_unit_test(one_that_does_not_come_up_leaves_the_old_one_in_place),
        cmocka_unit_test(one_that_is_down_is_replaced_at_once),
        cmocka_unit_test(another_secret_is_another_server),
        cmocka_unit_test(an_entry_that_could_not_be_used_is_not_forgotten),
        cmocka_unit_test(a_dropped_server_ends_its_calls_first),
        cmocka_unit_test(all_ends_within_its_deadline),
        cmocka_unit_test(one_that_was_never_started_ends_as_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
