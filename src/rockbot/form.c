/* Reads the form of a server's question, describes it, and checks answers to it. Called by
 * handback.c. */
#include "rockbot/form.h"

#include "base/mem.h"
#include "rockbot/content.h"
#include "wire/json.h"

enum { MAX_FIELDS = 50, MAX_OPTIONS = 50 };

static bool is_one_of(struct span text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq_nocase(text, span_str(words[i])))
            return true;
    return false;
}

/* Separators in the name do not count: "API-Key" and "api_key" are the same. */
static bool is_credential(struct span raw_name, struct span field)
{
    static const char *const parts[] = {
        "password", "passwd",     "passphrase", "secret", "token", "apikey", "credential",
        "pincode",  "privatekey", "accesskey",  "otp",    "cvv",   "cvc",    "cardnumber",
        "ssn",      "authcode",   "passcode",   "mfa",    "2fa",   "cookie", "bearer"};
    struct json_slot format = json_get(field, "format");
    BUF_SCOPED scratch = {0}, bare = {0};
    struct span name = json_text(raw_name, &scratch);

    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '_' && name.p[i] != '-' && name.p[i] != ' ' && name.p[i] != '.')
            buf_char(&bare, name.p[i]);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (span_has_nocase(buf_view(&bare), span_str(parts[i])))
            return true;
    return span_eq_nocase(buf_view(&bare), SPAN("pin")) ||
           json_string_is(format.value, SPAN("password"));
}

/* --- choices --- */

/* The list of a field's options, whose elements are texts or have them in `const`. */
static struct json_slot options_of(struct span field)
{
    static const char *const keys[] = {"enum", "oneOf", "anyOf"};
    struct json_slot items = json_get(field, "items"), found = {0};

    if (items.type == JSON_OBJECT)
        field = items.value;
    for (size_t i = 0; i < COUNT_OF(keys) && found.type != JSON_ARRAY; i++)
        found = json_get(field, keys[i]);
    return found.type == JSON_ARRAY ? found : (struct json_slot){0};
}

static struct span option_of(const struct json_iter *it)
{
    struct json_slot inside = {0};

    if (it->type == JSON_OBJECT)
        inside = json_get(it->value, "const");
    if (it->type == JSON_STRING)
        return it->value;
    return inside.type == JSON_STRING ? inside.value : SPAN_EMPTY;
}

static bool has_option(struct span options, struct span raw)
{
    BUF_SCOPED scratch = {0};
    struct span text = json_text(raw, &scratch);

    for (struct json_iter it = json_iter(options); json_next(&it);)
        if (json_string_is(option_of(&it), text))
            return true;
    return false;
}

/* Is one of the options a yes, a no, or another word for them? */
static bool is_decision(struct span options)
{
    static const char *const words[] = {"yes",    "no",    "y",    "n",       "true",    "false",
                                        "ok",     "okay",  "on",   "off",     "confirm", "cancel",
                                        "accept", "allow", "deny", "approve", "reject",  "decline",
                                        "agree",  "abort", "stop", "proceed", "continue"};

    for (struct json_iter it = json_iter(options); json_next(&it);) {
        BUF_SCOPED scratch = {0};
        if (is_one_of(json_text(option_of(&it), &scratch), words, COUNT_OF(words)))
            return true;
    }
    return false;
}

/* --- describing --- */

static bool put_options(struct buf *out, struct span options)
{
    size_t n = 0;

    for (struct json_iter it = json_iter(options); json_next(&it); n++) {
        BUF_SCOPED scratch = {0};
        struct span raw = option_of(&it);
        if (!raw.n || n == MAX_OPTIONS)
            return false;
        buf_str(out, n ? ", " : "one of: ");
        content_put_line(out, json_text(raw, &scratch));
    }
    return n > 0;
}

static bool is_required(struct span schema, struct span raw_name)
{
    struct json_slot required = json_get(schema, "required");
    BUF_SCOPED scratch = {0};
    struct span name = json_text(raw_name, &scratch);

    for (struct json_iter it = json_iter(required.value); json_next(&it);)
        if (json_string_is(it.value, name))
            return true;
    return false;
}

