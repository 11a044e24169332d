/* Filters and limits that a reload changes while the server keeps running: what they apply to, and
 * what they do not affect. */
#include "hub_rig.h"

/* A caller with the view of all servers. */
static void enter_all(struct rig_agent *c, struct hub_rig *r)
{
    struct mcp_host host = bridge_host(r->bridge, bridge_all(r->bridge));

    rig_agent_enter(c, &host);
}

/* New filters and limits apply without a restart: a call in flight is not affected, the next call
 * is. */
static void filters_and_limits_change_under_a_running_server(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE, allow: [echo, sleep]}}");
    enter_all(&c, &r);
    struct provider *a = rig_server(&r, "a");
    int pid = rig_pid(a);
    rig_agent_call(&c, "a__sleep", "{\"ms\":50}");

    rig_apply(&r, "servers: {a: {command: FAKE, deny: [e*, sleep], timeout: 7s, queue: 3}}",
              "adjusted a");
    assert_ptr_equal(rig_server(&r, "a"), a);
    assert_int_equal(a->policy.timeout, 7000);
    assert_int_equal(a->policy.queue, 3);
    assert_true(rig_agent_heard(&c, "changed tools\n"));
    assert_null(strstr(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL), "a__echo"));
    assert_non_null(
        strstr(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL), "a__add"));
    assert_null(
        strstr(rig_names(&r, exposure_view(bridge_one(r.bridge, SPAN("a"))), ITEM_TOOL), "echo"));
    assert_true(span_starts(span_str(rig_agent_ask(&c, &r, "a__echo", NULL)), SPAN("failed ")));
    WAIT(r.loop, rig_agent_heard(&c, "slept"));
    assert_int_equal(rig_pid(a), pid);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* A server that loses idle_stop is not stopped any more, and is started if it is down, as its tools
 * would not be listed otherwise. With idle_stop they stay listed. Before, a server that lost the
 * key was stopped for good at its old time, one that got the key was not stopped until its next
 * start, and one that lost the key while it was down never came back. */
static void idle_stop_holds_from_the_reload_on(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_set_up(&r, "servers: {was: {command: FAKE, allow: [echo], idle_stop: 1s},"
                   " is: {command: FAKE, allow: [echo]}}");
    rig_apply(&r,
              "servers: {was: {command: FAKE, allow: [echo]},"
              " is: {command: FAKE, allow: [echo], idle_stop: 1s}}",
              "adjusted was, is");
    WAIT_MS(r.loop, rig_server(&r, "is")->state == PROVIDER_DOWN, 3000);
    assert_int_equal(rig_server(&r, "was")->state, PROVIDER_READY);
    assert_string_equal(rig_names(&r, exposure_view(bridge_all(r.bridge)), ITEM_TOOL),
                        "was__echo is__echo");
    rig_apply(&r,
              "servers: {was: {command: FAKE, allow: [echo]},"
              " is: {command: FAKE, allow: [echo]}}",
              "kept was; adjusted is");
    WAIT_MS(r.loop, rig_server(&r, "is")->state == PROVIDER_READY, 3000);
    rig_tear_down(&r);
}

/* The file changes twice in a row, the second time only a limit. The replacement that is starting
 * since the first change must get that limit too; before, it kept those of the first change. */
static void one_that_is_about_to_take_the_place_is_adjusted_too(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE}}");
    enter_all(&c, &r);
    struct provider *before = rig_server(&r, "a");
    rig_apply(&r, "servers: {a: {command: FAKE, args: [--init-delay, 100]}}", "replaced a");
    rig_apply(&r,
              "servers: {a: {command: FAKE, args: [--init-delay, 100], timeout: 7s,"
              " approve: [echo]}}",
              "adjusted a");
    assert_int_equal(before->policy.timeout, 7000);
    WAIT(r.loop, rig_server(&r, "a") != before);
    assert_int_equal(rig_server(&r, "a")->policy.timeout, 7000);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "a__echo", NULL), "approval"));
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

#define OWN(more)                                                                                  \
    "servers: {own: {command: FAKE, instances: per-session, allow: [whoami, add], " more "}}"

/* A reload makes a tool need approval. Instances of existing sessions kept the old policy, and
 * after two such reloads they read patterns that had been freed. */
static void what_sessions_have_is_adjusted_too(void **state)
{
    struct hub_rig r;
    struct rig_agent c, quiet;

    (void)state;
    rig_set_up(&r, OWN(""));
    rig_apply(&r, OWN("approve: [nothing]"), "adjusted own");
    enter_all(&c, &r);
    enter_all(&quiet, &r);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "own__whoami", NULL), "\"pid\":"));
    rig_apply(&r, OWN("approve: [who*], timeout: 7s"), "adjusted own");
    assert_non_null(strstr(rig_agent_ask(&c, &r, "own__whoami", NULL), "approval"));
    assert_non_null(strstr(rig_agent_ask(&c, &r, "own__add", "{\"a\":1,\"b\":2}"), "\"3\""));
    assert_int_equal(view_find(c.view, ITEM_TOOL, SPAN("own__add"))->provider->policy.timeout,
                     7000);
    assert_int_equal(rig_children(), 2); /* the shared instance and c's */
    /* A session whose instance is not started yet still lists its tools. */
    assert_string_equal(rig_names(&r, quiet.view, ITEM_TOOL), "own__add own__whoami");
    rig_agent_leave(&c);
    rig_agent_leave(&quiet);
    rig_tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_and_limits_change_under_a_running_server),
        cmocka_unit_test(idle_stop_holds_from_the_reload_on),
        cmocka_unit_test(one_that_is_about_to_take_the_place_is_adjusted_too),
        cmocka_unit_test(what_sessions_have_is_adjusted_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
