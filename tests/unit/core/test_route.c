#include "stage.h"

static void test_templates(void **state)
{
    static const struct {
        const char *uri_template, *uri;
        bool matches;
    } rows[] = {
        {"file:///a", "file:///a", true},
        {"file:///a", "file:///b", false},
        {"file:///a", "file:///ab", false},
        {"file:///ab", "file:///a", false},
        {"", "", true},
        {"", "a", false},
        {"{x}", "", true}, /* an undefined variable expands to nothing */
        {"{x}", "abc", true},
        {"{x}", "a/b", false},
        {"{+x}", "a/b", true},
        {"{/x}", "/a/b", true},
        {"{x*}", "a/b", true},
        {"{#x}", "#a/b", true},
        {"{?q,r}", "?q=1&r=/", true},
        {"file:///{x}", "file:///a", true},
        {"file:///{x}", "file:///a/b", false},
        {"file:///{x}/b", "file:///a/b", true},
        {"file:///{x}/b", "file:///a/c", false},
        {"file:///{x}.txt", "file:///a.txt.txt", true},
        {"{a}-{b}", "1-2-3", true},
        {"{a}{b}", "12", true},
        {"{a}-{b}", "12", false},
        {"db://{t}/{id}", "db://users/7", true},
        {"db://{t}/{id}", "db://users/7/8", false},
        {"db://{t}/{id}", "DB://users/7", false},
        {"a{b", "a{b", true}, /* no expression: taken literally */
        {"a{b", "axb", false},
        {"a}b", "a}b", true},
        {"{}", "x", true},
        {"{", "{", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct span t = unit_exact(span_str(rows[i].uri_template));
        struct span uri = unit_exact(span_str(rows[i].uri));
        if (route_template_matches(t, uri) != rows[i].matches)
            fail_msg("%s on %s", rows[i].uri_template, rows[i].uri);
        unit_free(t);
        unit_free(uri);
    }
}

/*
 * git://{+repo}/blob/{sha} did not match git://a/blob/b/blob/c: the first "/blob/" was taken for
 * the one in the template, {sha} does not match a slash, and no longer {+repo} was tried.
 */
static void test_templates_try_every_way(void **state)
{
    (void)state;
    assert_true(
        route_template_matches(SPAN("git://{+repo}/blob/{sha}"), SPAN("git://a/blob/b/blob/c")));
    assert_true(route_template_matches(SPAN("a{+p}b{q}c"), SPAN("a1b/2b3c")));
    assert_false(route_template_matches(SPAN("a{+p}b{q}c"), SPAN("a1b/2b/3c")));
}

/* Matching a uri must not take more time than its length times the template's length. */
static void test_templates_do_not_search(void **state)
{
    struct buf t = {0}, uri = {0};

    (void)state;
    for (int i = 0; i < 300; i++)
        buf_str(&t, "{+x}a");
    buf_char(&t, 'b');
    for (int i = 0; i < 4000; i++)
        buf_char(&uri, 'a');
    assert_false(route_template_matches(buf_view(&t), buf_view(&uri)));
    buf_char(&uri, 'b');
    assert_true(route_template_matches(buf_view(&t), buf_view(&uri)));
    for (int i = 0; i < 100; i++)
        buf_char(&uri, 'b');
    assert_false(route_template_matches(SPAN("{x}"), buf_view(&uri))); /* over the length limit */
    buf_fini(&t);
    buf_fini(&uri);
}

/* Two providers in a prefixed view, found by name. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake a, b;
    struct route route;
};

static void begin(struct fixture *x, const char *a_words, const char *b_words)
{
    stage_init(&x->stage);
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->a, &x->stage, "a");
    fake_init(&x->b, &x->stage, "b");
    view_add(x->view, &x->a.core, NULL);
    view_add(x->view, &x->b.core, NULL);
    fake_ready(&x->a, a_words);
    fake_ready(&x->b, b_words);
}

static void end(struct fixture *x)
{
    fake_fini(&x->a);
    fake_fini(&x->b);
    view_free(x->view);
    stage_fini(&x->stage);
}

static bool find(struct fixture *x, enum op op, const char *name)
{
    struct request request = {.op = op, .name = span_str(name)};

    return route_find(x->view, &request, &x->route);
}

static void test_tools_and_prompts_by_name(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "read p:greet", "read write+ro fix+id");
    assert_true(find(&x, OP_CALL_TOOL, "b__read"));
    assert_ptr_equal(x.route.provider, &x.b.core);
    assert_span(x.route.own_name, "read");
    assert_false(x.route.repeatable);
    assert_true(find(&x, OP_CALL_TOOL, "b__write"));
    assert_true(x.route.repeatable);
    assert_true(find(&x, OP_CALL_TOOL, "b__fix"));
    assert_true(x.route.repeatable);
    assert_true(find(&x, OP_GET_PROMPT, "a__greet"));
    assert_true(x.route.repeatable);
    assert_true(find(&x, OP_COMPLETE, "a__greet"));
    assert_true(x.route.repeatable);

    assert_false(find(&x, OP_CALL_TOOL, "read"));
    assert_span(x.route.why, "unknown tool");
    assert_false(find(&x, OP_CALL_TOOL, "a__greet"));
    assert_false(find(&x, OP_CALL_TOOL, "c__read"));
    assert_false(find(&x, OP_CALL_TOOL, ""));
    assert_false(find(&x, OP_GET_PROMPT, "a__read"));
    assert_span(x.route.why, "unknown prompt");
    assert_false(find(&x, OP_COMPLETE, "a__nothing"));
    assert_span(x.route.why, "unknown prompt or resource template");
    end(&x);
}

static void test_resources_by_uri_then_template(void **state)
{
    static const enum op ops[] = {OP_READ_RESOURCE, OP_SUBSCRIBE, OP_UNSUBSCRIBE};
    struct fixture x;

    (void)state;
    begin(&x, "r:file:///a t:file:///{x}", "r:file:///b t:db://{+x}");
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        assert_true(find(&x, ops[i], "file:///b")); /* a resource wins over a template */
        assert_ptr_equal(x.route.provider, &x.b.core);
        assert_true(find(&x, ops[i], "file:///c"));
        assert_ptr_equal(x.route.provider, &x.a.core);
        assert_span(x.route.own_name, "file:///c");
        assert_true(find(&x, ops[i], "db://x/y"));
        assert_ptr_equal(x.route.provider, &x.b.core);
        assert_false(find(&x, ops[i], "http://elsewhere"));
        assert_span(x.route.why, "resource not found");
    }
    /* Completion of a template's variable names the template itself. */
    assert_true(find(&x, OP_COMPLETE, "db://{+x}"));
    assert_ptr_equal(x.route.provider, &x.b.core);
    assert_span(x.route.own_name, "db://{+x}");
    end(&x);
}

