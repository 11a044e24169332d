/* Compares the arguments of a failed call with the tool's schema, and writes the hint for the
 * model. Called by worker_invoke.c. */
#include "rockbot/hints.h"

#include "base/mem.h"
#include "rockbot/content.h"
#include "wire/json.h"

/* How many arguments are named and compared: a message can have very many. */
enum { MAX_NAMED = 20, MAX_NAME = 64, MAX_COMPARED = 100 };

struct finding {
    struct buf names;
    size_t n;
};

/* The names of missing, unknown and wrong arguments. */
struct findings {
    struct finding missing, unknown, wrong;
};

static bool speaks_of_arguments(struct span error)
{
    static const struct span phrases[] = {
        {"Invalid arguments for tool", 26}, {"-32602", 6}, {"validation error for", 20}};

    for (size_t i = 0; i < COUNT_OF(phrases); i++)
        if (span_has_nocase(error, phrases[i]))
            return true;
    return false;
}

/* The .NET SDK reports every exception with this text, without a reason. */
static bool says_nothing(struct span error)
{
    return !span_trim(error).n || span_has_nocase(error, SPAN("An error occurred invoking"));
}

/* --- comparing --- */

static struct json_slot member(struct span object, struct span raw_key)
{
    struct json_iter it = json_iter(object);
    BUF_SCOPED wanted = {0}, key = {0};
    struct json_slot found = {0};
    struct span name = json_text(raw_key, &wanted);

    while (found.type == JSON_NONE && json_next(&it)) {
        key.n = 0;
        if (span_eq(json_text(it.key, &key), name))
            found = (struct json_slot){it.type, it.value, it.member};
    }
    return found;
}

static bool is_whole(struct span number)
{
    double value;

    return json_double(number, &value) && value > -9e15 && value < 9e15 &&
           value == (double)(long long)value;
}

/* Does the value fit the type that the schema names? */
static bool type_fits(struct span wanted, const struct json_slot *value)
{
    static const struct {
        const char *name;
        enum json_type type, or_type;
    } rows[] = {{"string", JSON_STRING, JSON_STRING}, {"number", JSON_NUMBER, JSON_NUMBER},
                {"boolean", JSON_TRUE, JSON_FALSE},   {"object", JSON_OBJECT, JSON_OBJECT},
                {"array", JSON_ARRAY, JSON_ARRAY},    {"null", JSON_NULL, JSON_NULL}};

    if (json_string_is(wanted, SPAN("integer")))
        return value->type == JSON_NUMBER && is_whole(value->value);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (json_string_is(wanted, span_str(rows[i].name)))
            return value->type == rows[i].type || value->type == rows[i].or_type;
    return true; /* an unknown type is no evidence */
}

static bool value_fits(struct span property, const struct json_slot *value)
{
    struct json_slot type = json_get(property, "type");
    struct json_iter it = json_iter(type.value);
    bool any = false;

    if (type.type == JSON_STRING)
        return type_fits(type.value, value);
    if (type.type != JSON_ARRAY)
        return true;
    while (json_next(&it))
        any |= type_fits(it.value, value);
    return any;
}

