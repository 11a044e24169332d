/* Calls made through call_tool: results, events, questions and cancels, in every order. */
#include "../core/stage.h"
#include "mcp/search_provider.h"

/* A view of one server, and the view with find_tools and call_tool that agents see instead. */
struct fixture {
    struct stage stage;
    struct fake server;
    struct view *full, *seen;
    struct search_provider *search;
    struct client agent;
};

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->full = view_new("full", "{server}__{tool}");
    x->seen = view_new("seen", "{server}__{tool}");
    fake_init(&x->server, &x->stage, "s");
    view_add(x->full, &x->server.core, NULL);
    x->search = search_provider_new(x->full, SEARCH_OFFERS_SEARCH);
    router_add_provider(x->stage.router, search_provider_core(x->search));
    view_add(x->seen, search_provider_core(x->search), NULL);
    provider_want(search_provider_core(x->search));
    client_init(&x->agent, &x->stage, "agent", x->seen);
    fake_ready(&x->server, "read write");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    provider_unwant(search_provider_core(x->search));
    fake_fini(&x->server);
    router_remove_provider(x->stage.router, search_provider_core(x->search));
    search_provider_free(x->search);
    view_free(x->full);
    view_free(x->seen);
    stage_fini(&x->stage);
}

static struct call *call(struct fixture *x, const char *name, const char *arguments)
{
    struct buf params = {0};

    buf_printf(&params, "{\"name\":\"%s\",\"arguments\":%s}", name, arguments);
    struct call *c = call_open(x->stage.router, &x->agent.peer, x->seen,
                               &(struct request){.op = OP_CALL_TOOL,
                                                 .name = span_str(name),
                                                 .params = buf_view(&params),
                                                 .answers = x->agent.answers,
                                                 .wants_progress = x->agent.wants_progress},
                               NULL);
    buf_fini(&params);
    return c;
}

/* The inner call with this number, as the account shows it. */
static struct call *inner(struct fixture *x, uint64_t handle)
{
    struct call *c = router_find(x->stage.router, handle);

    assert_non_null(c);
    return c;
}

static void test_two_tools_are_seen(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    assert_span(view_item(x.seen, ITEM_TOOL, 0)->public_name, "find_tools");
    assert_span(view_item(x.seen, ITEM_TOOL, 1)->public_name, "call_tool");
    assert_null(view_item(x.seen, ITEM_TOOL, 2));
    assert_null(router_next_provider(x.stage.router, &x.server.core)); /* search is no server */
    call(&x, "find_tools", "{\"query\":\"write\"}");
    assert_account(
        &x.stage, "agent done 1 {\"content\":[{\"type\":\"text\",\"text\":\"{\\\"tools\\\":[{"
                  "\\\"name\\\":\\\"s__write\\\",\\\"inputSchema\\\":{\\\"type\\\":\\\"object\\\"},"
                  "\\\"score\\\":0.533}]}\"}],\"structuredContent\":{\"tools\":[{\"name\":"
                  "\"s__write\",\"inputSchema\":{\"type\":\"object\"},\"score\":0.533}]}}\n");
    end(&x);
}

static void test_call_and_result(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    call(&x, "call_tool", "{\"name\":\"s__read\",\"arguments\":{\"a\":1}}");
    assert_account(&x.stage, "s open 2 read\n");
    finish_call(inner(&x, 2), "{\"x\":1}");
    assert_account(&x.stage, "agent done 1 {\"x\":1}\n");
    end(&x);
}

static void answer_at_once(struct fake *f, struct call *c, const struct request *request)
{
    (void)f;
    assert_span(request->params, "{\"name\":\"s__read\",\"arguments\":{}}");
    assert_span(span_cut(request->params, request->name_at.at, request->name_at.n), "\"s__read\"");
    finish_call(c, "{}");
}

static void test_answered_inside_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.server.in_open = answer_at_once;
    assert_null(call(&x, "call_tool", "{\"name\":\"s__read\"}"));
    assert_account(&x.stage, "s open 2 read\nagent done 1 {}\n");
    end(&x);
}

static void test_events_and_questions_pass(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.agent.answers = ANSWERS_ELICIT_FORM;
    x.agent.wants_progress = true;
    struct call *outer = call(&x, "call_tool", "{\"name\":\"s__read\"}");
    call_event(inner(&x, 2), &(struct event){.kind = EVENT_PROGRESS, .params = SPAN("{\"p\":1}")});
    ask_call(inner(&x, 2), "k1", ANSWERS_ELICIT_FORM);
    ask_call(inner(&x, 2), "k2", ANSWERS_SAMPLING); /* the agent cannot answer it */
    answer_call(outer, "k1", "{\"yes\":1}");
    finish_call(inner(&x, 2), "{}");
    assert_account(&x.stage, "s open 2 read\n"
                             "agent progress 1 {\"p\":1}\n"
                             "agent ask 1 k1\n"
                             "s answer 2 k2 refused\n"
                             "s answer 2 k1 {\"yes\":1}\n"
                             "agent done 1 {}\n");
    end(&x);
}

