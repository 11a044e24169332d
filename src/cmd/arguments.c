/* Turns KEY=VALUE words, or one JSON object, into the arguments of a tool, by the tool's schema.
 * Called by call.c; tools.c shows what a tool takes. */
#include "cmd/arguments.h"

#include "base/mem.h"
#include "cmd/cmd.h"
#include "wire/json.h"

#include <string.h>

/* A member of the tool's inputSchema; JSON_NONE when the member or the schema is missing. */
static struct json_slot in_schema(struct span tool, const char *key)
{
    struct json_slot schema = tool.n ? json_get(tool, "inputSchema") : (struct json_slot){0};

    return schema.type == JSON_OBJECT ? json_get(schema.value, key) : (struct json_slot){0};
}

static bool takes_text(struct span schema);

/* Is one of the alternatives that the schema has under `key` a text? null may stand beside texts.
 */
static bool is_text(const char *key, struct span value, enum json_type type)
{
    if (strcmp(key, "enum") == 0)
        return type == JSON_STRING || type == JSON_NULL;
    if (type == JSON_OBJECT && takes_text(value))
        return true;
    struct span word = type == JSON_OBJECT ? json_get(value, "type").value : value;
    return json_string_is(word, SPAN("string")) || json_string_is(word, SPAN("null"));
}

/* Does the schema take a text and no other kind of value, but for null? */
static bool takes_text(struct span schema)
{
    static const char *const keys[] = {"type", "enum", "anyOf", "oneOf"};

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct json_slot slot = json_get(schema, keys[i]);
        struct json_iter it = json_iter(slot.value), first = it;
        if (slot.type == JSON_STRING)
            return json_string_is(slot.value, SPAN("string"));
        if (slot.type != JSON_ARRAY || !json_next(&first))
            continue;
        bool all = true;
        while (json_next(&it))
            all &= is_text(keys[i], it.value, it.type);
        return all;
    }
    return false;
}

static bool is_string_by_schema(struct span tool, struct span key)
{
    struct json_slot properties = in_schema(tool, "properties");
    struct json_iter it = json_iter(properties.value);

    while (properties.type == JSON_OBJECT && json_next(&it))
        if (json_string_is(it.key, key))
            return it.type == JSON_OBJECT && takes_text(it.value);
    return false;
}

static int put_pair(struct buf *out, const char *word, struct span tool, struct err *err)
{
    struct span whole = span_str(word);
    size_t equals = span_find(whole, '=');
    struct span key = span_cut(whole, 0, equals), value = span_from(whole, equals + 1);

    if (equals == whole.n || !key.n) {
        err_set(err, ERR_SYNTAX, "'%s' is neither KEY=VALUE nor a JSON object", word);
        err_hint(err, "for example: path=/etc/hostname, or '{\"path\": \"/etc/hostname\"}'");
        return ERR_SYNTAX;
    }
    json_quote(out, key);
    buf_char(out, ':');
    if (!is_string_by_schema(tool, key) && json_skim(value, NULL, NULL, NULL, NULL) == 0)
        json_one_line(out, value);
    else
        json_quote(out, value);
    return 0;
}

int arguments_put(struct buf *out, char **words, int n, struct span tool, struct err *err)
{
    if (n == 1 && words[0][0] == '{') {
        enum json_type type;
        size_t at;
        int code = json_skim(span_str(words[0]), NULL, NULL, &type, &at);
        if (code) {
            err_set(err, code, "the arguments are not JSON: %s at character %zu", err_name(code),
                    at + 1);
            err_hint(err, "put the whole object in single quotes, or give KEY=VALUE pairs");
            return code;
        }
        json_one_line(out, span_str(words[0]));
        return 0;
    }
    buf_char(out, '{');
    for (int i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        int code = put_pair(out, words[i], tool, err);
        if (code)
            return code;
    }
    buf_char(out, '}');
    return 0;
}

static bool has_member(struct span object, struct span name)
{
    struct json_iter it = json_iter(object);

    while (json_next(&it))
        if (json_string_is(it.key, name))
            return true;
    return false;
}

int arguments_check(struct span tool, struct span arguments, struct err *err)
{
    struct json_slot required = in_schema(tool, "required");
    struct json_iter it = json_iter(required.value);
    BUF_SCOPED names = {0};
    size_t n = 0;

    while (required.type == JSON_ARRAY && json_next(&it)) {
        BUF_SCOPED scratch = {0};
        if (it.type != JSON_STRING || has_member(arguments, json_text(it.value, &scratch)))
            continue;
        buf_str(&names, n++ ? ", '" : "'");
        buf_span(&names, json_text(it.value, &scratch));
        buf_char(&names, '\'');
    }
    return !n ? 0
              : err_set(err, ERR_SYNTAX,
                        n == 1 ? "the argument %s is missing" : "the arguments %s are missing",
                        buf_cstr(&names));
}

/* The property's type: "STRING"; "VALUE" when it has several types or none. */
static void put_type(struct buf *out, struct span property)
{
    struct json_slot type =
        json_type_of(property) == JSON_OBJECT ? json_get(property, "type") : (struct json_slot){0};
    BUF_SCOPED scratch = {0};
    struct span word = type.type == JSON_STRING ? json_text(type.value, &scratch) : SPAN("value");

    for (size_t i = 0; i < word.n; i++)
        buf_char(out, (char)(word.p[i] >= 'a' && word.p[i] <= 'z' ? word.p[i] - 32 : word.p[i]));
}

void arguments_put_usage(struct buf *out, struct span tool)
{
    struct json_slot properties = in_schema(tool, "properties");
    struct json_slot required = in_schema(tool, "required");

    /* The required arguments come first, as a person would type them. */
    for (int must = 1; must >= 0; must--) {
        struct json_iter it = json_iter(properties.value);
        while (properties.type == JSON_OBJECT && json_next(&it)) {
            BUF_SCOPED scratch = {0};
            struct span name = json_text(it.key, &scratch);
            bool needed = false;
            for (struct json_iter r = json_iter(required.value);
                 required.type == JSON_ARRAY && json_next(&r);)
                needed |= json_string_is(r.value, name);
            if (needed != must)
                continue;
            buf_str(out, out->n ? " " : "");
            buf_str(out, must ? "" : "[");
            cmd_put_plain(out, name);
            buf_char(out, '=');
            put_type(out, it.value);
            buf_str(out, must ? "" : "]");
        }
    }
}
