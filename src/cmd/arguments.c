/* Turns KEY=VALUE words, or one JSON object, into the arguments of a tool, by the tool's schema.
 * Called by call.c. */
#include "cmd/arguments.h"

#include "wire/json.h"

static bool is_string_by_schema(struct span tool, struct span key)
{
    struct json_slot schema = tool.n ? json_get(tool, "inputSchema") : (struct json_slot){0};
    struct json_slot properties =
        schema.type == JSON_OBJECT ? json_get(schema.value, "properties") : (struct json_slot){0};
    struct json_iter it = json_iter(properties.value);

    while (properties.type == JSON_OBJECT && json_next(&it))
        if (json_string_is(it.key, key))
            return json_string_is(json_get(it.value, "type").value, SPAN("string"));
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