static void test_cancel_and_detach(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *outer = call(&x, "call_tool", "{\"name\":\"s__read\"}");
    call_cancel(outer, FAIL_CANCELLED);
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    call_cancel_all(&x.agent.peer);
    assert_account(&x.stage, "s open 2 read\ns cancel 2 cancelled\nagent done 1 cancelled\n"
                             "s open 4 read\ns cancel 4 cancelled\nagent done 3 cancelled\n");
    end(&x);
}

static void ask_at_once(struct fake *f, struct call *c, const struct request *request)
{
    (void)f, (void)request;
    ask_call(c, "k", ANSWERS_ELICIT_FORM);
}

static void leave_when_asked(struct client *c, struct call *call_, const struct ask *ask)
{
    (void)call_, (void)ask;
    call_cancel_all(&c->peer);
}

/* The agent leaves while the inner call is being opened. */
static void test_agent_leaves_inside_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.agent.answers = ANSWERS_ELICIT_FORM;
    x.server.in_open = ask_at_once;
    x.agent.in_ask = leave_when_asked;
    assert_null(call(&x, "call_tool", "{\"name\":\"s__read\"}"));
    assert_account(&x.stage, "s open 2 read\nagent ask 1 k\ns cancel 2 cancelled\n"
                             "agent done 1 cancelled\n");
    end(&x);
}

static void test_server_times_out_and_dies(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.server.core.policy.timeout = 1000;
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    stage_wait(&x.stage, 1000);
    assert_account(&x.stage, "s open 2 read\ns cancel 2 timeout\nagent done 1 timeout\n");
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    provider_lost(&x.server.core, "killed");
    assert_account(&x.stage, "s open 4 read\nagent done 3 crashed\n");
    end(&x);
}

static void test_stopped_with_calls_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    provider_unwant(search_provider_core(x.search));
    assert_account(&x.stage, "s open 2 read\ns cancel 2 shutdown\nagent done 1 shutdown\n"
                             "search stopped\n");
    end(&x);
}

/* Two agents call one server: a question that names no call must not reach the wrong agent. */
static void test_agents_are_told_apart(void **state)
{
    struct fixture x;
    struct client other;

    (void)state;
    begin(&x);
    client_init(&other, &x.stage, "other", x.seen);
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    assert_ptr_equal(ask_sole_call(&x.server.core), inner(&x, 2));
    call(&x, "call_tool", "{\"name\":\"s__read\"}");
    assert_null(ask_sole_call(&x.server.core)); /* two running calls of one agent */
    finish_call(inner(&x, 4), "{}");
    call_open(x.stage.router, &other.peer, x.seen,
              &(struct request){.op = OP_CALL_TOOL,
                                .name = SPAN("call_tool"),
                                .params = SPAN("{\"arguments\":{\"name\":\"s__write\"}}")},
              NULL);
    assert_int_not_equal(inner(&x, 2)->party, inner(&x, 6)->party);
    assert_null(ask_sole_call(&x.server.core));
    finish_call(inner(&x, 2), "{}");
    finish_call(inner(&x, 6), "{}");
    end(&x);
}

static void test_wrong_arguments(void **state)
{
    static const struct {
        const char *tool, *arguments, *says;
    } rows[] = {
        {"find_tools", "{}", "needs 'query'"},
        {"find_tools", "{\"query\":1}", "needs 'query'"},
        {"find_tools", "{\"query\":\"x\",\"limit\":0}", "'limit' must be"},
        {"find_tools", "{\"query\":\"x\",\"limit\":1.5}", "'limit' must be"},
        {"call_tool", "{}", "needs 'name'"},
        {"call_tool", "5", "needs 'name'"},
        {"call_tool", "{\"name\":\"s__read\",\"arguments\":[]}", "must be an object"},
        {"call_tool", "{\"name\":\"s__read\",\"arguments\":\"[]\"}", "must be an object"},
        {"call_tool", "{\"name\":\"s__read\",\"arguments\":\"{\"}", "must be an object"},
        {"call_tool", "{\"name\":\"reed\"}", "unknown tool: reed; find_tools gives the names"},
        {"call_tool", "{\"name\":\"read\"}",
         "unknown tool: read; did you mean s__read? find_tools gives the names"},
    };
    struct fixture x;

    (void)state;
    begin(&x);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        call(&x, rows[i].tool, rows[i].arguments);
        const char *said = buf_cstr(&x.stage.account);
        assert_non_null(strstr(said, "\"isError\":true"));
        if (!strstr(said, rows[i].says))
            assert_string_equal(said, rows[i].says);
        x.stage.account.n = 0;
    }
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_tools_are_seen),
        cmocka_unit_test(test_call_and_result),
        cmocka_unit_test(test_answered_inside_open),
        cmocka_unit_test(test_events_and_questions_pass),
        cmocka_unit_test(test_cancel_and_detach),
        cmocka_unit_test(test_agent_leaves_inside_open),
        cmocka_unit_test(test_server_times_out_and_dies),
        cmocka_unit_test(test_stopped_with_calls_open),
        cmocka_unit_test(test_agents_are_told_apart),
        cmocka_unit_test(test_wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
