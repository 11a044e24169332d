/* Servers with an own instance for every session: started by the session's first call, stopped
 * with the session, and limited in number. */
#include "hub_rig.h"

#include "hub/graph/narrowings.h"

/* One server with an instance per session, and a shared one. */
#define PAIR                                                                                       \
    "servers: {own: {command: FAKE, instances: per-session, allow: [whoami, sleep]},"              \
    " all: {command: FAKE, allow: [whoami]}}"
#define PAIR_TOOLS "own__sleep own__whoami all__whoami"

static void enter_all(struct rig_agent *c, struct hub_rig *r)
{
    struct mcp_host host = bridge_host(r->bridge, bridge_all(r->bridge));

    rig_agent_enter(c, &host);
}

/* The pid of the process that answers this tool; 0 if none does. */
static int pid_behind(struct rig_agent *c, struct hub_rig *r, const char *tool)
{
    const char *result = rig_agent_ask(c, r, tool, NULL), *at = strstr(result, "\"pid\":");

    return at ? atoi(at + strlen("\"pid\":")) : 0;
}

/* --- the session's own instance --- */

/* The shared instance is only there for its lists, which every session sees at once. A session that
 * only lists starts no process; its first call starts one, for this session only, which ends with
 * the session. */
static void the_first_call_starts_it_and_the_end_stops_it(void **state)
{
    struct hub_rig r;
    struct rig_agent a, b;

    (void)state;
    rig_set_up(&r, PAIR);
    int shared = rig_pid(rig_server(&r, "own"));
    enter_all(&a, &r);
    enter_all(&b, &r);
    assert_non_null(a.lease);
    assert_ptr_not_equal(a.view, exposure_view(bridge_all(r.bridge)));
    assert_string_equal(rig_names(&r, a.view, ITEM_TOOL), PAIR_TOOLS);
    run_for(r.loop, 50);
    assert_int_equal(rig_children(), 2);

    int of_a = pid_behind(&a, &r, "own__whoami");
    assert_int_equal(rig_children(), 3);
    int of_b = pid_behind(&b, &r, "own__whoami");
    assert_int_equal(rig_children(), 4);
    assert_true(of_a && of_b && of_a != of_b && of_a != shared && of_b != shared);
    assert_int_equal(pid_behind(&a, &r, "own__whoami"), of_a);
    assert_int_equal(pid_behind(&a, &r, "all__whoami"), pid_behind(&b, &r, "all__whoami"));
    assert_int_equal(rig_children(), 4);

    rig_agent_call(&a, "own__sleep", "{\"ms\":60000}");
    rig_agent_leave(&a); /* its call is cancelled */
    WAIT(r.loop, !rig_is_running(of_a));
    assert_int_equal(pid_behind(&b, &r, "own__whoami"), of_b);
    rig_agent_leave(&b);
    WAIT(r.loop, !rig_is_running(of_b));
    assert_int_equal(rig_pid(rig_server(&r, "own")), shared);
    rig_tear_down(&r);
}

static void where_all_is_shared_there_is_nothing_to_lease(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, PAIR);
    struct mcp_host host = bridge_host(r.bridge, bridge_one(r.bridge, SPAN("all")));
    rig_agent_enter(&c, &host);
    assert_null(c.lease);
    assert_ptr_equal(c.view, host.view);
    rig_agent_leave(&c);
    /* The view of this server alone, with bare names. */
    host = bridge_host(r.bridge, bridge_one(r.bridge, SPAN("own")));
    rig_agent_enter(&c, &host);
    assert_non_null(c.lease);
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "sleep whoami");
    assert_int_not_equal(pid_behind(&c, &r, "whoami"), rig_pid(rig_server(&r, "own")));
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* A session that existed before the lists is told when the shared instance has them, and no
 * instance is started for it. */
static void lists_that_come_later_are_shared_too(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_prepare(&r, "servers: {own: {command: FAKE, args: [--init-delay, 100],"
                    " instances: per-session, allow: [echo]}}");
    rig_build(&r);
    bridge_start(r.bridge);
    enter_all(&c, &r);
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "");
    WAIT(r.loop, rig_agent_heard(&c, "changed tools\n"));
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "own__echo");
    assert_int_equal(rig_children(), 1);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* Configured views and `expose: search` also apply to a session's own instances. */
