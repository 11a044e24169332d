/* The table of rules made from a configuration. Called by bridge.c at the start and at a reload. */
#include "hub/graph/rulebook.h"

#include "base/mem.h"
#include "mcp/judged.h"
#include "wire/json.h"

struct rulebook {
    struct arena arena; /* all texts */
    struct rules rules;
};

static struct span keep(struct arena *a, const char *text)
{
    return text ? arena_span(a, span_str(text)) : SPAN_EMPTY;
}

static struct argument value_of(struct arena *a, enum json_type type, struct span raw)
{
    BUF_SCOPED scratch = {0};

    if (type == JSON_STRING)
        return (struct argument){ARGUMENT_TEXT, arena_span(a, json_text(raw, &scratch))};
    return (struct argument){type == JSON_NUMBER ? ARGUMENT_NUMBER : ARGUMENT_OTHER,
                             arena_span(a, raw)};
}

/* The values of a list in JSON. */
static void take_scalars(struct arena *a, struct rule *rule, enum rule_test test, const char *json)
{
    struct argument *values = ARENA_ARRAY(a, struct argument, strlen(json) / 2 + 1);
    struct json_iter it = json_iter(span_str(json));

    rule->test = test;
    rule->values = values;
    while (json_next(&it))
        values[rule->n_values++] = value_of(a, it.type, it.value);
}

static void take_texts(struct arena *a, struct rule *rule, enum rule_test test,
                       const char *const *texts, size_t n)
{
    struct argument *values = ARENA_ARRAY(a, struct argument, n);

    rule->test = test;
    rule->values = values;
    for (; rule->n_values < n; rule->n_values++)
        values[rule->n_values] = (struct argument){ARGUMENT_TEXT, keep(a, texts[rule->n_values])};
}

static void take_test(struct arena *a, struct rule *rule, const struct config_rule *from)
{
    if (from->matches)
        take_texts(a, rule, RULE_MATCHES, &from->matches, 1);
    else if (from->in)
        take_scalars(a, rule, RULE_IN, from->in);
    else if (from->range)
        take_scalars(a, rule, RULE_RANGE, from->range);
    else if (from->outside.n)
        take_texts(a, rule, RULE_OUTSIDE, from->outside.items, from->outside.n);
    else if (from->absent)
        rule->test = RULE_ABSENT;
    else
        rule->test = from->argument ? RULE_THERE : RULE_ALWAYS;
}

/* "rule 2 (/path matches /etc/\*)": callers see it, and learn what to do differently. */
static void put_name(struct buf *out, size_t number, const struct rule *rule)
{
    static const char *const tests[] = {[RULE_ALWAYS] = "",
                                        [RULE_THERE] = " is given",
                                        [RULE_ABSENT] = " is missing",
                                        [RULE_MATCHES] = " matches ",
                                        [RULE_IN] = " is one of ",
                                        [RULE_RANGE] = " is within ",
                                        [RULE_OUTSIDE] =
                                            " must be the absolute path of something in "};

    buf_printf(out, "rule %zu", number);
    if (rule->test == RULE_ALWAYS)
        return;
    buf_printf(out, " (" SPAN_FMT "%s", SPAN_ARG(rule->pointer), tests[rule->test]);
    for (size_t i = 0; i < rule->n_values; i++)
        buf_printf(out, "%s" SPAN_FMT, i ? ", " : "", SPAN_ARG(rule->values[i].text));
    buf_char(out, ')');
}

struct rulebook *rulebook_new(const struct config *c)
{
    struct rulebook *b = MEM_NEW(struct rulebook);
    struct rule *rows = ARENA_ARRAY(&b->arena, struct rule, c->rules.n + 1);

    for (size_t i = 0; i < c->rules.n; i++) {
        const struct config_rule *from = &c->rules.items[i];
        BUF_SCOPED name = {0};
        rows[i] = (struct rule){.server = keep(&b->arena, from->server),
                                .tool = keep(&b->arena, from->tool),
                                .pointer = keep(&b->arena, from->argument),
                                .then = from->then};
        take_test(&b->arena, &rows[i], from);
        put_name(&name, i + 1, &rows[i]);
        rows[i].name = arena_span(&b->arena, buf_view(&name));
    }
    b->rules = (struct rules){rows, c->rules.n, judged_find};
    return b;
}

void rulebook_free(struct rulebook *b)
{
    if (!b)
        return;
    arena_fini(&b->arena);
    mem_free(b);
}

const struct rules *rulebook_rules(const struct rulebook *b)
{
    return &b->rules;
}
