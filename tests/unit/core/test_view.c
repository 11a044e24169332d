#include "core/route.h"
#include "stage.h"

#include "base/log.h"

/* A view with up to three providers. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fakes[3];
    size_t n;
};

static const char *const aliases[3] = {"alpha", "beta", "gamma"};

static void begin(struct fixture *x, const char *pattern, size_t n)
{
    stage_init(&x->stage);
    x->view = view_new("test", pattern);
    x->n = n;
    for (size_t i = 0; i < n; i++) {
        fake_init(&x->fakes[i], &x->stage, aliases[i]);
        view_add(x->view, &x->fakes[i].core, NULL);
    }
}

static void end(struct fixture *x)
{
    for (size_t i = 0; i < x->n; i++)
        fake_fini(&x->fakes[i]);
    view_free(x->view);
    stage_fini(&x->stage);
}

static void publish_tool(struct fake *f, const char *name, const char *raw, struct cut name_at)
{
    struct catalog *c = catalog_new();

    catalog_add(c, ITEM_TOOL,
                &(struct item){.name = span_str(name), .raw = span_str(raw), .name_at = name_at});
    provider_publish(&f->core, c);
}

/* --- names --- */

static void test_names_follow_the_pattern(void **state)
{
    static const struct {
        const char *pattern, *own, *expected;
    } rows[] = {
        {"{server}__{tool}", "read", "alpha__read"},
        {"mcp_{server}_{tool}", "read", "mcp_alpha_read"},
        {"{tool}", "read", "read"},
        {"{tool}-{tool}", "read", "read-read"},
        {"{server}", "read", "alpha"},
        {"{serve}{tool}", "read", "-serve-read"},
        {"{server}__{tool}", "a.b/c d", "alpha__a-b-c-d"},
        {"{server}__{tool}", "\xc3\xa4", "alpha__--"},
        {"{server}__{tool}", "AZaz09_-", "alpha__AZaz09_-"},
        {NULL, "a.b/c d", "a.b/c d"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture x;
        begin(&x, rows[i].pattern, 1);
        provider_want(&x.fakes[0].core);
        publish_tool(&x.fakes[0], rows[i].own, "{}", (struct cut){0, 0});
        provider_up(&x.fakes[0].core);
        assert_span(view_item(x.view, ITEM_TOOL, 0)->public_name, rows[i].expected);
        assert_span(view_find(x.view, ITEM_TOOL, span_str(rows[i].expected))->item->name,
                    rows[i].own);
        end(&x);
    }
}

static void test_uris_have_no_pattern(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 1);
    fake_ready(&x.fakes[0], "r:file:///a t:file:///{x} p:greet");
    assert_span(view_list(x.view, ITEM_RESOURCE), "[{\"uri\":\"file:///a\"}]");
    assert_span(view_list(x.view, ITEM_TEMPLATE), "[{\"uriTemplate\":\"file:///{x}\"}]");
    assert_span(view_list(x.view, ITEM_PROMPT), "[{\"name\":\"alpha__greet\"}]");
    end(&x);
}

/* 64 bytes are kept; one more and the name is cut to 55 bytes, a dash and eight digits. */
static void test_long_names_get_a_hash(void **state)
{
    const char *sixty = "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-";
    struct fixture x;
    char words[256];

    (void)state;
    begin(&x, "{tool}", 1);
    snprintf(words, sizeof words, "%s1234 %s12345 %s12346", sixty, sixty, sixty);
    fake_ready(&x.fakes[0], words);
    struct span kept = view_item(x.view, ITEM_TOOL, 0)->public_name;
    struct span one = view_item(x.view, ITEM_TOOL, 1)->public_name;
    struct span two = view_item(x.view, ITEM_TOOL, 2)->public_name;
    assert_int_equal(kept.n, 64);
    assert_true(span_starts(kept, span_str(sixty)));
    assert_int_equal(one.n, VIEW_MAX_NAME);
    assert_int_equal(two.n, VIEW_MAX_NAME);
    assert_memory_equal(one.p, words, 55);
    assert_int_equal(one.p[55], '-');
    for (size_t i = 56; i < 64; i++)
        assert_true(strchr("0123456789abcdef", one.p[i]) && one.p[i]);
    assert_false(span_eq(one, two));
    /* The hash is the same in every run, on every machine: agents remember names. */
    assert_span(one, "a23456789-b23456789-c23456789-d23456789-e23456789-f2345-6becd9d2");
    assert_span(two, "a23456789-b23456789-c23456789-d23456789-e23456789-f2345-6becda6f");
    end(&x);
}