static void views_and_search_hold_for_it(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_prepare(&r, "{expose: search, views: {awake: {deny: [sleep]}}, " PAIR "}");
    struct narrowings *narrowings = narrowings_new(r.config);
    rig_build(&r);
    bridge_start(r.bridge);
    WAIT(r.loop, bridge_settled(r.bridge));
    struct exposure *e = bridge_narrow(r.bridge, NULL, narrowings_find(narrowings, "awake"));
    struct mcp_host host = bridge_host(r.bridge, e);
    rig_agent_enter(&c, &host);
    assert_non_null(c.lease);
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "find_tools call_tool");
    const char *found = rig_agent_ask(&c, &r, "find_tools", "{\"query\":\"whoami sleep\"}");
    assert_non_null(strstr(found, "own__whoami"));
    assert_null(strstr(found, "own__sleep"));
    found = rig_agent_ask(&c, &r, "call_tool", "{\"name\":\"own__whoami\",\"arguments\":{}}");
    assert_non_null(strstr(found, "\"pid\":"));
    assert_int_equal(rig_children(), 3);
    found =
        rig_agent_ask(&c, &r, "call_tool", "{\"name\":\"own__sleep\",\"arguments\":{\"ms\":1}}");
    assert_null(strstr(found, "slept"));
    rig_agent_leave(&c);
    exposure_free(e);
    rig_tear_down(&r);
    narrowings_free(narrowings);
}

/* --- while the bridge changes --- */

/* An added server is listed and does not disturb the session's instance. If the entry changes, the
 * session gets a new instance: the call in flight ends at the old one, and the next call starts the
 * new one. */
static void a_reload_reaches_sessions_that_are_there(void **state)
{
    struct hub_rig r;
    struct rig_agent c;

    (void)state;
    rig_set_up(&r, PAIR);
    enter_all(&c, &r);
    int pid = pid_behind(&c, &r, "own__whoami"), shared = rig_pid(rig_server(&r, "own"));

    rig_apply(&r,
              "servers: {own: {command: FAKE, instances: per-session, allow: [whoami, sleep]},"
              " more: {command: FAKE, allow: [add]}}",
              "kept own; added more; removed all");
    WAIT(r.loop, bridge_settled(r.bridge));
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "own__sleep own__whoami more__add");
    assert_int_equal(pid_behind(&c, &r, "own__whoami"), pid);

    rig_agent_call(&c, "own__sleep", "{\"ms\":1000}");
    rig_apply(&r,
              "servers: {own: {command: FAKE, args: [--name, new], instances: per-session,"
              " allow: [whoami, sleep]}}",
              "replaced own; removed more");
    WAIT(r.loop, rig_pid(rig_server(&r, "own")) != shared);
    assert_non_null(strstr(rig_agent_ask(&c, &r, "own__whoami", NULL), "\"name\":\"new\""));
    assert_true(rig_is_running(pid));
    WAIT(r.loop, rig_agent_heard(&c, "slept"));
    WAIT(r.loop, !rig_is_running(pid));
    assert_false(rig_agent_heard(&c, "failed"));

    rig_apply(&r, "servers: {}", "removed own");
    assert_string_equal(rig_names(&r, c.view, ITEM_TOOL), "");
    WAIT(r.loop, rig_children() == 0);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* A shared server asked a question that could be for either of two clients, and got an error. Now
 * the question waits until it can only be for one, and later sessions each get their own instance,
 * whose questions are always for that session. */
static void one_that_asks_its_clients_is_not_shared_any_more(void **state)
{
    struct hub_rig r;
    struct rig_agent a, b, later;

    (void)state;
    rig_set_up(&r, "servers: {a: {command: FAKE}}");
    enter_all(&a, &r);
    enter_all(&b, &r);
    assert_null(a.lease);
    rig_agent_call(&a, "a__sleep", "{\"ms\":500}");
    assert_non_null(strstr(rig_agent_ask(&b, &r, "a__ask", NULL), "the client cannot answer"));
    assert_true(rig_agent_heard(&a, "slept"));
    enter_all(&later, &r);
    assert_non_null(later.lease);
    assert_int_not_equal(pid_behind(&later, &r, "a__whoami"), rig_pid(rig_server(&r, "a")));
    rig_agent_leave(&later);
    rig_agent_leave(&a);
    rig_agent_leave(&b);
    rig_tear_down(&r);
}

