/* Callers that bring their own variables: which of them share an instance, and what happens to the
 * instance when the configuration changes or the last of them leaves. */
#include "hub_rig.h"

#include "config/variables.h"
#include "hub/graph/lease.h"

#define ONE(more)                                                                                  \
    "servers: {one: {command: FAKE, args: [--name, \"${NAME_OF_TEST}\"], allow: [whoami, "         \
    "sleep]" more "}}"

struct caller_of_test {
    struct rig_agent agent;
    struct variables *variables;
    struct exposure *exposure;
};

static struct view *enter(void *arg, struct view *shared, struct principal *principal,
                          unsigned answers, void **lease)
{
    struct caller_of_test *c = arg;
    struct lease *l = NULL;
    struct view *own =
        bridge_enter(c->exposure, shared,
                     &(struct lease_terms){
                         .principal = principal, .answers = answers, .variables = c->variables},
                     &l);

    *lease = l;
    return own;
}

static void leave(void *arg, void *lease)
{
    (void)arg;
    bridge_leave(lease);
}

static void come(struct caller_of_test *c, struct hub_rig *r, const char *variables)
{
    c->exposure = bridge_all(r->bridge);
    c->variables = variables_read(span_str(variables));
    struct mcp_host host = bridge_host(r->bridge, c->exposure);
    host.arg = c;
    host.wake = NULL;
    host.enter = enter;
    host.leave = leave;
    rig_agent_enter(&c->agent, &host);
}

static void go(struct caller_of_test *c)
{
    rig_agent_leave(&c->agent);
    variables_drop(c->variables);
}

static int pid_behind(struct caller_of_test *c, struct hub_rig *r)
{
    const char *result = rig_agent_ask(&c->agent, r, "one__whoami", NULL),
               *at = strstr(result, "\"pid\":");

    return at ? atoi(at + strlen("\"pid\":")) : 0;
}

static void the_same_values_share_an_instance(void **state)
{
    struct hub_rig r;
    struct caller_of_test ours, a, b, none;

    (void)state;
    setenv("NAME_OF_TEST", "ours", 1);
    rig_set_up(&r, ONE(""));
    assert_true(span_is(bridge_variables(r.bridge), "NAME_OF_TEST"));
    come(&ours, &r, "{\"NAME_OF_TEST\":\"ours\"}");
    come(&a, &r, "{\"NAME_OF_TEST\":\"other\"}");
    come(&b, &r, "{\"NAME_OF_TEST\":\"other\"}");
    come(&none, &r, "{}");
    /* The lists come at once from the shared instance; nothing is started for them. */
    assert_string_equal(rig_names(&r, a.agent.view, ITEM_TOOL), "one__sleep one__whoami");
    assert_int_equal(rig_children(), 1);
    assert_int_equal(pid_behind(&ours, &r), rig_pid(rig_server(&r, "one")));
    int other = pid_behind(&a, &r);
    assert_true(other && other != rig_pid(rig_server(&r, "one")));
    assert_int_equal(pid_behind(&b, &r), other);
    assert_non_null(strstr(rig_agent_ask(&none.agent, &r, "one__whoami", NULL), "NAME_OF_TEST"));
    assert_int_equal(rig_children(), 2);
    go(&a);
    assert_int_equal(pid_behind(&b, &r), other);
    go(&b);
    WAIT(r.loop, !rig_is_running(other));
    go(&ours);
    go(&none);
    rig_tear_down(&r);
}

/* The variables change during a session, for example with the host's root: the next call goes to
 * another instance, and a call in flight ends at the old one. */