/* Tools of pages and of the bridge itself keep their own names, beside the prefixed ones. */
static void test_bare_names_of_a_provider(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 2);
    x.fakes[1].core.bare_names = true;
    fake_ready(&x.fakes[0], "read p:ask");
    fake_ready(&x.fakes[1], "read write p:ask");
    assert_span(view_item(x.view, ITEM_TOOL, 0)->public_name, "alpha__read");
    assert_span(view_item(x.view, ITEM_TOOL, 1)->public_name, "read");
    assert_span(view_item(x.view, ITEM_TOOL, 2)->public_name, "write");
    assert_span(view_list(x.view, ITEM_PROMPT), "[{\"name\":\"alpha__ask\"},{\"name\":\"ask\"}]");
    end(&x);
}

/*
 * A page that offered "bank__transfer" before the server `bank` had listed its tools got that name,
 * and agents took the tool for the server's; the same with a tool that the server does not have.
 * Names that the pattern could give to a server must be reserved for that server.
 */
static void test_a_bare_name_cannot_look_like_a_servers(void **state)
{
    static const struct {
        const char *pattern, *own, *begins; /* start of the new name; NULL: not renamed */
    } rows[] = {
        {"{server}__{tool}", "alpha__read", "read-"},
        {"{server}__{tool}", "ALPHA__read", "read-"},
        {"{server}__{tool}", "alpha__Alpha__read", "read-"},
        {"{server}__{tool}", "alpha__gamma__read", "read-"},
        {"{server}__{tool}", "alpha__", "-"},
        {"{server}__{tool}", "alpha_read", NULL},
        {"{server}__{tool}", "xalpha__read", NULL},
        {"{server}__{tool}", "beta__read", NULL}, /* beta is the provider with bare names itself */
        {"mcp_{server}_{tool}", "mcp_alpha_read", "read-"},
        {"mcp_{server}_{tool}", "mcp_beta_read", NULL},
        {"mcp_{server}-{tool}", "mcp_alpha.read", "read-"}, /* "." becomes "-" in plain names */
        {"{tool}_by_{server}", "read_by_alpha", "read-"},
        {"{tool}_by_{server}", "alpha_read", NULL},
        {"our_{tool}", "our_read", "read-"},
        {"{tool}", "read", NULL},
        {NULL, "alpha__read", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture x;
        begin(&x, rows[i].pattern, 3);
        x.fakes[1].core.bare_names = true;
        fake_ready(&x.fakes[1], rows[i].own); /* the servers have listed nothing yet */
        struct span name = view_item(x.view, ITEM_TOOL, 0)->public_name;
        if (rows[i].begins) {
            assert_true(span_starts(name, span_str(rows[i].begins)));
            assert_int_equal(name.n, strlen(rows[i].begins) + 8);
            assert_null(view_find(x.view, ITEM_TOOL, span_str(rows[i].own)));
        } else {
            assert_span(name, rows[i].own);
        }
        end(&x);
    }
}

/* --- descriptions --- */

static void publish_described(struct fake *f, const char *raw, struct cut name_at,
                              struct cut description_at)
{
    struct catalog *c = catalog_new();

    catalog_add(c, ITEM_TOOL,
                &(struct item){.name = SPAN("x"),
                               .raw = span_str(raw),
                               .name_at = name_at,
                               .description_at = description_at});
    provider_publish(&f->core, c);
}

static void test_descriptions_name_the_server(void **state)
{
    static const struct {
        const char *pattern, *raw;
        struct cut name_at, description_at;
        const char *expected;
    } rows[] = {
        {NULL,
         "{\"name\":\"x\",\"description\":\"Does \\\"it\\\"\",\"n\":1.0}",
         {8, 3},
         {26, 14},
         "[{\"name\":\"x\",\"description\":\"[alpha] Does \\\"it\\\"\",\"n\":1.0}]"},
        {"{server}_{tool}",
         "{\"name\":\"x\",\"description\":\"\"}",
         {8, 3},
         {26, 2},
         "[{\"name\":\"alpha_x\",\"description\":\"[alpha] \"}]"},
        {"{server}_{tool}",
         "{\"description\":\"d\",\"name\":\"x\"}",
         {26, 3},
         {15, 3},
         "[{\"description\":\"[alpha] d\",\"name\":\"alpha_x\"}]"},
        {"{server}_{tool}",
         "{\"name\":\"x\"}",
         {8, 3},
         {0, 0},
         "[{\"description\":\"[alpha]\",\"name\":\"alpha_x\"}]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture x;
        begin(&x, rows[i].pattern, 1);
        view_set_described(x.view, "[");
        provider_want(&x.fakes[0].core);
        publish_described(&x.fakes[0], rows[i].raw, rows[i].name_at, rows[i].description_at);
        provider_up(&x.fakes[0].core);
        assert_span(view_list(x.view, ITEM_TOOL), rows[i].expected);
        /* The provider's own text is not changed. */
        assert_span(view_item(x.view, ITEM_TOOL, 0)->item->raw, rows[i].raw);
        view_set_described(x.view, NULL);
        struct span list = view_list(x.view, ITEM_TOOL);
        assert_null(memmem(list.p, list.n, "[alpha]", 7));
        end(&x);
    }
}

/* --- clashes --- */

/* The names are the same in whatever order the providers come up. */
static void test_clashes_do_not_depend_on_who_came_first(void **state)
{
    static const size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct buf first = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        struct fixture x;
        begin(&x, "{tool}", 3);
        for (size_t k = 0; k < 3; k++) {
            fake_ready(&x.fakes[orders[i][k]], "same p:same");
            (void)view_list(x.view, ITEM_TOOL); /* earlier lists must not influence the names */
        }
        struct span list = view_list(x.view, ITEM_TOOL);
        if (!first.n)
            buf_span(&first, list);
        assert_true(span_eq(list, buf_view(&first)));
        assert_span(view_item(x.view, ITEM_TOOL, 0)->public_name, "same");
        assert_ptr_equal(view_find(x.view, ITEM_TOOL, SPAN("same"))->provider, &x.fakes[0].core);
        for (size_t k = 0; k < 3; k++)
            assert_ptr_equal(view_item(x.view, ITEM_TOOL, k)->provider, &x.fakes[k].core);
        end(&x);
    }
    buf_fini(&first);
}

static void test_a_name_is_kept_for_one_that_is_down(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{tool}", 2);
    fake_ready(&x.fakes[0], "same other");
    fake_ready(&x.fakes[1], "same");
    struct buf renamed = {0};
    buf_span(&renamed, view_item(x.view, ITEM_TOOL, 2)->public_name);
    assert_true(span_starts(buf_view(&renamed), SPAN("same-")));

    provider_lost(&x.fakes[0].core, "gone");
    assert_int_equal(view_list(x.view, ITEM_TOOL).n, strlen("[{\"name\":\"same-01234567\"}]"));
    assert_true(span_eq(view_item(x.view, ITEM_TOOL, 0)->public_name, buf_view(&renamed)));
    assert_null(view_item(x.view, ITEM_TOOL, 1));
    assert_ptr_equal(view_find(x.view, ITEM_TOOL, SPAN("same"))->provider, &x.fakes[0].core);
    assert_ptr_equal(view_find(x.view, ITEM_TOOL, buf_view(&renamed))->provider, &x.fakes[1].core);
    buf_fini(&renamed);
    end(&x);
}

/*
 * A server listed one tool twice. The second got a hash as if it clashed with another server's, so
 * agents saw two tools instead of one. Only the first must be listed.
 */
static void test_a_tool_listed_twice_is_one_tool(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, NULL, 2);
    fake_ready(&x.fakes[0], "read read");
    fake_ready(&x.fakes[1], "read read write");
    assert_span(view_item(x.view, ITEM_TOOL, 0)->public_name, "read");
    assert_true(span_starts(view_item(x.view, ITEM_TOOL, 1)->public_name, SPAN("read-")));
    assert_span(view_item(x.view, ITEM_TOOL, 2)->public_name, "write");
    assert_null(view_item(x.view, ITEM_TOOL, 3));
    end(&x);
}

