/* Documents of host programs, in which the servers are one part of many settings: finding that
 * part, and making one map of it. Called by import.c. */
#include "base/mem.h"
#include "config/host_program.h"
#include "config/import_inside.h"

static struct value *at_place(const struct value *root, const struct edit_place *place)
{
    struct value *v = NULL;

    for (size_t i = 0; place->keys[i] && (i == 0 || v); i++)
        v = value_get(i ? v : root, place->keys[i]);
    return v && v->type == (place->list ? VALUE_LIST : VALUE_MAP) ? v : NULL;
}

/* Is it an MCP server that the host starts or connects to? Goose and Zed list other things beside
 * MCP servers. */
static bool is_server(const struct value *v)
{
    static const char *const others[] = {"builtin", "platform", "frontend", "inline_python"};
    static const char *const ways[] = {"command", "cmd",       "url",      "uri",
                                       "httpUrl", "serverUrl", "transport"};
    const struct value *type = value_get(v, "type");

    for (size_t i = 0; type && i < COUNT_OF(others); i++)
        if (span_is(type->text, others[i]))
            return false;
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        if (value_get(v, ways[i]))
            return true;
    return false;
}

/* Is this certainly the host's document? `mcpServers` may be any program's, `servers` ours. */
static bool tells(const struct host_program *h, const struct value *servers)
{
    if (h->place.list)
        return servers->first && value_get(servers->first, "name");
    if (strcmp(h->place.keys[0], "mcpServers") == 0 || strcmp(h->place.keys[0], "servers") == 0)
        return false;
    for (const struct value *v = servers->first; v; v = v->next)
        if (is_server(v))
            return true;
    return false;
}

/* Does the document have servers of projects, like Claude Code's file? */
static bool has_projects(const struct value *root)
{
    const struct value *projects = value_get(root, "projects");

    for (const struct value *p = projects ? projects->first : NULL; p; p = p->next)
        if (p->type == VALUE_MAP && value_get(p, "mcpServers"))
            return true;
    return false;
}

/* The host's servers; an empty map when only projects have some. */
static struct value *servers_of(struct importing *im, struct value *root,
                                const struct host_program *h)
{
    struct value *servers = at_place(root, &h->place);

    if (servers || !h->projects || !has_projects(root))
        return servers;
    servers = value_new(im->arena, VALUE_MAP, root->at);
    servers->key = span_str(h->place.keys[0]);
    value_append(root, servers);
    return servers;
}

struct value *import_host_servers(struct importing *im, struct value *root,
                                  const struct import_hints *hints)
{
    if (hints->host) {
        im->host = hints->host;
        return servers_of(im, root, hints->host);
    }
    for (size_t i = 0; i < host_programs_n; i++) {
        struct value *servers = servers_of(im, root, &host_programs[i]);
        if (!servers || !(tells(&host_programs[i], servers) ||
                          (host_programs[i].projects && has_projects(root))))
            continue;
        im->host = &host_programs[i];
        return servers;
    }
    return NULL;
}

/* Turns the list into a map, with the `name` of each item as its key. */
static void name_items(struct importing *im, struct value *list)
{
    for (struct value *v = list->first, *next; v; v = next) {
        const struct value *name = value_get(v, "name");
        next = v->next;
        if (name && name->type == VALUE_STRING && name->text.n) {
            v->key = name->text;
            v->key_at = name->at;
            continue;
        }
        problems_add(im->problems, PROBLEM_WARNING, v->at, list->key.p,
                     "server left out: it has no name");
        value_remove(list, v);
    }
    list->type = VALUE_MAP;
}

static bool has_name(const struct value *servers, struct span name)
{
    for (const struct value *v = servers->first; v; v = v->next)
        if (span_eq(value_key(v), name))
            return true;
    return false;
}

/* Adds the servers of a project; a name that is taken gets the folder's name appended. */
static void take_project(struct importing *im, struct value *servers, const struct value *project)
{
    struct value *own = value_get(project, "mcpServers");
    struct span folder = project->key;

    for (size_t slash; (slash = span_find(folder, '/')) < folder.n;)
        folder = span_from(folder, slash + 1);
    for (struct value *v = own ? own->first : NULL, *next; v; v = next) {
        next = v->next;
        if (v->type != VALUE_MAP)
            continue;
        BUF_SCOPED name = {0};
        buf_span(&name, v->key);
        for (int i = 1; has_name(servers, buf_view(&name)); i++) {
            name.n = v->key.n;
            buf_printf(&name, "-" SPAN_FMT, SPAN_ARG(folder));
            if (i > 1)
                buf_printf(&name, "-%d", i);
        }
        v->key = arena_span(im->arena, buf_view(&name));
        if (!value_get(v, "scope"))
            import_add(v, "scope", value_text(im->arena, VALUE_STRING, SPAN("project")));
        value_append(servers, v);
    }
}

void import_host(struct importing *im, struct value *root, struct value *servers)
{
    const struct value *projects = im->host->projects ? value_get(root, "projects") : NULL;

    if (im->host->place.list)
        name_items(im, servers);
    for (const struct value *p = projects ? projects->first : NULL; p; p = p->next)
        if (p->type == VALUE_MAP)
            take_project(im, servers, p);
    im->servers = arena_span(im->arena, servers->key).p;
    for (struct value *v = servers->first, *next; v; v = next) {
        next = v->next;
        if ((v->type == VALUE_MAP && !is_server(v)) || !import_server(im, v))
            value_remove(servers, v);
    }
    servers->next = NULL;
    servers->as = SPAN("servers");
    root->first = root->last = servers; /* the host's other settings are left out */
    root->n = 1;
}