static void other_variables_are_another_instance(void **state)
{
    struct hub_rig r;
    struct caller_of_test a;

    (void)state;
    unsetenv("NAME_OF_TEST");
    rig_set_up(&r, ONE(""));
    assert_int_equal(rig_children(), 0); /* the variable has no value yet */
    come(&a, &r, "{\"NAME_OF_TEST\":\"first\"}");
    WAIT(r.loop, rig_agent_heard(&a.agent, "changed tools\n"));
    int first = pid_behind(&a, &r);
    rig_agent_call(&a.agent, "one__sleep", "{\"ms\":100}");
    struct variables *second = variables_read(SPAN("{\"NAME_OF_TEST\":\"second\"}"));
    bridge_bring(r.bridge, a.agent.lease, second);
    int next = pid_behind(&a, &r);
    assert_true(first && next && next != first);
    WAIT(r.loop, !rig_is_running(first));
    assert_int_equal(a.agent.n_done, 3);
    assert_false(rig_agent_heard(&a.agent, "failed"));
    variables_drop(second);
    go(&a);
    rig_tear_down(&r);
}

/* A changed limit applies to the caller's running instance; a changed environment makes a new one.
 */
static void a_reload_reaches_it(void **state)
{
    struct hub_rig r;
    struct caller_of_test a;

    (void)state;
    setenv("NAME_OF_TEST", "ours", 1);
    rig_set_up(&r, ONE(""));
    come(&a, &r, "{\"NAME_OF_TEST\":\"other\"}");
    int first = pid_behind(&a, &r);
    rig_apply(&r, ONE(", deny: [sleep], timeout: 9s"), "adjusted one");
    assert_int_equal(pid_behind(&a, &r), first);
    rig_apply(&r, ONE(", env: {MORE: \"1\"}"), "replaced one");
    int next = pid_behind(&a, &r);
    assert_true(next && next != first);
    WAIT(r.loop, !rig_is_running(first));
    go(&a);
    rig_tear_down(&r);
}

/* Where only callers have values, the server's own instance never runs and is replaced at once, and
 * the views were filled while the entry before the reload still counted: the callers' processes
 * were started again with the old arguments, and kept them. */
static void a_reload_reaches_it_without_values_of_ours(void **state)
{
#define NAMED(name)                                                                                \
    "servers: {one: {command: FAKE, args: [--name, " name "], allow: [whoami], "                   \
    "env: {E: \"${NAME_OF_TEST}\"}}}"
    struct hub_rig r;
    struct caller_of_test a;

    (void)state;
    unsetenv("NAME_OF_TEST");
    rig_set_up(&r, NAMED("old"));
    come(&a, &r, "{\"NAME_OF_TEST\":\"a\"}");
    WAIT(r.loop, strcmp(rig_names(&r, a.agent.view, ITEM_TOOL), "one__whoami") == 0);
    assert_non_null(strstr(rig_agent_ask(&a.agent, &r, "one__whoami", NULL), "\"name\":\"old\""));
    rig_apply(&r, NAMED("new"), "");
    WAIT(r.loop, strcmp(rig_names(&r, a.agent.view, ITEM_TOOL), "one__whoami") == 0);
    assert_non_null(strstr(rig_agent_ask(&a.agent, &r, "one__whoami", NULL), "\"name\":\"new\""));
    go(&a);
    rig_tear_down(&r);
}

/* With `instances: per-session` callers with the same values still get separate instances. */
static void per_session_too(void **state)
{
    struct hub_rig r;
    struct caller_of_test a, b;

    (void)state;
    unsetenv("NAME_OF_TEST");
    rig_set_up(&r, ONE(", instances: per-session"));
    come(&a, &r, "{\"NAME_OF_TEST\":\"other\"}");
    come(&b, &r, "{\"NAME_OF_TEST\":\"other\"}");
    WAIT(r.loop, rig_agent_heard(&a.agent, "changed tools\n"));
    WAIT(r.loop, rig_agent_heard(&b.agent, "changed tools\n"));
    int of_a = pid_behind(&a, &r), of_b = pid_behind(&b, &r);
    assert_true(of_a && of_b && of_a != of_b);
    go(&a);
    go(&b);
    rig_tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_values_share_an_instance),
        cmocka_unit_test(other_variables_are_another_instance),
        cmocka_unit_test(a_reload_reaches_it),
        cmocka_unit_test(a_reload_reaches_it_without_values_of_ours),
        cmocka_unit_test(per_session_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
