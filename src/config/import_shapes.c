/* Members of servers that other programs write in another shape than ours: a command as one list, a
 * transport as a map, names of variables instead of values. Called by import.c before it takes the
 * members one by one. */
#include "base/mem.h"
#include "config/host_program.h"
#include "config/import_inside.h"

/* The member `key` of the server; a new map or list if it is missing or of another type. */
static struct value *member_of(struct importing *im, struct value *server, const char *key,
                               enum value_type type)
{
    struct value *v = value_get(server, key);

    if (v && v->type == type)
        return v;
    if (v)
        value_remove(server, v);
    v = value_new(im->arena, type, server->at);
    v->key = span_str(key);
    v->key_at = server->key_at;
    value_append(server, v);
    return v;
}

/* The one of these keys that the server has; else the first. */
static const char *own_key(const struct value *server, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (value_get(server, keys[i]))
            return keys[i];
    return keys[0];
}

/* Sets `name` to "BEFORE${env:TEXT}" for a variable, else "BEFORETEXT", if it is not set yet. */
static void set_pair(struct importing *im, struct value *map, struct span name, const char *before,
                     struct span text, bool variable)
{
    BUF_SCOPED value = {0};

    if (value_get(map, name.p) || !text.n)
        return;
    buf_printf(&value, "%s%s" SPAN_FMT "%s", before, variable ? "${env:" : "", SPAN_ARG(text),
               variable ? "}" : "");
    struct value *v = value_text(im->arena, VALUE_STRING, buf_view(&value));
    v->key = arena_span(im->arena, name);
    value_append(map, v);
}

/* Moves the members of the map `v` to the server: `from` is renamed to `to`, and the others to
 * `others` (NULL: not renamed). A member that the server already has stays. */
static void move_members(struct value *server, struct value *v, const char *from, const char *to,
                         const char *others)
{
    value_remove(server, v);
    for (struct value *m = v->first, *next; m; m = next) {
        const char *name = span_is(m->key, from) ? to : others;
        next = m->next;
        value_remove(v, m);
        if (name)
            m->key = span_str(name);
        if (!value_get(server, m->key.p))
            value_append(server, m);
    }
}

/* ["npx", "-y"] is a command with its arguments; {path, args, env} as well. */
static void split_command(struct importing *im, struct value *server, struct value *v)
{
    struct value *first = v->type == VALUE_LIST ? v->first : NULL;

    (void)im;
    if (v->type == VALUE_MAP) {
        move_members(server, v, "path", "command", NULL);
    } else if (first) {
        value_remove(server, v);
        value_remove(v, first);
        first->key = v->key;
        first->key_at = v->key_at;
        struct value *more = value_get(server, "args");
        for (struct value *arg = more ? more->first : NULL, *next; arg; arg = next) {
            next = arg->next;
            value_append(v, arg);
        }
        if (more)
            value_remove(server, more);
        v->key = SPAN("args");
        value_append(server, first);
        value_append(server, v);
    }
}

/* Moves the members of a map to the server. */
static void lift(struct importing *im, struct value *server, struct value *v)
{
    (void)im;
    if (v->type == VALUE_MAP)
        move_members(server, v, "", NULL, NULL);
}

/* A list of variables that are passed on to the server with their values. */
static void forward(struct importing *im, struct value *server, struct value *v)
{
    static const char *const own[] = {"env", "envs", "environment"};
    const char *key = own_key(server, own, COUNT_OF(own));

    value_remove(server, v);
    for (const struct value *item = v->first; item; item = item->next) {
        const struct value *name = item->type == VALUE_MAP ? value_get(item, "name") : item;
        if (name && name->type == VALUE_STRING && name->text.n)
            set_pair(im, member_of(im, server, key, VALUE_MAP), name->text, "", name->text, true);
    }
}

static const char *headers_key(const struct value *server)
{
    static const char *const own[] = {"headers", "http_headers"};

    return own_key(server, own, COUNT_OF(own));
}