static void test_the_only_one_with_resources_gets_the_rest(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "read", "read r:file:///b");
    assert_true(find(&x, OP_READ_RESOURCE, "secret://never-listed"));
    assert_ptr_equal(x.route.provider, &x.b.core);
    assert_span(x.route.own_name, "secret://never-listed");
    fake_publish(&x.a, "t:x://{y}");
    assert_false(find(&x, OP_READ_RESOURCE, "secret://never-listed"));
    end(&x);

    begin(&x, "read", "read");
    assert_false(find(&x, OP_READ_RESOURCE, "file:///b"));
    end(&x);
}

/*
 * Reading a listed resource was not repeated after a crash, while reading one that only matched a
 * template was. Both must be repeatable.
 */
static void test_reading_is_repeatable(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "r:file:///a t:file:///{x}", "");
    assert_true(find(&x, OP_READ_RESOURCE, "file:///a"));
    assert_true(x.route.repeatable);
    assert_true(find(&x, OP_READ_RESOURCE, "file:///b"));
    assert_true(x.route.repeatable);
    end(&x);
}

/*
 * While a server was restarting, its tools could be called (the call waits), but resources of its
 * templates were "not found", and if two servers had a matching template, the one that was up got
 * the read. A name must always lead to the same server.
 */
static void test_templates_of_one_that_is_down(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "t:file:///{x}", "t:file:///{+x} t:db://{x}");
    provider_lost(&x.a.core, "gone");
    assert_true(find(&x, OP_READ_RESOURCE, "file:///a"));
    assert_ptr_equal(x.route.provider, &x.a.core);
    provider_lost(&x.b.core, "gone");
    assert_true(find(&x, OP_READ_RESOURCE, "db://a"));
    assert_ptr_equal(x.route.provider, &x.b.core);
    end(&x);
}

/* logging/setLevel names a level, not a tool; a tool called "debug" must not get it. */
static void test_what_has_no_owner_is_not_routed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "debug", "");
    assert_false(find(&x, OP_SET_LEVEL, "a__debug"));
    assert_span(x.route.why, "not an operation of one server");
    assert_false(find(&x, OP_STANDING, "a__debug"));
    end(&x);
}

/* An unknown method can be routed only in a view of one server without renamed items. */
static void test_any_other_method_goes_to_the_only_one(void **state)
{
    struct fixture x;
    struct route route;
    const struct request other = {.op = OP_OTHER, .name = SPAN("invented/yesterday")};
    const struct request told = {.op = OP_TELL, .name = SPAN("notifications/invented")};

    (void)state;
    begin(&x, "tool", "tool");
    assert_false(find(&x, OP_OTHER, "invented/yesterday"));
    assert_span(x.route.why, "unknown method");
    struct view *bare = view_new("bare", NULL), *named = view_new("named", "{server}_{tool}");
    assert_false(route_find(bare, &other, &route));
    view_add(bare, &x.a.core, NULL);
    view_add(named, &x.a.core, NULL);
    assert_true(route_find(bare, &other, &route));
    assert_ptr_equal(route.provider, &x.a.core);
    assert_span(route.own_name, "invented/yesterday");
    assert_false(route.repeatable); /* what the method does is unknown */
    assert_true(route_find(bare, &told, &route));
    assert_false(route_find(named, &other, &route));
    x.a.core.takes_any = false; /* the provider's family cannot pass on unknown methods */
    assert_false(route_find(bare, &other, &route));
    x.a.core.takes_any = true;
    const struct span some[] = {SPAN("to*")};
    struct view *less = view_new("less", NULL);
    view_add(less, &x.a.core, &(struct filter){.deny = some, .n_deny = 1});
    assert_false(route_find(less, &other, &route)); /* the view hides a part of the server */
    view_free(less);
    view_add(bare, &x.b.core, NULL);
    assert_false(route_find(bare, &other, &route));
    view_free(named);
    view_free(bare);
    end(&x);
}

