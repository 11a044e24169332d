/* The check of one entry of `rules`. It is strict, because a rule that is misread lets calls
 * through. Listed in schema_rows.c and called by schema.c. */
#include "base/decimal.h"
#include "base/mem.h"
#include "config/check.h"

static const char *wrong_range(const char *range)
{
    struct json_iter it = json_iter(span_str(range));
    struct span bounds[2] = {SPAN_EMPTY, SPAN_EMPTY};
    int order;
    size_t n = 0;

    while (json_next(&it) && n <= COUNT_OF(bounds)) {
        if (n < COUNT_OF(bounds) && it.type == JSON_NUMBER)
            bounds[n] = it.value;
        n++;
    }
    if (n != COUNT_OF(bounds) || !bounds[0].n || !bounds[1].n)
        return "'range' is a list of two numbers: [lowest, highest]";
    if (!decimal_compare(bounds[0], bounds[1], &order))
        return "a number of 'range' has an exponent of more than 15 digits";
    return order > 0 ? "the first number of 'range' is larger than the second" : NULL;
}

static const char *wrong_rule(const struct value *v, const struct config_rule *rule)
{
    static const char *const keys[] = {"server", "tool", "argument", "then", "absent"};
    static const char *const tests[] = {"matches", "in", "range", "outside"};
    size_t given = 0, tested = rule->absent; /* "absent: false" says nothing */

    for (size_t i = 0; i < COUNT_OF(keys); i++)
        given += value_get(v, keys[i]) != NULL;
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        given += value_get(v, tests[i]) != NULL;
        tested += value_get(v, tests[i]) != NULL;
    }
    if (given != v->n)
        return "a rule with a key that is not known is not understood";
    if (!value_get(v, "then"))
        return "expected the key 'then' with allow, deny or ask";
    if (tested && !rule->argument)
        return "expected the key 'argument', which says what is compared";
    if (tested > 1)
        return "'matches', 'in', 'range', 'outside' and 'absent' exclude each other; write a rule "
               "for each";
    return rule->range ? wrong_range(rule->range) : NULL;
}

bool check_rule(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const char *why = wrong_rule(v, entry);

    if (why)
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "%s", why);
    return !why;
}