/*
 * Bare names are passed on unchanged, so they may contain characters that JSON must escape. When
 * two of them clashed, the new name was written without escapes, and the list was not valid JSON
 * (or not UTF-8, if a character was cut in two).
 */
static void test_a_bare_name_that_clashes_becomes_plain(void **state)
{
    const char *raw = "{\"name\":\"say \\\"hi\\\" \xc3\xa4\"}";
    const struct cut name_at = {8, 15};
    struct fixture x;

    (void)state;
    begin(&x, NULL, 2);
    for (size_t i = 0; i < 2; i++) {
        provider_want(&x.fakes[i].core);
        publish_tool(&x.fakes[i], "say \"hi\" \xc3\xa4", raw, name_at);
        provider_up(&x.fakes[i].core);
    }
    struct span renamed = view_item(x.view, ITEM_TOOL, 1)->public_name;
    assert_span(span_cut(renamed, 0, 12), "say--hi-----");
    struct buf expected = {0};
    buf_printf(&expected, "[%s,{\"name\":\"" SPAN_FMT "\"}]", raw, SPAN_ARG(renamed));
    assert_span(view_list(x.view, ITEM_TOOL), buf_cstr(&expected));
    buf_fini(&expected);
    end(&x);
}

/* If a provider has a tool with exactly the name that a clash leads to, the renamed tool is left
 * out and the others are not affected. */
