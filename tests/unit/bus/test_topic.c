#include "bus/topic.h"

#include "../unit.h"

#include <stdio.h>

/* The same results as in RockBot's in-process bus: `*` is one segment, `#` none or more, anywhere.
 */
static const struct {
    const char *pattern, *topic;
    bool matches;
} rows[] = {
    {"a.b", "a.b", true},
    {"a.b", "a.c", false},
    {"a.b", "a", false},
    {"a.b", "a.b.c", false},
    {"a.*", "a.b", true},
    {"a.*", "a", false},
    {"a.*", "a.b.c", false},
    {"*.b", "a.b", true},
    {"*", "a", true},
    {"*", "a.b", false},
    {"*.*", "a.b", true},
    {"a.#", "a", true},
    {"a.#", "a.b", true},
    {"a.#", "a.b.c.d", true},
    {"a.#", "b", false},
    {"a.#", "ab", false},
    {"#", "a", true},
    {"#", "a.b.c", true},
    {"#.c", "c", true},
    {"#.c", "a.b.c", true},
    {"#.c", "a.b", false},
    {"a.#.c", "a.c", true},
    {"a.#.c", "a.b.b.c", true},
    {"a.#.c", "a.c.b", false},
    {"a.#.c", "a.c.b.c", true},
    {"#.#", "a", true},
    {"#.b.#", "a.b.c", true},
    {"#.b.#", "a.c.c", false},
    {"*.#", "a", true},
    {"#.*", "a", true},
    {"#.*.#", "a.b.c", true},
    {"a.*.#.d", "a.d", false},
    {"a.*.#.d", "a.b.d", true},
    {"a.*.#.d", "a.d.d", true},
    {"tool.meta.mcp.*", "tool.meta.mcp.RockBot", true},
    {"tool.meta.mcp.*", "tool.meta.mcp", false},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool got = topic_matches(span_str(rows[i].pattern), span_str(rows[i].topic));
        if (got != rows[i].matches)
            fail_msg("%s on %s", rows[i].pattern, rows[i].topic);
    }
}

static void test_valid(void **state)
{
    (void)state;
    static const char *const topics[] = {"a", "a.b", "tool.result.Rock-Bot_1", "x:y/z"};
    static const char *const neither[] = {"",    ".",     "a.",   ".a",   "a..b",
                                          "a b", "a\n.b", "a*.b", "#a.b", "\xc3\xa4"};
    static const char *const patterns[] = {"*", "#", "a.*.b", "#.a.#"};

    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        assert_true(topic_is_valid(span_str(topics[i])));
        assert_true(topic_is_pattern(span_str(topics[i])));
    }
    for (size_t i = 0; i < COUNT_OF(neither); i++) {
        assert_false(topic_is_valid(span_str(neither[i])));
        assert_false(topic_is_pattern(span_str(neither[i])));
    }
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        assert_false(topic_is_valid(span_str(patterns[i])));
        assert_true(topic_is_pattern(span_str(patterns[i])));
    }
    char longest[257];
    memset(longest, 'x', sizeof longest);
    assert_true(topic_is_valid(span_of(longest, 255)));
    assert_false(topic_is_valid(span_of(longest, 256)));
}

struct probe {
    struct topic_entry entry;
    char pattern[64];
    int hits;
    bool in;
};

static void on_found(void *arg, struct topic_entry *e)
{
    (void)arg;
    CONTAINER_OF(e, struct probe, entry)->hits++;
}

static void make_text(uint64_t *seed, char *out, bool pattern)
{
    static const char *const words[] = {"a", "b", "c", "*", "#"};
    size_t n = 1 + unit_below(seed, 5);

    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        snprintf(out + strlen(out), 8, "%s%s", i ? "." : "",
                 words[unit_below(seed, pattern ? 5 : 3)]);
}

/* The tree compared with topic_matches, while patterns are added and removed. */
static void test_tree(void **state)
{
    (void)state;
    struct topic_tree tree;
    struct probe probes[200] = {0};
    uint64_t seed = 7;
    char topic[64];

    topic_tree_init(&tree);
    for (int round = 0; round < 3000; round++) {
        struct probe *p = &probes[unit_below(&seed, COUNT_OF(probes))];
        if (p->in) {
            topic_tree_remove(&tree, &p->entry);
        } else {
            make_text(&seed, p->pattern, true);
            topic_tree_add(&tree, span_str(p->pattern), &p->entry);
        }
        p->in = !p->in;
        make_text(&seed, topic, false);
        topic_tree_match(&tree, span_str(topic), on_found, NULL);
        for (size_t i = 0; i < COUNT_OF(probes); i++) {
            bool should =
                probes[i].in && topic_matches(span_str(probes[i].pattern), span_str(topic));
            if (probes[i].hits != should)
                fail_msg("%s on %s: %d", probes[i].pattern, topic, probes[i].hits);
            probes[i].hits = 0;
        }
    }
    for (size_t i = 0; i < COUNT_OF(probes); i++)
        if (probes[i].in)
            topic_tree_remove(&tree, &probes[i].entry);
    assert_int_equal(tree.n_nodes, 1);
    topic_tree_fini(&tree);
}

/* A pattern of only wildcards must not take exponential time. */
static void test_hard_pattern(void **state)
{
    (void)state;
    struct topic_tree tree;
    struct probe probe = {0};
    char pattern[256] = "", topic[256] = "";

    for (int i = 0; i < 60; i++)
        snprintf(pattern + strlen(pattern), 8, "%s#.a", i ? "." : "");
    for (int i = 0; i < 120; i++)
        snprintf(topic + strlen(topic), 8, "%sa", i ? "." : "");
    snprintf(topic + strlen(topic), 8, ".b");
    assert_false(topic_matches(span_str(pattern), span_str(topic)));
    topic_tree_init(&tree);
    topic_tree_add(&tree, span_str(pattern), &probe.entry);
    topic_tree_match(&tree, span_str(topic), on_found, NULL);
    assert_int_equal(probe.hits, 0);
    topic_tree_remove(&tree, &probe.entry);
    topic_tree_fini(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_hard_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