/*
 * A view could hide only tools: a caller who was given one tool of a server could read all of its
 * resources. A hidden resource must not be reachable in another way either: by a matching template,
 * because only one server has resources, or by another spelling of the uri.
 */
static void test_a_narrowed_view_hides_resources(void **state)
{
    static const struct span names[] = {{"*secret*", 8}, {"Hidden?", 7}};
    static const struct span shown[] = {{"note://a", 8}, {"Open", 4}, {"dir://d/*", 9}};
    static const struct narrowing deny = {
        .filters = {[ITEM_RESOURCE] = {NULL, 0, names, 2}, [ITEM_TEMPLATE] = {NULL, 0, names, 2}}};
    static const struct narrowing allow = {
        .filters = {[ITEM_RESOURCE] = {shown, 3, NULL, 0}, [ITEM_TEMPLATE] = {shown, 3, NULL, 0}}};
    static const struct {
        const char *uri;
        bool denying, allowing;
    } rows[] = {
        {"note://a", true, true},
        {"note://b", false, false}, /* listed as Hidden1 */
        {"note://c", true, false},
        {"note://secret", false, false},
        {"note://SECRET/x", false, false},
        {"note://s%65cret", false, false},
        {"note://x/../secre%74", false, false},
        {"note://x/../y", false, false}, /* refused wherever it leads */
        {"note://x//y", false, false},
        {"note://x/y", true, false},
        {"open://7", true, true}, /* by the template Open */
        {"open://7/8", true, false},
        {"closed://7", false, false}, /* by the template Hidden2 */
        {"closed://{x}", false, false},
        {"open://{x}", true, true},
        {"dir://d/x%20y", true, true},
        {"dir://d/../x", false, false}, /* leads out of the allowed folder */
        {"dir://d/%2e%2e/x", false, false},
    };
    struct fixture x;

    (void)state;
    begin(&x,
          "r:note://a r:note://b=Hidden1 r:note://c t:open://{x}=Open t:closed://{x}=Hidden2 "
          "p:greet",
          "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static const enum op ops[] = {OP_READ_RESOURCE, OP_SUBSCRIBE, OP_UNSUBSCRIBE, OP_COMPLETE};
        for (size_t way = 0; way < COUNT_OF(ops); way++) {
            view_narrow(x.view, NULL, NULL);
            assert_true(find(&x, ops[way], rows[i].uri));
            view_narrow(x.view, NULL, &allow);
            if (find(&x, ops[way], rows[i].uri) != rows[i].allowing)
                fail_msg("allow: %s by %zu", rows[i].uri, way);
            view_narrow(x.view, NULL, &deny);
            if (find(&x, ops[way], rows[i].uri) != rows[i].denying)
                fail_msg("deny: %s by %zu", rows[i].uri, way);
        }
        assert_int_equal(route_may_read(x.view, &x.a.core, span_str(rows[i].uri)), rows[i].denying);
    }
    end(&x);
}

static void test_a_narrowed_view_hides_prompts(void **state)
{
    static const struct span names[] = {{"secret*", 7}};
    static const struct narrowing deny = {.filters = {[ITEM_PROMPT] = {NULL, 0, names, 1}}};
    struct fixture x;

    (void)state;
    begin(&x, "r:note://a p:greet p:secret_plan", "");
    view_narrow(x.view, NULL, &deny);
    assert_span(view_list(x.view, ITEM_PROMPT), "[{\"name\":\"a__greet\"}]");
    assert_true(find(&x, OP_GET_PROMPT, "a__greet"));
    assert_true(find(&x, OP_COMPLETE, "a__greet"));
    assert_false(find(&x, OP_GET_PROMPT, "a__secret_plan"));
    /* The server's own name for the prompt. */
    assert_false(find(&x, OP_GET_PROMPT, "secret_plan"));
    assert_false(find(&x, OP_COMPLETE, "secret_plan"));
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_narrowed_view_hides_resources),
        cmocka_unit_test(test_a_narrowed_view_hides_prompts),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_templates_try_every_way),
        cmocka_unit_test(test_templates_do_not_search),
        cmocka_unit_test(test_tools_and_prompts_by_name),
        cmocka_unit_test(test_resources_by_uri_then_template),
        cmocka_unit_test(test_the_only_one_with_resources_gets_the_rest),
        cmocka_unit_test(test_reading_is_repeatable),
        cmocka_unit_test(test_templates_of_one_that_is_down),
        cmocka_unit_test(test_what_has_no_owner_is_not_routed),
        cmocka_unit_test(test_any_other_method_goes_to_the_only_one),
    };
    return cmocka_run_group_tests_name("core/route", tests, NULL, NULL);
}