static void test_no_name_is_free(void **state)
{
    struct fixture x;
    char words[64];

    (void)state;
    begin(&x, "{tool}", 3);
    fake_ready(&x.fakes[0], "same");
    fake_ready(&x.fakes[2], "same");
    char *renamed = mem_span(view_item(x.view, ITEM_TOOL, 1)->public_name);
    snprintf(words, sizeof words, "%s other", renamed);
    fake_ready(&x.fakes[1], words);
    assert_ptr_equal(view_find(x.view, ITEM_TOOL, span_str(renamed))->provider, &x.fakes[1].core);
    assert_span(view_item(x.view, ITEM_TOOL, 0)->public_name, "same");
    assert_span(view_item(x.view, ITEM_TOOL, 1)->public_name, renamed);
    assert_span(view_item(x.view, ITEM_TOOL, 2)->public_name, "other");
    assert_null(view_item(x.view, ITEM_TOOL, 3));
    mem_free(renamed);
    end(&x);
}

/* Of two resources with the same uri only the first was listed, and the other could not be read. */
static void test_same_uris_are_told_apart(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 2);
    char *lead = mem_zalloc(100), *text = mem_zalloc(200);
    snprintf(lead, 100, VIEW_URI_FMT, x.fakes[1].core.alias);
    fake_ready(&x.fakes[1], "r:file:///a r:file:///b r:file:///a t:x://{i}");
    fake_ready(&x.fakes[0], "r:file:///a t:x://{i}");
    snprintf(text, 200,
             "[{\"uri\":\"file:///a\"},{\"uri\":\"%sfile:///a\"},{\"uri\":\"file:///b\"}]", lead);
    assert_span(view_list(x.view, ITEM_RESOURCE), text);
    snprintf(text, 200, "[{\"uriTemplate\":\"x://{i}\"},{\"uriTemplate\":\"%sx://{i}\"}]", lead);
    assert_span(view_list(x.view, ITEM_TEMPLATE), text);
    assert_ptr_equal(view_find(x.view, ITEM_RESOURCE, SPAN("file:///a"))->provider,
                     &x.fakes[0].core);

    struct route route;
    snprintf(text, 200, "%sfile:///a", lead);
    struct request request = {.op = OP_READ_RESOURCE, .name = span_str(text)};
    assert_true(route_find(x.view, &request, &route));
    assert_ptr_equal(route.provider, &x.fakes[1].core);
    assert_span(route.own_name, "file:///a");
    snprintf(text, 200, "%sx://7", lead);
    request.name = span_str(text);
    assert_true(route_find(x.view, &request, &route));
    assert_ptr_equal(route.provider, &x.fakes[1].core);
    assert_span(route.own_name, "x://7");
    request.name = SPAN("x://7");
    assert_true(route_find(x.view, &request, &route));
    assert_ptr_equal(route.provider, &x.fakes[0].core);
    mem_free(lead);
    mem_free(text);
    end(&x);
}

