/*
 * config: the readers of JSON and YAML, importers, schema and checks. The first byte chooses the
 * format. A document that was read, written as YAML and read again must be the same tree.
 */
#include "base/mem.h"
#include "config/load.h"
#include "config/reader.h"
#include "config/schema.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(struct span text, bool json)
{
    struct arena a = {0};
    struct problems ps = {0};
    struct buf yaml = {0}, before = {0}, after = {0};
    struct value *v = json ? json_doc_read(&a, text, &ps) : yaml_read(&a, text, &ps);

    if (v && !ps.errors) {
        value_put_json(&before, v, false);
        value_put_yaml(&yaml, v);
        struct value *again = yaml_read(&a, buf_view(&yaml), &ps);
        if (!again || ps.errors)
            abort();
        value_put_json(&after, again, false);
        if (!span_eq(buf_view(&before), buf_view(&after)))
            abort();
    }
    buf_fini(&yaml);
    buf_fini(&before);
    buf_fini(&after);
    problems_fini(&ps);
    arena_fini(&a);
}

/* The dump of the effective configuration can be read as a configuration. */
static void check_dump(const struct config *c)
{
    struct arena a = {0};
    struct problems ps = {0};
    struct buf yaml = {0};

    value_put_yaml(&yaml, schema_dump(&a, c));
    struct config *again = config_parse(buf_view(&yaml), CONFIG_YAML, &ps);
    if (!again)
        abort();
    config_free(again);
    buf_fini(&yaml);
    problems_fini(&ps);
    arena_fini(&a);
}

/* What import makes of a document is a configuration without errors. */
static void check_convert(struct span text, bool json)
{
    struct problems ps = {0}, none = {0};
    struct buf yaml = {0};

    if (config_convert(text, json ? CONFIG_JSON : CONFIG_YAML, NULL, "f", &yaml, &ps)) {
        struct config *again = config_parse(buf_view(&yaml), CONFIG_YAML, &none);
        if (!again && !strstr(buf_cstr(&yaml), "${")) /* a variable without a value here */
            abort();
        config_free(again);
    }
    buf_fini(&yaml);
    problems_fini(&ps);
    problems_fini(&none);
}

/* A configuration is refused if and only if there are errors; every problem can be written. */
static void check_config(struct span text, bool json)
{
    struct problems ps = {0};
    struct buf out = {0};
    struct config *c = config_parse(text, json ? CONFIG_JSON : CONFIG_YAML, &ps);

    if (!c != (ps.errors > 0))
        abort();
    for (size_t i = 0; i < ps.n; i++)
        problem_put_json(&out, &ps.items[i]);
    if (c)
        check_dump(c);
    if (c && !schema_equal("", c, c))
        abort();
    config_free(c);
    buf_fini(&out);
    problems_fini(&ps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    bool json = data[0] & 1;
    struct span text = span_of((const char *)data + 1, size - 1);

    check_round_trip(text, json);
    check_config(text, json);
    check_convert(text, json);
    return 0;
}