static const char *type_word(enum json_type type)
{
    static const char *const words[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "boolean", [JSON_TRUE] = "boolean",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object"};

    return words[type];
}

/* Adds the name of an argument. Returns where to add more about it; NULL when enough are named. */
static struct buf *put_name(struct finding *f, struct span raw_key)
{
    BUF_SCOPED scratch = {0};

    if (f->n++ >= MAX_NAMED)
        return NULL;
    buf_str(&f->names, f->n > 1 ? ", " : "");
    buf_span(&f->names, content_cut(json_text(raw_key, &scratch), MAX_NAME));
    return &f->names;
}

static void put_type(struct buf *out, struct span property)
{
    struct json_slot type = json_get(property, "type");

    if (type.type == JSON_STRING)
        json_unescape(out, type.value);
    else if (type.type == JSON_ARRAY)
        buf_span(out, type.value);
    else
        buf_str(out, "any");
}

/* Does the schema allow arguments that it does not name? */
static bool is_open_ended(struct span schema)
{
    enum json_type more = json_get(schema, "additionalProperties").type;

    return more == JSON_TRUE || more == JSON_OBJECT ||
           (json_get(schema, "properties").type != JSON_OBJECT && more != JSON_FALSE);
}

static void compare(struct findings *f, struct span schema, struct span properties,
                    struct span arguments)
{
    struct json_slot required = json_get(schema, "required");
    struct json_iter it = json_iter(required.type == JSON_ARRAY ? required.value : SPAN("[]"));
    bool open_ended = is_open_ended(schema);

    for (size_t n = 0; n < MAX_COMPARED && json_next(&it); n++)
        if (it.type == JSON_STRING && member(arguments, it.value).type == JSON_NONE)
            put_name(&f->missing, it.value);
    it = json_iter(arguments);
    for (size_t n = 0; n < MAX_COMPARED && json_next(&it); n++) {
        struct json_slot value = {it.type, it.value, it.member};
        struct json_slot property = member(properties, it.key);
        if (property.type == JSON_NONE) {
            if (!open_ended)
                put_name(&f->unknown, it.key);
        } else if (property.type == JSON_OBJECT && !value_fits(property.value, &value)) {
            struct buf *out = put_name(&f->wrong, it.key);
            if (!out)
                continue;
            buf_printf(out, " (is a %s, should be ", type_word(it.type));
            put_type(out, property.value);
            buf_char(out, ')');
        }
    }
}

/* --- the text --- */

static bool is_required(struct json_slot required, struct span raw_key)
{
    struct json_iter it = json_iter(required.type == JSON_ARRAY ? required.value : SPAN("[]"));
    BUF_SCOPED scratch = {0};
    bool found = false;
    struct span name = json_text(raw_key, &scratch);

    while (!found && json_next(&it))
        found = json_string_is(it.value, name);
    return found;
}

static void put_signature(struct buf *out, struct span properties, struct json_slot required)
{
    struct json_iter it = json_iter(properties);
    size_t n = 0;

    while (n < MAX_NAMED && json_next(&it)) {
        buf_str(out, n++ ? ", " : "");
        json_unescape(out, it.key);
        buf_str(out, " (");
        put_type(out, it.type == JSON_OBJECT ? it.value : SPAN("{}"));
        buf_str(out, is_required(required, it.key) ? ", required)" : ")");
    }
    if (!n)
        buf_str(out, "no arguments");
    buf_str(out, json_next(&it) ? " and more." : ".");
}

static void put_finding(struct buf *out, const char *label, const struct finding *f)
{
    if (f->n)
        buf_printf(out, " %s: " SPAN_FMT "%s.", label, SPAN_ARG(buf_view(&f->names)),
                   f->n > MAX_NAMED ? " and more" : "");
}

bool hints_put(struct buf *out, struct span tool, struct span schema, struct span arguments,
               struct span error)
{
    struct json_slot properties = json_get(schema, "properties");
    struct json_slot required = json_get(schema, "required");
    struct findings f = {0};
    struct span known = properties.type == JSON_OBJECT ? properties.value : SPAN("{}");

    if (!schema.n)
        return false;
    compare(&f, schema, known, arguments.n ? arguments : SPAN("{}"));
    bool evidence = f.missing.n || f.unknown.n || f.wrong.n || speaks_of_arguments(error);
    bool hedged = !evidence && says_nothing(error);
    if (evidence || hedged) {
        buf_str(out, hedged ? "\n\nHint: the server gave no details. If the arguments are at fault:"
                            : "\n\nHint: check the arguments.");
        put_finding(out, "Missing", &f.missing);
        put_finding(out, "Unknown", &f.unknown);
        put_finding(out, "Of the wrong type", &f.wrong);
        buf_printf(out, " '" SPAN_FMT "' takes ", SPAN_ARG(tool));
        put_signature(out, known, required);
    }
    buf_fini(&f.missing.names);
    buf_fini(&f.unknown.names);
    buf_fini(&f.wrong.names);
    return evidence || hedged;
}