static bool describe_field(struct buf *out, struct span schema, const struct json_iter *field,
                           bool *decides)
{
    static const char *const types[] = {"string", "number", "integer", "boolean", "array"};
    struct json_slot type = json_get(field->value, "type"), options = options_of(field->value);
    BUF_SCOPED scratch = {0}, type_text = {0};
    struct span word = type.type == JSON_STRING ? json_text(type.value, &type_text) : SPAN_EMPTY;

    if (!is_one_of(word, types, COUNT_OF(types)) ||
        (span_is(word, "array") && options.type != JSON_ARRAY))
        return false;
    content_put_line(out, json_text(field->key, &scratch));
    buf_str(out, " (");
    if (options.type == JSON_ARRAY && !put_options(out, options.value))
        return false;
    if (options.type != JSON_ARRAY)
        buf_span(out, word);
    buf_str(out, span_is(word, "array") ? "; a list" : "");
    buf_str(out, is_required(schema, field->key) ? "; required)" : ")");
    *decides |= span_is(word, "boolean") || is_decision(options.value);
    return true;
}

bool form_describe(struct buf *out, struct span schema, const struct form_denied *denied,
                   bool *decides)
{
    struct json_slot fields = {0};
    size_t n = 0;

    *decides = false;
    if (schema.n && json_type_of(schema) == JSON_OBJECT)
        fields = json_get(schema, "properties");
    if (fields.type != JSON_OBJECT)
        return false;
    for (struct json_iter it = json_iter(fields.value); json_next(&it); n++) {
        BUF_SCOPED scratch = {0};
        buf_str(out, n ? ", " : "");
        if (n == MAX_FIELDS || it.type != JSON_OBJECT || is_credential(it.key, it.value) ||
            is_one_of(json_text(it.key, &scratch), denied->names, denied->n) ||
            !describe_field(out, schema, &it, decides))
            return false;
    }
    return n > 0;
}

/* --- checking --- */

static bool fits_list(struct span options, struct span list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);)
        if (it.type != JSON_STRING || !has_option(options, it.value))
            return false;
    return true;
}

static bool in_bounds(struct span field, struct span number)
{
    struct json_slot low = json_get(field, "minimum"), high = json_get(field, "maximum");
    double value, bound;

    if (!json_double(number, &value))
        return false;
    if (low.type == JSON_NUMBER && json_double(low.value, &bound) && value < bound)
        return false;
    return high.type != JSON_NUMBER || !json_double(high.value, &bound) || value <= bound;
}

/* No value is turned into another: "1" is not 1. */
static bool fits(struct span field, const struct json_iter *answer)
{
    struct json_slot type = json_get(field, "type"), options = options_of(field);
    int64_t whole;

    if (json_string_is(type.value, SPAN("boolean")))
        return answer->type == JSON_TRUE || answer->type == JSON_FALSE;
    if (json_string_is(type.value, SPAN("array")))
        return answer->type == JSON_ARRAY && fits_list(options.value, answer->value);
    if (json_string_is(type.value, SPAN("string")))
        return answer->type == JSON_STRING &&
               (options.type != JSON_ARRAY || has_option(options.value, answer->value));
    if (json_string_is(type.value, SPAN("integer")) && !json_int(answer->value, &whole))
        return false;
    return answer->type == JSON_NUMBER && in_bounds(field, answer->value);
}

int form_check(struct span schema, struct span answers, struct err *err)
{
    struct json_slot fields = json_get(schema, "properties");

    for (struct json_iter it = json_iter(answers); json_next(&it);) {
        BUF_SCOPED scratch = {0}, key = {0};
        buf_span(&key, json_text(it.key, &scratch));
        struct json_slot field = json_get(fields.value, buf_cstr(&key));
        if (field.type != JSON_OBJECT)
            return err_set(err, ERR_PROTOCOL, "it has no field '%s'", buf_cstr(&key));
        if (!fits(field.value, &it))
            return err_set(err, ERR_PROTOCOL, "the value of '%s' does not fit it", buf_cstr(&key));
    }
    for (struct json_iter it = json_iter(fields.value); json_next(&it);) {
        BUF_SCOPED scratch = {0}, key = {0};
        buf_span(&key, json_text(it.key, &scratch));
        if (is_required(schema, it.key) && json_get(answers, buf_cstr(&key)).type == JSON_NONE)
            return err_set(err, ERR_PROTOCOL, "the field '%s' is required", buf_cstr(&key));
    }
    return 0;
}
