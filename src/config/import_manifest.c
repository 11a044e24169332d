/* assistant4's manifest: the list of servers made a map, the allowlist and `enabled` carried over
 * to each server. Called by import.c. */
#include "base/map.h"
#include "base/mem.h"
#include "config/import_inside.h"

/* The members of the manifest that concern only assistant4. */
static const char *const foreign_keys[] = {"id",          "name",       "version",
                                           "description", "entrypoint", "depends_on"};
/* Keys of the manifest's `config` that need no counterpart here. */
static const char *const needless_keys[] = {"prompts_cache_ttl", "reconnect_interval"};

/* Our keys that have other defaults in a manifest, by assistant4's ADR 006 (docs/seeds.md). */
static const char *const presets[][2] = {
    {"names", "mcp_{server}_{tool}"},
    {"describe_server", "mcp"},
    {"errors", "results"},
};

static bool is_one_of(struct span key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_is(key, keys[i]))
            return true;
    return false;
}

static void say(struct importing *im, enum problem_level level, const struct value *v,
                const char *text)
{
    const char *path = value_path(im->arena, "config", v);

    problems_add(im->problems, level, v->key_at, path, "%s", text);
}

/* --- servers: a list there, a map here --- */

static void say_wrong_entry(struct importing *im, size_t n, struct place at, const char *text)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "config.servers[%zu]", n);
    problems_add(im->problems, PROBLEM_ERROR, at, buf_cstr(&path), "%s", text);
}

/* Makes the alias of the entry its key; false when the entry has no unique alias. */
static bool name_entry(struct importing *im, struct value *entry, size_t n, struct map *seen)
{
    struct value *alias = entry->type == VALUE_MAP ? value_get(entry, "alias") : NULL;

    if (entry->type != VALUE_MAP) {
        say_wrong_entry(im, n, entry->at, "expected a map of keys such as 'alias'");
        return false;
    }
    if (!alias || alias->type != VALUE_STRING || !alias->text.n) {
        say_wrong_entry(im, n, alias ? alias->at : entry->at,
                        "expected the key 'alias' with a short name for the server");
        return false;
    }
    const struct value *first = map_get(seen, alias->text);
    if (first) {
        BUF_SCOPED text = {0};
        buf_printf(&text, "the alias '%.64s' is used twice, first on line %u; choose another",
                   alias->text.p, first->at.line);
        say_wrong_entry(im, n, alias->at, buf_cstr(&text));
        return false;
    }
    map_put(seen, alias->text, alias);
    entry->key = alias->text;
    entry->key_at = alias->at;
    value_remove(entry, alias);
    return true;
}

static void import_list(struct importing *im, struct value *servers)
{
    struct map seen = {0};
    size_t n = 0;

    for (struct value *v = servers->first, *next; v; v = next) {
        next = v->next;
        if (!name_entry(im, v, n++, &seen) || !import_server(im, v))
            value_remove(servers, v);
    }
    servers->type = VALUE_MAP;
    map_fini(&seen);
}

/* --- tool_allowlist beside the servers: for all of them, or a map of aliases to lists --- */

static void set_allowed(struct importing *im, struct value *server, const struct value *list)
{
    size_t budget = VALUE_MAX_NODES;

    if (server->type == VALUE_MAP && !value_get(server, "allow"))
        import_add(server, "allow", value_copy(im->arena, list, &budget));
}

static void spread_allowlist(struct importing *im, const struct value *list, struct value *servers)
{
    if (list->type == VALUE_LIST && list->n) {
        for (struct value *v = servers->first; v; v = v->next)
            set_allowed(im, v, list);
        return;
    }
    for (const struct value *of = list->first; of && list->type == VALUE_MAP; of = of->next) {
        struct value *server = value_get(servers, of->key.p);
        if (server)
            set_allowed(im, server, of);
        else
            say(im, PROBLEM_ERROR, of, "there is no server with this alias");
    }
}

/* --- the document --- */

static void switch_off(struct importing *im, const struct value *enabled, struct value *servers)
{
    problems_add(im->problems, PROBLEM_WARNING, enabled->key_at, "enabled",
                 "the whole extension is switched off, and so are all servers");
    for (struct value *v = servers->first; v; v = v->next) {
        struct value *own = value_get(v, "enabled");
        if (own)
            value_remove(v, own);
        if (v->type == VALUE_MAP)
            import_add(v, "enabled", value_text(im->arena, VALUE_BOOL, SPAN("false")));
    }
}

/* The members of `config` beside the servers. */
static void import_config(struct importing *im, struct value *root, struct value *config,
                          struct value *servers)
{
    for (struct value *v = config->first, *next; v; v = next) {
        next = v->next;
        if (span_is(v->key, "enabled_servers") || span_is(v->key, "names")) {
            value_remove(config, v);
            v->as = v->key; /* so that the same key outside of `config` is noticed */
            if (!import_is_empty(v))
                value_append(root, v);
        } else if (span_is(v->key, "tool_allowlist")) {
            spread_allowlist(im, v, servers);
        } else if (!is_one_of(v->key, needless_keys, COUNT_OF(needless_keys))) {
            say(im, PROBLEM_WARNING, v, "unknown key, ignored");
        } else if (im->thorough) {
            say(im, PROBLEM_WARNING, v, "left out: it has no meaning here");
        }
    }
}

void import_manifest(struct importing *im, struct value *root, struct value *config)
{
    struct value *servers = value_get(config, "servers"), *enabled;

    im->manifest = true;
    im->servers = "config.servers";
    value_remove(config, servers);
    for (struct value *v = root->first, *next; v; v = next) {
        next = v->next;
        if (v == config || is_one_of(v->key, foreign_keys, COUNT_OF(foreign_keys)))
            value_remove(root, v);
    }
    servers->key = span_str(im->servers);
    servers->as = SPAN("servers");
    if (servers->type == VALUE_LIST)
        import_list(im, servers);
    else if (servers->type != VALUE_NULL)
        problems_add(im->problems, PROBLEM_ERROR, servers->at, im->servers,
                     "expected a list of servers, each with an 'alias'");
    value_append(root, servers);
    import_config(im, root, config, servers);
    enabled = value_get(root, "enabled");
    if (enabled) {
        value_remove(root, enabled);
        if (enabled->type == VALUE_BOOL && !enabled->truth)
            switch_off(im, enabled, servers);
    }
    for (size_t i = 0; i < COUNT_OF(presets); i++)
        if (!value_get(root, presets[i][0]))
            import_add(root, presets[i][0],
                       value_text(im->arena, VALUE_STRING, span_str(presets[i][1])));
}
