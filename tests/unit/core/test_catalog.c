#include "stage.h"

static void test_items_are_copied(void **state)
{
    char name[] = "read", raw[] = "{\"name\":\"read\"}";
    struct catalog *c = catalog_new();

    (void)state;
    catalog_add(c, ITEM_TOOL,
                &(struct item){.name = span_str(name),
                               .raw = span_str(raw),
                               .name_at = {8, 6},
                               .flags = ITEM_READ_ONLY});
    memset(name, 'x', sizeof name - 1);
    memset(raw, 'x', sizeof raw - 1);
    const struct item *item = catalog_find(c, ITEM_TOOL, SPAN("read"));
    assert_non_null(item);
    assert_span(item->raw, "{\"name\":\"read\"}");
    assert_span(span_cut(item->raw, item->name_at.at, item->name_at.n), "\"read\"");
    assert_int_equal(item->flags, ITEM_READ_ONLY);
    catalog_free(c);
}

static void test_kinds_are_kept_apart(void **state)
{
    struct catalog *c = catalog_of_words("same p:same r:x t:y");

    (void)state;
    assert_int_equal(c->n[ITEM_TOOL], 1);
    assert_int_equal(c->n[ITEM_PROMPT], 1);
    assert_ptr_not_equal(catalog_find(c, ITEM_TOOL, SPAN("same")),
                         catalog_find(c, ITEM_PROMPT, SPAN("same")));
    assert_non_null(catalog_find(c, ITEM_RESOURCE, SPAN("x")));
    assert_non_null(catalog_find(c, ITEM_TEMPLATE, SPAN("y")));
    assert_null(catalog_find(c, ITEM_TOOL, SPAN("sam")));
    assert_null(catalog_find(c, ITEM_TOOL, SPAN("x")));
    catalog_free(c);
}

static void test_many_items_keep_their_order(void **state)
{
    struct catalog *c = catalog_new();
    char name[16];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(name, sizeof name, "tool%d", i);
        catalog_add(c, ITEM_TOOL, &(struct item){.name = span_of(name, (size_t)n)});
    }
    assert_int_equal(c->n[ITEM_TOOL], 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "tool%d", i);
        assert_span(c->items[ITEM_TOOL][i].name, name);
    }
    catalog_free(c);
}

static void test_a_kind_is_taken_over_whole(void **state)
{
    struct catalog *old = catalog_of_words("a b p:q"), *fresh = catalog_new();

    (void)state;
    catalog_copy_kind(fresh, old, ITEM_TOOL);
    catalog_copy_kind(fresh, NULL, ITEM_PROMPT);
    catalog_free(old);
    assert_int_equal(fresh->n[ITEM_TOOL], 2);
    assert_int_equal(fresh->n[ITEM_PROMPT], 0);
    assert_span(catalog_find(fresh, ITEM_TOOL, SPAN("b"))->raw, "{\"name\":\"b\"}");
    catalog_free(fresh);
}

static void test_instructions_are_copied(void **state)
{
    char text[] = "use with care";
    struct catalog *c = catalog_new();

    (void)state;
    catalog_set_instructions(c, span_str(text));
    memset(text, 'x', sizeof text - 1);
    assert_span(c->instructions, "use with care");
    catalog_free(c);
}

static void test_nothing_is_in_no_catalog(void **state)
{
    (void)state;
    assert_null(catalog_find(NULL, ITEM_TOOL, SPAN("x")));
    catalog_free(NULL);
}

/* The size of a catalog is bounded; items that fit are kept. */
static void test_what_does_not_fit_is_left_out(void **state)
{
    struct stage s;
    struct fake f;
    struct item item = {.name = SPAN("a"), .raw = SPAN("{\"name\":\"a\"}")};

    (void)state;
    stage_init(&s);
    fake_init(&f, &s, "files");
    router_set_max_catalog(s.router, 2 * (sizeof item + 1 + item.raw.n) + 5);
    struct catalog *c = provider_draft(&f.core);
    assert_true(catalog_add(c, ITEM_TOOL, &item));
    assert_true(catalog_add(c, ITEM_PROMPT, &item));
    assert_false(c->cut);
    assert_false(catalog_add(c, ITEM_TOOL, &item));
    assert_true(c->cut);
    catalog_set_instructions(c, SPAN("too long"));
    assert_int_equal(c->instructions.n, 0);
    catalog_set_instructions(c, SPAN("short"));
    assert_span(c->instructions, "short");
    assert_int_equal(c->n[ITEM_TOOL] + c->n[ITEM_PROMPT], 2);
    provider_publish(&f.core, c);
    assert_non_null(catalog_find(f.core.catalog, ITEM_TOOL, SPAN("a")));
    fake_fini(&f);
    stage_fini(&s);
}

static void test_generations_count_up(void **state)
{
    struct stage s;
    struct fake f;

    (void)state;
    stage_init(&s);
    fake_init(&f, &s, "files");
    fake_publish(&f, "a");
    assert_int_equal(f.core.catalog->generation, 1);
    fake_publish(&f, "a");
    assert_int_equal(f.core.catalog->generation, 2);
    fake_fini(&f);
    stage_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_copied),
        cmocka_unit_test(test_kinds_are_kept_apart),
        cmocka_unit_test(test_many_items_keep_their_order),
        cmocka_unit_test(test_a_kind_is_taken_over_whole),
        cmocka_unit_test(test_instructions_are_copied),
        cmocka_unit_test(test_nothing_is_in_no_catalog),
        cmocka_unit_test(test_what_does_not_fit_is_left_out),
        cmocka_unit_test(test_generations_count_up),
    };
    return cmocka_run_group_tests_name("core/catalog", tests, NULL, NULL);
}
