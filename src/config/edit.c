/* Inserting and removing one server or token in the text of a JSON file (edit_yaml.c has YAML), and
 * replacing a file with a backup. Called by hub/bus_host.c when agents add or remove servers, by
 * cmd/token.c, and by cmd/import.c to replace a file. */
#include "config/edit.h"

#include "base/file.h"
#include "config/edit_yaml.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_json(struct span text)
{
    enum json_type type;

    return json_skim(text, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT;
}

/* Finds the file's map of servers; empty when the file has none. */
static int find_servers(struct span text, struct span *servers, struct err *err)
{
    static const char *const names[] = {"mcpServers", "servers"};
    bool any = false;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct json_slot slot = json_get(text, names[i]);
        if (slot.type == JSON_OBJECT) {
            *servers = slot.value;
            return 0;
        }
        any |= slot.type != JSON_NONE;
    }
    if (!any)
        return 0;
    return err_set(err, ERR_CONFIG, "the configuration has no map of servers to add to");
}

static void put_around(struct buf *out, struct span text, struct span cut, struct span instead)
{
    size_t at = (size_t)(cut.p - text.p);

    buf_span(out, span_cut(text, 0, at));
    buf_span(out, instead);
    buf_span(out, span_from(text, at + cut.n));
}

/* Puts a map with this one server in front of the file's other members. */
static void put_map(struct buf *out, struct span text, struct span name, struct span entry)
{
    const char *at = text.p + span_find(text, '{') + 1;
    struct json_iter it = json_iter(text);
    BUF_SCOPED added = {0};

    buf_str(&added, "\n  \"servers\": {\n    ");
    json_quote(&added, name);
    buf_printf(&added, ": " SPAN_FMT "\n  }%s", SPAN_ARG(entry), json_next(&it) ? "," : "");
    put_around(out, text, span_of(at, 0), buf_view(&added));
}

int edit_add_server(struct buf *out, struct span text, struct span name, struct span entry,
                    struct err *err)
{
    struct span servers = {0};
    BUF_SCOPED added = {0};

    if (!is_json(text))
        return edit_yaml_add(out, text, name, entry, err);
    int code = find_servers(text, &servers, err);
    if (code)
        return code;
    if (!servers.n) {
        put_map(out, text, name, entry);
        return 0;
    }
    struct json_iter it = json_iter(servers);
    struct span last = {0};
    while (json_next(&it))
        last = it.member;
    if (last.p)
        buf_char(&added, ',');
    buf_str(&added, "\n    ");
    json_quote(&added, name);
    buf_str(&added, ": ");
    buf_span(&added, entry);
    if (!last.p)
        buf_str(&added, "\n  ");
    /* Behind the last member, or behind the brace of an empty map. */
    const char *at = last.p ? last.p + last.n : servers.p + 1;
    put_around(out, text, span_of(at, 0), buf_view(&added));
    return 0;
}

/* The member with the comma between it and its neighbour. */
static struct span with_comma(struct span all, struct span before, struct span member)
{
    const char *end = all.p + all.n, *p = member.p + member.n;

    while (p < end && *p != ',' && *p != '}' && *p != ']')
        p++;
    if (p < end && *p == ',')
        return span_of(member.p, (size_t)(p + 1 - member.p));
    const char *begin = before.p ? before.p + before.n : member.p;
    return span_of(begin, (size_t)(member.p + member.n - begin));
}

int edit_remove_server(struct buf *out, struct span text, struct span name, struct err *err)
{
    struct span servers = {0}, before = {0};

    if (!is_json(text))
        return edit_yaml_remove(out, text, name, err);
    int code = find_servers(text, &servers, err);
    if (code)
        return code;
    for (struct json_iter it = json_iter(servers); json_next(&it); before = it.member) {
        if (!json_string_is(it.key, name))
            continue;
        put_around(out, text, with_comma(servers, before, it.member), SPAN_EMPTY);
        return 0;
    }
    return err_set(err, -ENOENT, "the configuration file has no server '" SPAN_FMT "'",
                   SPAN_ARG(name));
}

/* Appends `text` with `added` as the last of the object or array `all`. */
static void put_last(struct buf *out, struct span text, struct span all, struct span added)
{
    struct json_iter it = json_iter(all);
    struct span last = {0};
    BUF_SCOPED whole = {0};

    while (json_next(&it))
        last = it.member;
    const char *at = last.p ? last.p + last.n : all.p + 1;
    buf_printf(&whole, "%s" SPAN_FMT, last.p ? ", " : "", SPAN_ARG(added));
    put_around(out, text, span_of(at, 0), buf_view(&whole));
}

int edit_add_token(struct buf *out, struct span text, struct span entry, struct err *err)
{
    if (!is_json(text))
        return edit_yaml_add_token(out, text, entry, err);
    struct json_slot auth = json_get(text, "auth"), tokens = {0};
    BUF_SCOPED added = {0};

    if (auth.type == JSON_OBJECT)
        tokens = json_get(auth.value, "tokens");
    if (tokens.type == JSON_ARRAY) {
        put_last(out, text, tokens.value, entry);
        return 0;
    }
    if ((auth.type != JSON_NONE && auth.type != JSON_OBJECT) || tokens.type != JSON_NONE)
        return err_set(err, ERR_CONFIG, "'auth' of the configuration is not as it should be");
    bool whole = auth.type == JSON_NONE;
    buf_printf(&added, "%s\"tokens\": [" SPAN_FMT "]%s", whole ? "\"auth\": {" : "",
               SPAN_ARG(entry), whole ? "}" : "");
    put_last(out, text, whole ? span_trim(text) : auth.value, buf_view(&added));
    return 0;
}

int edit_remove_token(struct buf *out, struct span text, struct span name, struct err *err)
{
    if (!is_json(text))
        return edit_yaml_remove_token(out, text, name, err);
    struct json_slot auth = json_get(text, "auth"), tokens = {0};
    struct span before = {0};

    if (auth.type == JSON_OBJECT)
        tokens = json_get(auth.value, "tokens");
    struct json_iter it = json_iter(tokens.value);
    for (; tokens.type == JSON_ARRAY && json_next(&it); before = it.member) {
        struct json_slot own = {0};
        if (it.type == JSON_OBJECT)
            own = json_get(it.value, "name");
        if (own.type != JSON_STRING || !json_string_is(own.value, name))
            continue;
        put_around(out, text, with_comma(tokens.value, before, it.member), SPAN_EMPTY);
        return 0;
    }
    return err_set(err, -ENOENT, "the configuration file has no token '" SPAN_FMT "'",
                   SPAN_ARG(name));
}

int edit_replace_file(const char *path, struct span text, struct err *err)
{
    char *real = realpath(path, NULL); /* a symbolic link stays a link */
    BUF_SCOPED old = {0};

    if (real)
        buf_printf(&old, "%s.bak", real);
    int code = real ? file_replace_keeping(real, text, buf_cstr(&old)) : -errno;
    free(real);
    return code ? err_set(err, code, "cannot write %s: %s", path, strerror(-code)) : 0;
}