/* Headers whose values are names of variables. */
static void header_variables(struct importing *im, struct value *server, struct value *v)
{
    value_remove(server, v);
    for (const struct value *item = v->first; item; item = item->next)
        if (item->type == VALUE_STRING)
            set_pair(im, member_of(im, server, headers_key(server), VALUE_MAP), item->key, "",
                     item->text, true);
}

static void bearer_variable(struct importing *im, struct value *server, struct value *v)
{
    value_remove(server, v);
    set_pair(im, member_of(im, server, headers_key(server), VALUE_MAP), SPAN("Authorization"),
             "Bearer ", v->text, true);
}

static void bearer(struct importing *im, struct value *server, struct value *v)
{
    value_remove(server, v);
    set_pair(im, member_of(im, server, headers_key(server), VALUE_MAP), SPAN("Authorization"),
             "Bearer ", v->text, false);
}

/* The tools to offer: an empty list is none of them. */
static void offer_none(struct importing *im, struct value *server, struct value *v)
{
    static const char *const own[] = {"deny", "disabled_tools", "deniedTools", "excludeTools",
                                      "disabledTools"};

    if (v->type != VALUE_LIST || v->n)
        return;
    value_remove(server, v);
    value_append(member_of(im, server, own_key(server, own, COUNT_OF(own)), VALUE_LIST),
                 value_text(im->arena, VALUE_STRING, SPAN("*")));
}

/* A list names the tools to offer; ["*"] is all of them. A map is ours; in TOML it has approvals
 * and is left out. */
static void take_tools(struct importing *im, struct value *server, struct value *v)
{
    bool all = false;

    for (const struct value *item = v->first; item; item = item->next)
        all |= item->type == VALUE_STRING && span_is(item->text, "*");
    if (v->type == VALUE_LIST && !all && v->n) {
        v->key = SPAN("includeTools");
        return;
    }
    if (v->type == VALUE_LIST && !all)
        offer_none(im, server, v);
    bool approvals = v->type != VALUE_LIST && im->host && im->host->format == EDIT_TOML;
    if (approvals && v->n)
        import_say(im, PROBLEM_WARNING, server, v,
                   "left out: approvals are not carried over; see servers.*.approve");
    if (all || approvals)
        value_remove(server, v);
}

/* {startup, request} in milliseconds. */
static void split_timeout(struct importing *im, struct value *server, struct value *v)
{
    (void)im;
    if (v->type == VALUE_MAP)
        move_members(server, v, "startup", "connectionTimeout", "requestTimeout");
}

/* null means that the variable is not to be set. */
static void drop_nulls(struct importing *im, struct value *server, struct value *v)
{
    (void)im;
    (void)server;
    for (struct value *m = v->type == VALUE_MAP ? v->first : NULL, *next; m; m = next) {
        next = m->next;
        if (m->type == VALUE_NULL)
            value_remove(v, m);
    }
}

static const struct {
    const char *key;
    void (*reshape)(struct importing *im, struct value *server, struct value *v);
} shapes[] = {
    {"transport", lift},
    {"requestOptions", lift},
    {"command", split_command},
    {"env", drop_nulls},
    {"env_vars", forward},
    {"env_keys", forward},
    {"env_http_headers", header_variables},
    {"bearer_token_env_var", bearer_variable},
    {"apiKey", bearer},
    {"tools", take_tools},
    {"includeTools", offer_none}, /* not available_tools: Goose writes [] for all tools */
    {"enabled_tools", offer_none},
    {"allowedTools", offer_none},
    {"timeout", split_timeout},
};

void import_shapes(struct importing *im, struct value *server)
{
    for (size_t i = 0; !im->manifest && i < COUNT_OF(shapes); i++) {
        struct value *v = value_get(server, shapes[i].key);
        if (v)
            shapes[i].reshape(im, server, v);
    }
}
