/* Building, searching, copying and changing the nodes of a value tree, and finding keys that stand
 * twice. Called by most files of config/, cmd/servers.c and cmd/host_setup_plan.c. */
#include "config/value.h"

#include "base/ascii.h"
#include "base/map.h"

struct value *value_new(struct arena *a, enum value_type type, struct place at)
{
    struct value *v = ARENA_NEW(a, struct value);
    v->type = type;
    v->at = at;
    v->text = SPAN("");
    return v;
}

struct value *value_text(struct arena *a, enum value_type type, struct span text)
{
    struct value *v = value_new(a, type, (struct place){0});
    v->text = arena_span(a, text);
    v->truth = type == VALUE_BOOL && span_is(text, "true");
    return v;
}

void value_append(struct value *parent, struct value *child)
{
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
}

void value_remove(struct value *parent, struct value *child)
{
    struct value *before = NULL;

    for (struct value *v = parent->first; v != child; v = v->next)
        before = v;
    if (before)
        before->next = child->next;
    else
        parent->first = child->next;
    if (parent->last == child)
        parent->last = before;
    child->next = NULL;
    parent->n--;
}

struct value *value_get(const struct value *map, const char *key)
{
    if (map->type != VALUE_MAP)
        return NULL;
    for (struct value *v = map->first; v; v = v->next)
        if (span_is(value_key(v), key))
            return v;
    return NULL;
}

/* Recursion is bounded: no reader builds a tree deeper than VALUE_MAX_DEPTH. */
struct value *value_copy(struct arena *a, const struct value *v, size_t *budget)
{
    if (!*budget)
        return NULL;
    --*budget;
    struct value *copy = ARENA_NEW(a, struct value);
    *copy = *v;
    copy->first = copy->last = copy->next = NULL;
    copy->n = 0;
    for (const struct value *child = v->first; child; child = child->next) {
        struct value *child_copy = value_copy(a, child, budget);
        if (!child_copy)
            return NULL;
        value_append(copy, child_copy);
    }
    return copy;
}

void value_check_keys(const struct value *map, struct problems *problems)
{
    struct map seen = {0};

    for (struct value *v = map->first; v; v = v->next) {
        struct value *first = map_get(&seen, v->key);
        if (first)
            problems_add(problems, PROBLEM_ERROR, v->key_at, v->key.p,
                         "this key occurs twice, first on line %u; keep one", first->key_at.line);
        else
            map_put(&seen, v->key, v);
    }
    map_fini(&seen);
}

const char *value_path(struct arena *a, const char *parent, const struct value *member)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "%s.", parent);
    buf_span(&path, member->key);
    return arena_span(a, buf_view(&path)).p;
}

const char *value_type_name(enum value_type type)
{
    static const char *const names[] = {
        [VALUE_NULL] = "nothing", [VALUE_BOOL] = "true or false", [VALUE_NUMBER] = "a number",
        [VALUE_STRING] = "text",  [VALUE_LIST] = "a list",        [VALUE_MAP] = "a map",
    };
    return names[type];
}

static size_t skip_digits(struct span text, size_t at)
{
    while (at < text.n && ascii_is_digit(text.p[at]))
        at++;
    return at;
}

bool value_is_number(struct span text)
{
    size_t at = text.n && text.p[0] == '-' ? 1 : 0;
    size_t end = skip_digits(text, at);

    if (end == at || (text.p[at] == '0' && end > at + 1))
        return false;
    if (end < text.n && text.p[end] == '.') {
        at = end + 1;
        end = skip_digits(text, at);
        if (end == at)
            return false;
    }
    if (end < text.n && (text.p[end] == 'e' || text.p[end] == 'E')) {
        at = end + 1;
        if (at < text.n && (text.p[at] == '+' || text.p[at] == '-'))
            at++;
        end = skip_digits(text, at);
        if (end == at)
            return false;
    }
    return end == text.n;
}
