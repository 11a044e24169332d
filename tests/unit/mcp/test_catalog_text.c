/* A catalog written as text and read again, and texts that are not valid. */
#include "../unit.h"
#include "mcp/server/catalog_text.h"

static void add(struct catalog *c, enum item_kind kind, const char *name, const char *own,
                const char *raw, unsigned flags)
{
    catalog_add(
        c, kind,
        &(struct item){
            .name = span_str(name), .own = span_str(own), .raw = span_str(raw), .flags = flags});
}

static struct catalog *example(void)
{
    struct catalog *c = catalog_new();

    add(c, ITEM_TOOL, "read", "read_file",
        "{\"name\":\"read\",\"description\":\"Reads \\u00e9\",\"inputSchema\":{\"n\":1.50}}",
        ITEM_READ_ONLY);
    add(c, ITEM_TOOL, "bare", "", "{\"inputSchema\":{},\"name\":\"bare\"}", 0);
    add(c, ITEM_RESOURCE, "file:///a", "", "{\"uri\":\"file:///a\",\"name\":\"a\"}", 0);
    add(c, ITEM_PROMPT, "greet", "", "{\"name\":\"greet\"}", ITEM_MADE);
    catalog_set_instructions(c, SPAN("Be \"kind\".\nAlways."));
    c->offers = OFFERS_RESOURCES | OFFERS_PROMPTS;
    return c;
}

static void it_reads_back_the_same(void **state)
{
    struct catalog *c = example();
    struct buf text = {0}, again = {0};

    (void)state;
    catalog_text_put(&text, c);
    struct catalog *back = catalog_text_read(buf_view(&text));
    assert_non_null(back);
    const struct item *read = catalog_find(back, ITEM_TOOL, SPAN("read"));
    assert_non_null(read);
    assert_true(span_is(read->own, "read_file"));
    assert_true(span_is(span_cut(read->raw, read->name_at.at, read->name_at.n), "\"read\""));
    assert_true(span_is(span_cut(read->raw, read->description_at.at, read->description_at.n),
                        "\"Reads \\u00e9\""));
    assert_int_equal(read->flags, ITEM_READ_ONLY);
    assert_non_null(catalog_find(back, ITEM_RESOURCE, SPAN("file:///a")));
    assert_int_equal(back->offers, c->offers);
    assert_true(span_eq(back->instructions, c->instructions));
    catalog_text_put(&again, back);
    assert_true(span_eq(buf_view(&again), buf_view(&text)));
    catalog_free(back);
    catalog_free(c);
    buf_fini(&text);
    buf_fini(&again);
}

/* A file that was truncated by a full disk or a power failure is not read. */
static void a_part_of_it_is_nothing(void **state)
{
    struct catalog *c = example();
    struct buf text = {0};

    (void)state;
    catalog_text_put(&text, c);
    for (size_t n = 0; n + 1 < text.n; n++) /* the last newline may be missing */
        assert_null(catalog_text_read(span_of(text.p, n)));
    buf_str(&text, "{}\n");
    assert_null(catalog_text_read(buf_view(&text)));
    catalog_free(c);
    buf_fini(&text);
}

static void anything_else_is_nothing(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "[]\n",
        "{}\n",
        "{\"format\":1,\"items\":0,\"offers\":0,\"instructions\":\"\"}\n",
        "{\"format\":2,\"items\":-1,\"offers\":0,\"instructions\":\"\"}\n",
        "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n"
        "{\"kind\":4,\"own\":\"\",\"label\":\"\",\"flags\":0,\"item\":{\"name\":\"a\"}}\n",
        "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n"
        "{\"kind\":0,\"own\":\"\",\"label\":\"\",\"flags\":0,\"item\":{\"name\":1}}\n",
        "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n"
        "{\"kind\":0,\"label\":\"\",\"flags\":0,\"item\":{\"name\":\"a\"}}\n",
        "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n"
        "{\"kind\":0,\"own\":\"\",\"label\":\"\",\"flags\":0,\"item\":[\"name\"]}\n",
        "{\"format\":2,\"items\":1,\"offers\":0,\"instructions\":\"\"}\n"
        "{\"kind\":0,\"own\":\"\",\"flags\":0,\"item\":{\"name\":\"a\"}}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_null(catalog_text_read(span_str(texts[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_back_the_same),
        cmocka_unit_test(a_part_of_it_is_nothing),
        cmocka_unit_test(anything_else_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