/* --- filters --- */

static void test_filters(void **state)
{
    static const struct span read[] = {{"read*", 5}}, all[] = {{"*", 1}};
    static const struct span pair[] = {{"read_?", 6}, {"Write", 5}};
    static const struct {
        struct filter filter;
        const char *name;
        bool passes;
    } rows[] = {
        {{NULL, 0, NULL, 0}, "anything", true},   {{read, 1, NULL, 0}, "read_file", true},
        {{read, 1, NULL, 0}, "READ_FILE", true},  {{read, 1, NULL, 0}, "write", false},
        {{NULL, 0, read, 1}, "read_file", false}, {{NULL, 0, read, 1}, "write", true},
        {{read, 1, all, 1}, "read_file", true}, /* allow wins */
        {{read, 1, read, 1}, "read_file", true},  {{read, 1, all, 1}, "write", false},
        {{pair, 2, NULL, 0}, "read_1", true},     {{pair, 2, NULL, 0}, "read_12", false},
        {{pair, 2, NULL, 0}, "write", true},      {{NULL, 0, all, 1}, "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(filter_passes(&rows[i].filter, span_str(rows[i].name)), rows[i].passes);
}

static void test_filtered_tools_do_not_exist(void **state)
{
    static const struct span allow[] = {{"read", 4}};
    const struct filter filter = {allow, 1, NULL, 0};
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 1);
    view_remove(x.view, &x.fakes[0].core);
    view_add(x.view, &x.fakes[0].core, &filter);
    fake_ready(&x.fakes[0], "read write p:write r:write");
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"alpha__read\"}]");
    assert_null(view_find(x.view, ITEM_TOOL, SPAN("alpha__write")));
    assert_non_null(view_find(x.view, ITEM_PROMPT, SPAN("alpha__write")));
    assert_non_null(view_find(x.view, ITEM_RESOURCE, SPAN("write")));
    end(&x);
}

/* --- lists --- */

static void test_bare_lists_are_byte_exact(void **state)
{
    const char *raw = "{ \"x\" : 1.50e3,\"name\":\"r\\u0065ad\", \"y\":[ ] }";
    struct fixture x;

    (void)state;
    begin(&x, NULL, 1);
    provider_want(&x.fakes[0].core);
    publish_tool(&x.fakes[0], "read", raw, (struct cut){24, 11});
    provider_up(&x.fakes[0].core);
    struct buf expected = {0};
    buf_printf(&expected, "[%s]", raw);
    assert_span(view_list(x.view, ITEM_TOOL), buf_cstr(&expected));
    buf_fini(&expected);
    end(&x);
}

/* Only the value of the name is replaced, wherever it is. */
static void test_names_are_spliced_into_the_list(void **state)
{
    static const struct {
        const char *raw;
        struct cut name_at;
        const char *expected;
    } rows[] = {
        {"{\"name\":\"read\"}", {8, 6}, "[{\"name\":\"alpha__read\"}]"},
        {"{\"name\" : \"read\" , \"a\":1}", {10, 6}, "[{\"name\" : \"alpha__read\" , \"a\":1}]"},
        {"{\"a\":{\"name\":\"read\"},\"name\":\"r\\u0065ad\"}",
         {28, 11},
         "[{\"a\":{\"name\":\"read\"},\"name\":\"alpha__read\"}]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture x;
        begin(&x, "{server}__{tool}", 1);
        provider_want(&x.fakes[0].core);
        publish_tool(&x.fakes[0], "read", rows[i].raw, rows[i].name_at);
        provider_up(&x.fakes[0].core);
        assert_span(view_list(x.view, ITEM_TOOL), rows[i].expected);
        end(&x);
    }
}

static void test_only_what_runs_is_listed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 3);
    assert_span(view_list(x.view, ITEM_TOOL), "[]");
    fake_ready(&x.fakes[2], "c");
    provider_want(&x.fakes[1].core);
    fake_publish(&x.fakes[1], "b1 b2"); /* has a catalog, but is not up yet */
    fake_ready(&x.fakes[0], "a");
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"alpha__a\"},{\"name\":\"gamma__c\"}]");
    assert_span(view_item(x.view, ITEM_TOOL, 1)->public_name, "gamma__c");
    assert_null(view_item(x.view, ITEM_TOOL, 2));
    assert_non_null(view_find(x.view, ITEM_TOOL, SPAN("beta__b2")));

    provider_up(&x.fakes[1].core);
    assert_span(view_item(x.view, ITEM_TOOL, 1)->public_name, "beta__b1");
    assert_span(view_item(x.view, ITEM_TOOL, 3)->public_name, "gamma__c");
    end(&x);
}