/* A bridge that is stopping creates no new leases. */
static void none_is_made_at_the_end(void **state)
{
    struct hub_rig r;
    struct rig_agent c;
    void *lease = NULL;

    (void)state;
    rig_set_up(&r, PAIR);
    enter_all(&c, &r);
    assert_int_not_equal(pid_behind(&c, &r, "own__whoami"), 0);
    rig_agent_leave(&c); /* the bridge stops while the instance is still stopping */
    rig_stop(&r);
    struct mcp_host host = bridge_host(r.bridge, bridge_all(r.bridge));
    assert_null(host.enter(host.arg, host.view, NULL, 0, &lease));
    assert_null(lease);
    rig_tear_down(&r);
}

/* --- the limit of processes --- */

#define CROWD(n)                                                                                   \
    "{limits: {processes: " #n "}, servers: {own: {command: FAKE, instances: per-session}}}"

/* Three may run, and the shared instance is one of them. The call of the third session stops the
 * instance that has been idle for longest; its session only gets a new process later. */
static void an_idle_one_makes_room(void **state)
{
    struct hub_rig r;
    struct rig_agent a, b, c;

    (void)state;
    rig_set_up(&r, CROWD(3));
    enter_all(&a, &r);
    enter_all(&b, &r);
    enter_all(&c, &r);
    int of_a = pid_behind(&a, &r, "own__whoami");
    int of_b = pid_behind(&b, &r, "own__whoami");
    run_for(r.loop, 5);
    assert_int_equal(pid_behind(&a, &r, "own__whoami"), of_a); /* now b's is idle for longest */
    int of_c = pid_behind(&c, &r, "own__whoami");
    assert_true(of_c > 0);
    assert_false(rig_is_running(of_b));
    assert_true(rig_is_running(of_a));
    assert_int_equal(rig_children(), 3);
    assert_non_null(strstr(rig_names(&r, b.view, ITEM_TOOL), "own__whoami")); /* still listed */
    int again = pid_behind(&b, &r, "own__whoami");
    assert_true(again > 0 && again != of_b);
    assert_false(rig_is_running(of_a));
    assert_int_equal(rig_children(), 3);
    rig_agent_leave(&a);
    rig_agent_leave(&b);
    rig_agent_leave(&c);
    rig_tear_down(&r);
}

/* If all instances are busy, the call fails and the text says what to do; none is stopped. */
static void when_all_are_at_work_the_call_is_told_so(void **state)
{
    struct hub_rig r;
    struct rig_agent a, b;

    (void)state;
    rig_set_up(&r, CROWD(2));
    enter_all(&a, &r);
    enter_all(&b, &r);
    int of_a = pid_behind(&a, &r, "own__whoami");
    rig_agent_call(&a, "own__sleep", "{\"ms\":400}");
    assert_non_null(strstr(rig_agent_ask(&b, &r, "own__whoami", NULL),
                           "all 2 processes that limits.processes allows are at work. Try again "
                           "later"));
    assert_int_equal(rig_children(), 2);
    assert_int_equal(rig_server(&r, "own")->state, PROVIDER_READY); /* is never stopped */
    WAIT(r.loop, rig_agent_heard(&a, "slept"));
    assert_true(rig_is_running(of_a));
    assert_true(pid_behind(&b, &r, "own__whoami") > 0);
    assert_false(rig_is_running(of_a));
    rig_agent_leave(&a);
    rig_agent_leave(&b);
    rig_tear_down(&r);
}

/* Shared servers are always started, whatever the limit. */
static void shared_ones_are_not_bounded(void **state)
{
    struct hub_rig r;

    (void)state;
    rig_set_up(&r, "{limits: {processes: 1}, servers: {a: {command: FAKE}, b: {command: FAKE},"
                   " own: {command: FAKE, instances: per-session}}}");
    assert_int_equal(rig_children(), 3);
    rig_tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_call_starts_it_and_the_end_stops_it),
        cmocka_unit_test(where_all_is_shared_there_is_nothing_to_lease),
        cmocka_unit_test(lists_that_come_later_are_shared_too),
        cmocka_unit_test(views_and_search_hold_for_it),
        cmocka_unit_test(a_reload_reaches_sessions_that_are_there),
        cmocka_unit_test(one_that_asks_its_clients_is_not_shared_any_more),
        cmocka_unit_test(none_is_made_at_the_end),
        cmocka_unit_test(an_idle_one_makes_room),
        cmocka_unit_test(when_all_are_at_work_the_call_is_told_so),
        cmocka_unit_test(shared_ones_are_not_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
