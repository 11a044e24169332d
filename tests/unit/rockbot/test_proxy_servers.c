/*
 * The servers of a proxy: how it handles announcements and details, and the servers' names.
 */
#include "proxy_rig.h"

#include "rockbot/proxy_parts.h"

#include <stdio.h>

/* --- announcements --- */

#define FAR(print) "[{\"serverName\":\"far\",\"toolNames\":[],\"fingerprint\":\"" print "\"}]"

/* Announcements arrive in order: when the marker is known, all earlier ones have been handled. */
static void pass(struct proxy_rig *r, const char *marker)
{
    struct buf servers = {0};

    buf_printf(&servers, "[{\"serverName\":\"%s\"}]", marker);
    rig_announce(r, buf_cstr(&servers), "[]");
    WAIT(r->loop, router_provider(r->router, span_str(marker)));
    buf_fini(&servers);
}

/*
 * Answers and announcements arrive by different queues. A server changed during our first request
 * for its details: the announcement overtook the answer, which was older, and the new details were
 * never requested.
 */
static void test_news_before_the_first_answer(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    r.holds = true;
    rig_announce(&r, FAR("a"), "[]");
    WAIT(r.loop, r.has_held);
    r.tools = "u";
    rig_announce(&r, FAR("b"), "[]");
    pass(&r, "marker");
    rig_answer_details(&r, &r.held.m, "t", NULL);
    WAIT(r.loop, view_find(r.view, ITEM_TOOL, SPAN("far__u")));
    rig_tear_down(&r);
}

/* The same if the answer is an error: the announcement says that the server is up again. */
static void test_news_before_a_refusal(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_announce(&r, FAR("a"), "[]");
    WAIT(r.loop, view_find(r.view, ITEM_TOOL, SPAN("far__t")));
    r.holds = true;
    rig_announce(&r, FAR("b"), "[]");
    WAIT(r.loop, r.has_held);
    r.tools = "u";
    rig_announce(&r, FAR("c"), "[]");
    pass(&r, "marker");
    rig_answer_details(&r, &r.held.m, "t", "server 'far' is not connected. Try again later");
    WAIT(r.loop, view_find(r.view, ITEM_TOOL, SPAN("far__u")));
    rig_tear_down(&r);
}

/* --- names --- */

static const struct peer_verbs local_verbs = {0};
static const struct provider_ops local_ops = {0};

static void add_local(struct proxy_rig *r)
{
    provider_init(&r->local, &local_verbs, &local_ops, "far");
    router_add_provider(r->router, &r->local);
    r->has_local = true;
    bus_proxy_look(r->proxy);
}

static void remove_local(struct proxy_rig *r)
{
    router_remove_provider(r->router, &r->local);
    provider_fini(&r->local);
    r->has_local = false;
}

/*
 * A reload gave one of our servers the name of a remote one. Then both had it: their tools were
 * mixed under one name, and after the next start they had other names.
 */
static void test_a_name_that_is_taken_later(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    struct provider *p = rig_meet(&r);
    r.quiet = true;
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    add_local(&r);
    assert_string_equal(p->alias, "far-Me");
    assert_ptr_equal(router_provider(r.router, SPAN("far")), &r.local);
    assert_null(view_find(r.view, ITEM_TOOL, SPAN("far__t")));
    assert_non_null(view_find(r.view, ITEM_TOOL, SPAN("far-Me__t")));
    /* Calls in flight are not affected. */
    rig_answer_invoke(&r, &r.last.m);
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.kind, OUTCOME_RESULT);
    /* Nothing changes when the servers are checked again, or announced again. */
    bus_proxy_look(r.proxy);
    rig_announce(&r, rig_far, "[]");
    pass(&r, "marker");
    assert_string_equal(p->alias, "far-Me");
    remove_local(&r);
    rig_tear_down(&r);
}

/* A C string ends at the NUL, so we could remove a server with another name: it is refused. */
static void test_a_name_with_a_nul(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_announce(&r, "[{\"serverName\":\"far\\u0000x\"}]", "[]");
    pass(&r, "marker");
    assert_int_equal((int)bus_proxy_servers(r.proxy), 1);
    rig_tear_down(&r);
}

/* With our own worker on the bus, announcements of that name are now our worker's. */
static void test_a_name_that_our_worker_announces(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(
        &r, &(struct bus_proxy_options){.agent = "Me", .patience = 60000, .beside_worker = true});
    rig_meet(&r);
    add_local(&r);
    assert_int_equal((int)bus_proxy_servers(r.proxy), 0);
    rig_announce(&r, rig_far, "[]");
    pass(&r, "marker");
    assert_int_equal((int)bus_proxy_servers(r.proxy), 1);
    remove_local(&r);
    rig_tear_down(&r);
}

/* --- requests that the bus does not have --- */

/* Clients do not accept an empty object as a list of completions. */
static void test_a_completion(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    call_open(r.router, &r.consumer, r.view,
              &(struct request){.op = OP_COMPLETE,
                                .name = SPAN("far__p"),
                                .params = SPAN("{\"ref\":{\"name\":\"far__p\"}}"),
                                .name_at = {15, 8}},
              NULL);
    WAIT(r.loop, r.n_done == 1);
    assert_string_equal(r.text, "{\"completion\":{\"values\":[]}}");
    rig_tear_down(&r);
}

/* Each name was compared with all earlier ones: 16 MiB of names took minutes. */
static void test_a_list_without_end(void **state)
{
    struct catalog *c = catalog_new();
    char tool[80];

    (void)state;
    for (int i = 0; i < 150000; i++) {
        snprintf(tool, sizeof tool, "{\"name\":\"a tool that is number %d\",\"description\":\"\"}",
                 i);
        remote_add_tool(c, span_str(tool));
    }
    assert_int_equal((int)c->n[ITEM_TOOL], 100000);
    catalog_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_news_before_the_first_answer),
        cmocka_unit_test(test_news_before_a_refusal),
        cmocka_unit_test(test_a_name_that_is_taken_later),
        cmocka_unit_test(test_a_name_that_our_worker_announces),
        cmocka_unit_test(test_a_name_with_a_nul),
        cmocka_unit_test(test_a_completion),
        cmocka_unit_test(test_a_list_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