static void test_digests_tell_lists_apart(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 1);
    uint64_t empty = view_digest(x.view, ITEM_TOOL);
    fake_ready(&x.fakes[0], "a");
    uint64_t a = view_digest(x.view, ITEM_TOOL);
    fake_publish(&x.fakes[0], "b");
    uint64_t b = view_digest(x.view, ITEM_TOOL);
    fake_publish(&x.fakes[0], "a");
    assert_true(empty != a && a != b && b != empty);
    assert_int_equal(view_digest(x.view, ITEM_TOOL), a);
    assert_int_equal(view_digest(x.view, ITEM_PROMPT), empty);
    end(&x);
}

static void test_members(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "{server}__{tool}", 3);
    for (size_t i = 0; i < 3; i++)
        fake_ready(&x.fakes[i], "a");
    assert_string_equal(view_name(x.view), "test");
    assert_ptr_equal(view_member(x.view, 2), &x.fakes[2].core);
    assert_null(view_member(x.view, 3));
    view_remove(x.view, &x.fakes[1].core);
    assert_false(view_has(x.view, &x.fakes[1].core));
    assert_ptr_equal(view_member(x.view, 1), &x.fakes[2].core);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"alpha__a\"},{\"name\":\"gamma__a\"}]");
    assert_null(view_find(x.view, ITEM_TOOL, SPAN("beta__a")));
    end(&x);
}

/* --- narrowed views --- */

static void test_a_part_of_a_view(void **state)
{
    static const struct span some[] = {{"alpha", 5}, {"gamma", 5}};
    static const struct span deny[] = {{"*delete*", 8}}, no_write[] = {{"write", 5}};
    const struct narrowing narrowing = {some, 2, {[ITEM_TOOL] = {NULL, 0, deny, 1}}};
    const struct filter filter = {NULL, 0, no_write, 1};
    struct fixture x;
    struct route found;

    (void)state;
    begin(&x, "{server}__{tool}", 2);
    struct view *part = view_new("part", "{server}__{tool}");
    view_narrow(part, x.view, &narrowing);
    fake_ready(&x.fakes[0], "read delete_file write p:delete r:delete");
    fake_ready(&x.fakes[1], "read p:x r:y t:{z}");
    assert_span(view_list(part, ITEM_TOOL),
                "[{\"name\":\"alpha__read\"},{\"name\":\"alpha__write\"}]");
    /* Hidden items cannot be called either, nor reached by a uri that matches a template. */
    assert_null(view_find(part, ITEM_TOOL, SPAN("alpha__delete_file")));
    assert_null(view_find(part, ITEM_TOOL, SPAN("beta__read")));
    assert_null(view_find(part, ITEM_PROMPT, SPAN("beta__x")));
    assert_non_null(view_find(part, ITEM_PROMPT, SPAN("alpha__delete")));
    struct request read = {.op = OP_READ_RESOURCE, .name = SPAN("q")};
    assert_true(route_find(x.view, &read, &found));
    assert_ptr_equal(found.provider, &x.fakes[1].core);
    assert_true(route_find(part, &read, &found));
    assert_ptr_equal(found.provider, &x.fakes[0].core);
    assert_false(view_has(part, &x.fakes[1].core));
    assert_ptr_equal(view_member(part, 0), &x.fakes[0].core);
    assert_null(view_member(part, 1));

    /* The part follows the whole view: members' filters apply, members can be added and removed. */
    view_remove(x.view, &x.fakes[0].core);
    assert_span(view_list(part, ITEM_TOOL), "[]");
    view_add(x.view, &x.fakes[0].core, &filter);
    assert_span(view_list(part, ITEM_TOOL), "[{\"name\":\"alpha__read\"}]");
    fake_init(&x.fakes[2], &x.stage, aliases[2]);
    view_add(x.view, &x.fakes[2].core, NULL);
    fake_ready(&x.fakes[2], "new undelete");
    assert_span(view_list(part, ITEM_TOOL),
                "[{\"name\":\"alpha__read\"},{\"name\":\"gamma__new\"}]");
    fake_fini(&x.fakes[2]);
    assert_span(view_list(part, ITEM_TOOL), "[{\"name\":\"alpha__read\"}]");
    view_free(part);
    end(&x);
}

