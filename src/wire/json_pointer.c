/* A JSON pointer followed into a validated text, member by member. Called by mcp/judged.c for
 * rules about arguments; config/check_text.c checks pointers here. */
#include "wire/json_pointer.h"

#include "base/ascii.h"

const char *json_pointer_wrong(struct span pointer)
{
    if (!pointer.n || pointer.p[0] != '/')
        return "a JSON pointer begins with '/': /path, /options/path, /files/0";
    for (size_t i = 0; i < pointer.n; i++)
        if (pointer.p[i] == '~' &&
            (i + 1 == pointer.n || (pointer.p[i + 1] != '0' && pointer.p[i + 1] != '1')))
            return "in a JSON pointer '~' is written ~0, and '/' in a name ~1";
    return NULL;
}

/* A name of the pointer as it is meant: ~1 is '/', ~0 is '~'. */
static struct span plain_name(struct span name, struct buf *scratch)
{
    if (span_find(name, '~') == name.n)
        return name;
    scratch->n = 0;
    for (size_t i = 0; i < name.n; i++) {
        bool coded = name.p[i] == '~';
        i += coded;
        buf_char(scratch, !coded ? name.p[i] : name.p[i] == '0' ? '~' : '/');
    }
    return buf_view(scratch);
}

static bool step_object(struct span object, struct span name, struct json_slot *out)
{
    struct json_iter it = json_iter(object);
    struct json_slot found = {.type = JSON_NONE};

    while (json_next(&it)) {
        bool same = json_string_is(it.key, name);
        struct json_slot here = {it.type, it.value, it.member};
        if ((same && found.type != JSON_NONE) || (!same && json_string_resembles(it.key, name))) {
            *out = here;
            return false;
        }
        if (same)
            found = here;
    }
    *out = found;
    return true;
}

static void step_array(struct span array, struct span name, struct json_slot *out)
{
    struct json_iter it = json_iter(array);
    int64_t index;

    *out = (struct json_slot){.type = JSON_NONE};
    if (!name.n || !ascii_is_digit(name.p[0]) || (name.n > 1 && name.p[0] == '0') ||
        !json_int(name, &index))
        return;
    while (json_next(&it))
        if (index-- == 0) {
            *out = (struct json_slot){it.type, it.value, it.member};
            return;
        }
}

/* Does the raw string hold what looks like an object or a list? */
static bool holds_container(struct span raw)
{
    BUF_SCOPED scratch = {0};
    struct span text = json_text(raw, &scratch);

    while (text.n && strchr(" \t\r\n", text.p[0]))
        text = span_from(text, 1);
    return text.n && (text.p[0] == '{' || text.p[0] == '[');
}

bool json_pointer_find(struct span from, struct span pointer, struct json_slot *out)
{
    BUF_SCOPED scratch = {0};

    *out = (struct json_slot){.type = json_type_of(from), .value = from, .member = from};
    while (pointer.n) {
        struct span rest = span_from(pointer, 1);
        struct span coded = span_cut(rest, 0, span_find(rest, '/'));
        struct span name = plain_name(coded, &scratch);
        if (out->type == JSON_OBJECT) {
            if (!step_object(out->value, name, out))
                return false;
        } else if (out->type == JSON_ARRAY) {
            step_array(out->value, name, out);
        } else if (out->type == JSON_STRING && holds_container(out->value)) {
            return false;
        } else {
            *out = (struct json_slot){.type = JSON_NONE};
        }
        pointer = span_from(rest, coded.n);
    }
    return true;
}
