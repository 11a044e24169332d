/*
 * Helpers of the config/ tests: problems as one text, and documents read with one call.
 */
#ifndef RIALTO_TESTS_CONFIG_H
#define RIALTO_TESTS_CONFIG_H

#include "../unit.h"
#include "base/buf.h"
#include "config/load.h"
#include "config/problems.h"
#include "config/reader.h"

/* All problems, one per line; the text is freed with the problems. */
static inline const char *problem_lines(struct problems *ps)
{
    struct buf lines = {0};

    for (size_t i = 0; i < ps->n; i++) {
        problem_put(&lines, &ps->items[i]);
        buf_char(&lines, '\n');
    }
    const char *text = arena_span(&ps->arena, buf_view(&lines)).p;
    buf_fini(&lines);
    return text;
}

#define assert_problems(ps, expected) assert_string_equal(problem_lines(ps), (expected))

/* Reads `text` (in a block of exactly its size) and expects exactly these problems. */
static inline void expect_problems(const char *text, enum config_format format,
                                   const char *expected)
{
    struct problems ps = {0};
    struct span exact = unit_exact(span_str(text));

    problems_set_file(&ps, "f");
    config_free(config_parse(exact, format, &ps));
    assert_problems(&ps, expected);
    problems_fini(&ps);
    unit_free(exact);
}

/* Reads a document that must have no problems; the caller frees the config. */
static inline struct config *read_config(const char *text)
{
    struct problems ps = {0};
    struct config *c = config_parse(span_str(text), CONFIG_YAML, &ps);

    assert_problems(&ps, "");
    assert_non_null(c);
    problems_fini(&ps);
    return c;
}

#endif