/* A view with its own members can be narrowed too, except for exempt members. */
static void test_narrowing_of_own_members(void **state)
{
    static const struct span some[] = {{"alpha", 5}}, allow[] = {{"read", 4}};
    const struct narrowing narrowing = {some, 1, {[ITEM_TOOL] = {allow, 1, NULL, 0}}};
    struct fixture x;

    (void)state;
    begin(&x, NULL, 2);
    fake_init(&x.fakes[2], &x.stage, aliases[2]);
    x.n = 3;
    view_add_exempt(x.view, &x.fakes[2].core);
    view_narrow(x.view, NULL, &narrowing);
    fake_ready(&x.fakes[0], "read write");
    fake_ready(&x.fakes[1], "read more");
    fake_ready(&x.fakes[2], "find");
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"},{\"name\":\"find\"}]");
    assert_ptr_equal(view_find(x.view, ITEM_TOOL, SPAN("read"))->provider, &x.fakes[0].core);
    assert_null(view_find(x.view, ITEM_TOOL, SPAN("more")));
    assert_ptr_equal(view_member(x.view, 1), &x.fakes[2].core);
    end(&x);
}

/* A large catalog: all names are found, in order, after the arrays have grown. */
static void test_many_tools(void **state)
{
    struct catalog *c = catalog_new();
    struct fixture x;
    char name[32];

    (void)state;
    begin(&x, "{server}__{tool}", 1);
    for (int i = 0; i < 2000; i++) {
        int n = snprintf(name, sizeof name, "t%d", i);
        catalog_add(c, ITEM_TOOL,
                    &(struct item){.name = span_of(name, (size_t)n), .raw = SPAN("{}")});
    }
    provider_want(&x.fakes[0].core);
    provider_publish(&x.fakes[0].core, c);
    provider_up(&x.fakes[0].core);
    for (size_t i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "alpha__t%zu", i);
        const struct target *t = view_item(x.view, ITEM_TOOL, i);
        assert_span(t->public_name, name);
        assert_ptr_equal(view_find(x.view, ITEM_TOOL, span_str(name)), t);
    }
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_follow_the_pattern),
        cmocka_unit_test(test_uris_have_no_pattern),
        cmocka_unit_test(test_long_names_get_a_hash),
        cmocka_unit_test(test_bare_names_of_a_provider),
        cmocka_unit_test(test_a_bare_name_cannot_look_like_a_servers),
        cmocka_unit_test(test_descriptions_name_the_server),
        cmocka_unit_test(test_clashes_do_not_depend_on_who_came_first),
        cmocka_unit_test(test_a_name_is_kept_for_one_that_is_down),
        cmocka_unit_test(test_a_tool_listed_twice_is_one_tool),
        cmocka_unit_test(test_a_bare_name_that_clashes_becomes_plain),
        cmocka_unit_test(test_no_name_is_free),
        cmocka_unit_test(test_same_uris_are_told_apart),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_filtered_tools_do_not_exist),
        cmocka_unit_test(test_bare_lists_are_byte_exact),
        cmocka_unit_test(test_names_are_spliced_into_the_list),
        cmocka_unit_test(test_only_what_runs_is_listed),
        cmocka_unit_test(test_digests_tell_lists_apart),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_a_part_of_a_view),
        cmocka_unit_test(test_narrowing_of_own_members),
        cmocka_unit_test(test_many_tools),
    };
    return cmocka_run_group_tests_name("core/view", tests, NULL, NULL);
}
