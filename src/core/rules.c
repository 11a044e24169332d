/* The table of rules on arguments: which rule matches a call. Called by call_open.c for each call
 * of a tool, by view.c, and by hub/graph/bridge.c when the configuration is read. */
#include "core/rules.h"

#include "base/decimal.h"
#include "core/inside.h"

static const struct span too_long = {"a number with an exponent of more than 15 digits", 48};

void rules_set(struct router *r, const struct rules *rules)
{
    r->rules = rules && rules->n ? rules : NULL;
}

static bool is_named(struct span pattern, struct span name)
{
    return !pattern.n || span_eq(pattern, name) || span_glob(pattern, name);
}

static bool names_server(const struct rule *rule, const struct provider *p)
{
    return is_named(rule->server, span_str(p->alias)) ||
           (p->told_as && is_named(rule->server, span_str(p->told_as)));
}

bool rules_concern(const struct provider *p)
{
    const struct rules *rules = p->router ? p->router->rules : NULL;

    for (size_t i = 0; rules && i < rules->n; i++)
        if (names_server(&rules->rows[i], p))
            return true;
    return false;
}

/* --- tests of one value; each may set *misleads instead of deciding --- */

static bool is_same(const struct argument *a, const struct argument *b, struct span *misleads)
{
    int order = 1;

    if (a->kind != b->kind)
        return false;
    if (a->kind != ARGUMENT_NUMBER)
        return span_eq(a->text, b->text);
    if (!decimal_compare(a->text, b->text, &order))
        *misleads = too_long;
    return order == 0;
}

static bool is_in(const struct rule *rule, const struct argument *a, struct span *misleads)
{
    for (size_t i = 0; i < rule->n_values; i++)
        if (is_same(a, &rule->values[i], misleads))
            return true;
    return false;
}

static bool is_in_range(const struct rule *rule, const struct argument *a, struct span *misleads)
{
    int low = 0, high = 0;

    if (a->kind != ARGUMENT_NUMBER)
        return false;
    if (!decimal_compare(a->text, rule->values[0].text, &low) ||
        !decimal_compare(a->text, rule->values[1].text, &high))
        *misleads = too_long;
    return low >= 0 && high <= 0;
}

/*
 * Append the path with . and .. resolved by its text alone, without a slash at the end. False for a
 * path that is relative or leads above the root.
 */
static bool put_resolved(struct buf *out, struct span path, bool backslashes)
{
    size_t start = out->n;
    struct span rest = path;

    if (!path.n || (path.p[0] != '/' && !(backslashes && path.p[0] == '\\')))
        return false;
    while (rest.n) {
        size_t n = 0;
        while (n < rest.n && rest.p[n] != '/' && !(backslashes && rest.p[n] == '\\'))
            n++;
        struct span name = span_cut(rest, 0, n);
        rest = span_from(rest, n + 1);
        if (span_is(name, "..")) {
            if (out->n == start)
                return false;
            while (out->p[--out->n] != '/')
                ;
        } else if (name.n && !span_is(name, ".")) {
            buf_char(out, '/');
            buf_span(out, name);
        }
    }
    return true;
}

static bool is_within(struct span path, struct span folder, bool backslashes)
{
    BUF_SCOPED resolved = {0};
    BUF_SCOPED bound = {0};

    if (!put_resolved(&resolved, path, backslashes) || !put_resolved(&bound, folder, false))
        return false;
    struct span inner = buf_view(&resolved), outer = buf_view(&bound);
    return span_starts(inner, outer) && (inner.n == outer.n || inner.p[outer.n] == '/');
}

static bool is_outside(const struct rule *rule, const struct argument *a)
{
    if (a->kind != ARGUMENT_TEXT)
        return true;
    /* The server's system may or may not treat a backslash as a slash: the path must be inside the
     * folder in both readings. */
    for (size_t i = 0; i < rule->n_values; i++)
        if (is_within(a->text, rule->values[i].text, false) &&
            is_within(a->text, rule->values[i].text, true))
            return false;
    return true;
}

static bool passes_test(const struct rule *rule, const struct argument *a, struct span *misleads)
{
    if (a->kind == ARGUMENT_ABSENT)
        return rule->test == RULE_ABSENT;
    switch (rule->test) {
    case RULE_ALWAYS:
    case RULE_THERE:
        return true;
    case RULE_ABSENT:
        return false;
    case RULE_MATCHES:
        return a->kind == ARGUMENT_TEXT && span_glob_exact(rule->values[0].text, a->text);
    case RULE_IN:
        return is_in(rule, a, misleads);
    case RULE_RANGE:
        return is_in_range(rule, a, misleads);
    case RULE_OUTSIDE:
        return is_outside(rule, a);
    }
    return false;
}

struct ruling rules_decide(const struct rules *rules, const struct provider *p,
                           const struct request *request, struct buf *scratch)
{
    struct ruling ruling = {0};

    for (size_t i = 0; i < rules->n; i++) {
        const struct rule *rule = &rules->rows[i];
        struct argument a = {.kind = ARGUMENT_OTHER};
        if (!names_server(rule, p) || !is_named(rule->tool, request->name))
            continue;
        if (rule->test != RULE_ALWAYS) {
            scratch->n = 0;
            a = rules->find(p, request, rule->pointer, scratch);
        }
        if (a.kind == ARGUMENT_MISLEADS)
            ruling.misleads = a.text;
        else if (passes_test(rule, &a, &ruling.misleads))
            ruling.by = rule;
        if (ruling.by || ruling.misleads.n)
            return ruling;
    }
    return ruling;
}
