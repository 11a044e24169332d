#include "config/checks.h"

#include "base/map.h"

/* Where the key stands, or else the map around it. */
static struct place place_of(const struct value *map, const char *key)
{
    const struct value *v = value_get(map, key);
    return v ? v->at : map->at;
}

static bool is_given(const struct value *map, const char *key)
{
    const struct value *v = value_get(map, key);
    return v && v->type != VALUE_NULL;
}

/* Does the way to speak to the server fit to where it is? */
static void check_transport(struct schema_read *r, const struct value *v, const char *shown,
                            const struct config_server *s)
{
    static const char *const wants[] = {[TRANSPORT_STREAMABLE_HTTP] = "an http or https URL",
                                        [TRANSPORT_SSE] = "an http or https URL",
                                        [TRANSPORT_WS] = "a ws URL",
                                        [TRANSPORT_STDIO] = "'command'"};
    struct span url = span_str(s->url);
    bool http = span_starts(url, SPAN("http")), ws = span_starts(url, SPAN("ws"));
    bool fits[] = {[TRANSPORT_AUTO] = true,
                   [TRANSPORT_STREAMABLE_HTTP] = http,
                   [TRANSPORT_SSE] = http,
                   [TRANSPORT_WS] = ws,
                   [TRANSPORT_STDIO] = s->command != NULL};

    if ((s->command || s->url) && !fits[s->transport])
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "transport"), shown,
                     "this 'transport' needs %s", wants[s->transport]);
    if (span_starts(url, SPAN("wss:")))
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "url"), shown,
                     "support for WebSocket with TLS (wss) is not available in this version");
}

bool check_server(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    static const char *const for_command[] = {"args", "env", "cwd"};
    struct config_server *s = entry;
    bool command = is_given(v, "command"), url = is_given(v, "url");

    if (!command && !url)
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown,
                     "expected the key 'command' with the program to start, or 'url'");
    if (command && url)
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "url"), shown,
                     "'command' and 'url' exclude each other; keep one");
    for (size_t i = 0; url && !command && i < 3; i++)
        if (is_given(v, for_command[i]))
            problems_add(r->problems, PROBLEM_ERROR, place_of(v, for_command[i]), shown,
                         "'%s' makes no sense for a server with 'url'", for_command[i]);
    if (command && is_given(v, "headers"))
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "headers"), shown,
                     "'headers' makes no sense for a server with 'command'");
    check_transport(r, v, shown, s);
    if (command && !is_given(v, "ping"))
        s->ping = 0; /* a program that ends closes its pipes; one that is busy must not be ended */
    if (s->command && strchr(s->command, ' ') && !s->args.n)
        problems_add(r->problems, PROBLEM_WARNING, place_of(v, "command"), shown,
                     "'command' is the program alone; what follows it belongs into 'args'");
    if (strcmp(s->alias, "sse") == 0)
        problems_add(r->problems, PROBLEM_WARNING, v->key_at, shown,
                     "/mcp/sse is taken, so this server has no address of its own");
    return true;
}

bool check_listen(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const struct config_listen *l = entry;

    if (v->type == VALUE_MAP && !is_given(v, "address"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'address'");
    return l->address != NULL;
}

bool check_prompt(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const struct config_prompt *p = entry;

    if (v->type == VALUE_MAP && !is_given(v, "name"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'name'");
    return p->name != NULL;
}

/* Names are shown to people and compared by programs that ignore case: they must differ in more. */
static void check_aliases(struct schema_read *r, const struct value *servers)
{
    struct map seen = {0};

    for (const struct value *v = servers->first; v; v = v->next) {
        struct buf lowered = {0};
        buf_span(&lowered, value_key(v));
        for (size_t i = 0; i < lowered.n; i++)
            if (lowered.p[i] >= 'A' && lowered.p[i] <= 'Z')
                lowered.p[i] = (char)(lowered.p[i] + ('a' - 'A'));
        const struct value *first = map_get(&seen, buf_view(&lowered));
        /* Exactly the same key twice was reported by the reader. */
        if (first && !span_eq(first->key, v->key))
            problems_add(r->problems, PROBLEM_ERROR, v->key_at,
                         value_path(r->arena, servers->key.p, v),
                         "too much like '%s' on line %u; choose another name", first->key.p,
                         first->key_at.line);
        if (!first)
            map_put(&seen, buf_view(&lowered), (void *)(uintptr_t)v);
        buf_fini(&lowered);
    }
    map_fini(&seen);
}

static void apply_enabled_servers(struct schema_read *r, const struct value *root, struct config *c)
{
    const struct value *list = value_get(root, "enabled_servers");

    if (!list || list->type != VALUE_LIST)
        return;
    for (size_t i = 0; i < c->servers.n; i++) {
        bool named = false;
        for (size_t k = 0; k < c->enabled_servers.n; k++)
            named |= strcmp(c->enabled_servers.items[k], c->servers.items[i].alias) == 0;
        c->servers.items[i].enabled &= named;
    }
    for (const struct value *v = list->first; v; v = v->next)
        if (!config_server(c, v->text.p))
            problems_add(r->problems, PROBLEM_ERROR, v->at, "enabled_servers",
                         "there is no server '%.64s'", v->text.p);
}

static void check_addresses(struct schema_read *r, const struct value *root, const struct config *c)
{
    for (size_t i = 0; i < c->listen.n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->listen.items[i].address, c->listen.items[k].address) == 0)
                problems_add(r->problems, PROBLEM_ERROR, place_of(root, "listen"), "listen",
                             "the address %s stands twice", c->listen.items[i].address);
    const struct value *v = value_get(root, "listen");
    if (v && v->type == VALUE_LIST && !v->n)
        problems_add(r->problems, PROBLEM_ERROR, v->at, "listen", "expected at least one address");
}

void check_config(struct schema_read *r, const struct value *root, struct config *c)
{
    const struct value *servers = value_get(root, "servers");

    if (c->names && strcmp(c->names, "{tool}") == 0)
        c->names = "bare"; /* one word for one thing */
    if (servers && servers->type == VALUE_MAP)
        check_aliases(r, servers);
    apply_enabled_servers(r, root, c);
    for (size_t i = 0; i < c->servers.n; i++) {
        c->servers.items[i].resources_as_tools |= c->resources_as_tools;
        c->servers.items[i].prompts_as_tools |= c->prompts_as_tools;
    }
    check_addresses(r, root, c);
}
