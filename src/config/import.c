/* Recognising files of other MCP programs, and the table of their keys with what each becomes in
 * our files. Called by config.c for every document and by cmd/host_setup_plan.c for one entry;
 * import_manifest.c and import_hosts.c call back for each server. */
#include "config/import.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "config/convert.h"
#include "config/host_program.h"
#include "config/import_inside.h"

#include <stdlib.h>

enum { SHOWN_MAX = 64 }; /* bytes of an unknown value in a message */

/* What is done with a member of a server's entry. */
enum treatment {
    RENAME,   /* the same value under our name */
    NEGATE,   /* a boolean with the opposite meaning */
    MS,       /* a number of milliseconds */
    SECONDS,  /* a number of seconds */
    UNCLEAR,  /* a text has a unit; a number is seconds or milliseconds, depending on the program */
    WAY,      /* the transport, in the other program's words */
    KIND,     /* the transport, but we detect it ourselves: only the word is checked */
    FILTER,   /* tools: a list of them, or maps of lists */
    APPROVAL, /* tools: "always", a list, or a map with such things */
    CONTEXT,  /* prompts: "auto", or a list */
    MARK,     /* id or origin as a bus bridge writes them; values of another form are left out */
    IGNORE,   /* concerns only the program that the file was written for */
    DROP,     /* left out with a warning: the user will miss it */
    BOUND,    /* bounds the server or its callers: the server must not run without the bound */
};

static const struct foreign_key {
    const char *theirs; /* compared without case, as some of these programs do */
    const char *ours;
    enum treatment treatment;
    bool manifest; /* a key of manifests only */
    import_bound_fn *take;
} foreign_keys[] = {
    {"command", "command", RENAME, false},
    {"args", "args", RENAME, false},
    {"env", "env", RENAME, false},
    {"cwd", "cwd", RENAME, false},
    {"url", "url", RENAME, false},
    {"serverUrl", "url", RENAME, false},
    {"uri", "url", RENAME, false},
    {"cmd", "command", RENAME, false},
    {"envs", "env", RENAME, false},
    {"environment", "env", RENAME, false},
    {"working_directory", "cwd", RENAME, false},
    {"http_headers", "headers", RENAME, false},
    {"enabled_tools", "allow", RENAME, false},
    {"available_tools", "allow", RENAME, false},
    {"disabled_tools", "deny", RENAME, false},
    {"isActive", "enabled", RENAME, false},
    {"tool_timeout_sec", "timeout", SECONDS, false},
    {"startup_timeout_sec", "start_timeout", SECONDS, false},
    {"startup_timeout_ms", "start_timeout", MS, false},
    {"connectionTimeout", "start_timeout", MS, false},
    {"requestTimeout", "timeout", MS, false},
    {"httpUrl", "url", RENAME, false},
    {"headers", "headers", RENAME, false},
    {"allowedTools", "allow", RENAME, false},
    {"includeTools", "allow", RENAME, false},
    {"tool_allowlist", "allow", RENAME, true},
    {"tool_filter", NULL, FILTER, true},
    {"deniedTools", "deny", RENAME, false},
    {"excludeTools", "deny", RENAME, false},
    {"disabledTools", "deny", RENAME, false},
    {"require_approval", "approve", APPROVAL, true},
    {"prompts", "prompts_as_context", CONTEXT, true},
    {"disabled", "enabled", NEGATE, false},
    {"toolTimeoutMs", "timeout", MS, false},
    {"timeout", "timeout", UNCLEAR, false},
    {"type", NULL, KIND, false},
    {"transport", "transport", WAY, false},
    {"transportMode", "transport", WAY, false},
    {"envFile", "env_file", RENAME, false},
    {"oauth", NULL, DROP, false},
    {"oauth_resource", NULL, DROP, false},
    {"oauthClientId", NULL, DROP, false},
    {"headersHelper", NULL, DROP, false},
    {"http_headers_helper", NULL, DROP, false},
    {"sandboxEnabled", NULL, DROP, false},
    {"default_tools_approval_mode", NULL, DROP, false},
    {"argGuards", NULL, BOUND, false, import_guards},
    {"auth", "auth", BOUND, false, import_auth},
    {"elicitation", "elicitation", BOUND, false, import_elicitation},
    {"attachments", "attachments", BOUND, false, import_attachments},
    {"autoApprove", NULL, IGNORE, false},
    {"alwaysAllow", NULL, IGNORE, false},
    {"trust", NULL, IGNORE, false},
    {"name", NULL, IGNORE, false},
    {"description", NULL, IGNORE, false},
    {"id", "id", MARK, false},
    {"origin", "origin", MARK, false},
    {"dev", NULL, IGNORE, false},
    {"gallery", NULL, IGNORE, false},
    {"bundled", NULL, IGNORE, false},
    {"display_name", NULL, IGNORE, false},
    {"required", NULL, IGNORE, false},
    {"deferTools", NULL, IGNORE, false},
    {"alwaysLoad", NULL, IGNORE, false},
    {"metadata", NULL, IGNORE, false},
    {"source", NULL, IGNORE, false},
    {"remote", NULL, IGNORE, false},
    {"supports_parallel_tool_calls", NULL, IGNORE, false},
    {"omit_tools_from", NULL, IGNORE, false},
    {"start_on_launch", NULL, IGNORE, false},
    {"version", NULL, IGNORE, false},
    {"cache_tools", NULL, IGNORE, true},
};

static const struct foreign_key *find_foreign(const struct importing *im, struct span key)
{
    for (size_t i = 0; i < COUNT_OF(foreign_keys); i++)
        if (span_eq_nocase(key, span_str(foreign_keys[i].theirs)) &&
            (!foreign_keys[i].manifest || im->manifest))
            return &foreign_keys[i];
    return NULL;
}

bool import_is_empty(const struct value *v)
{
    return v->type == VALUE_NULL || (v->type == VALUE_STRING && !v->text.n) ||
           ((v->type == VALUE_LIST || v->type == VALUE_MAP) && !v->n);
}

void import_say(struct importing *im, enum problem_level level, const struct value *server,
                const struct value *member, const char *fmt, ...)
{
    const char *path = value_path(im->arena, im->servers, server);
    struct place at = server->key_at;
    BUF_SCOPED text = {0};
    va_list ap;

    if (member) {
        path = value_path(im->arena, path, member);
        at = member->at;
    }
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    problems_add(im->problems, level, at, path, "%s", buf_cstr(&text));
}

void import_add(struct value *map, const char *ours, struct value *v)
{
    v->key = v->as = span_str(ours);
    v->key_at = v->at;
    value_append(map, v);
}

const struct value *import_member(const struct importing *im, const struct value *server,
                                  const char *ours)
{
    for (const struct value *v = server->first; v; v = v->next) {
        const struct foreign_key *f = find_foreign(im, v->key);
        if (f && f->ours && strcmp(f->ours, ours) == 0 && !import_is_empty(v))
            return v;
    }
    return NULL;
}

/* 3000 becomes "3000ms"; 1.5 s, which no duration of ours can be, becomes "1500ms". */
static void add_unit(struct importing *im, struct value *v, const char *unit)
{
    BUF_SCOPED text = {0};

    if (v->text.n != strcspn(v->text.p, ".eE"))
        buf_printf(&text, "%.0fms", strtod(v->text.p, NULL) * (unit[0] == 's' ? 1000 : 1));
    else
        buf_printf(&text, SPAN_FMT "%s", SPAN_ARG(v->text), unit);
    v->type = VALUE_STRING;
    v->text = arena_span(im->arena, buf_view(&text));
}

/* --- members with structured values --- */

/* Our name of a transport; NULL when `theirs` is not one. */
static const char *way_of(struct span theirs)
{
    static const char *const words[][2] = {
        {"stdio", "stdio"},
        {"local", "stdio"},
        {"remote", "auto"},
        {"sse", "sse"},
        {"http", "streamable-http"},
        {"streamable", "streamable-http"},
        {"streamable-http", "streamable-http"},
        {"streamable_http", "streamable-http"},
        {"streamableHttp", "streamable-http"},
        {"ws", "ws"},
        {"websocket", "ws"},
        {"auto", "auto"},
    };

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_eq_nocase(theirs, span_str(words[i][0])))
            return words[i][1];
    return NULL;
}

/* False when the member is to be removed. */
static bool treat_way(struct importing *im, const struct value *server, struct value *v, bool kind)
{
    const char *way = v->type == VALUE_STRING ? way_of(v->text) : NULL;

    if (!way && im->manifest) {
        import_say(im, PROBLEM_ERROR, server, v,
                   "unknown transport '" SPAN_FMT "'; expected stdio, sse or streamable-http",
                   SPAN_ARG(span_cut(v->text, 0, SHOWN_MAX)));
    } else if (!way) {
        import_say(im, PROBLEM_WARNING, server, v,
                   "'" SPAN_FMT "' is not a known way to speak to servers: it is found out",
                   SPAN_ARG(span_cut(v->text, 0, SHOWN_MAX)));
    } else {
        v->text = span_str(way);
    }
    return way && !kind;
}

/* tool_filter: a list, or {allowed_tool_names, blocked_tool_names}; moves its lists to the server.
 */
static bool treat_filter(struct importing *im, struct value *server, struct value *v)
{
    if (v->type == VALUE_LIST) {
        v->as = SPAN("allow");
        return true;
    }
    for (struct value *list = v->first, *next; list; list = next) {
        next = list->next;
        bool allow = span_is(list->key, "allowed_tool_names") || span_is(list->key, "allow");
        bool deny = span_is(list->key, "blocked_tool_names") || span_is(list->key, "deny");
        if (!allow && !deny) {
            import_say(im, PROBLEM_ERROR, server, v,
                       "expected a list of tools, or allowed_tool_names and blocked_tool_names");
            return false;
        }
        value_remove(v, list);
        if (!import_is_empty(list))
            import_add(server, allow ? "allow" : "deny", list);
    }
    return false;
}

/* require_approval: "always", a list, or {always: a list or {tool_names: a list}}. */
static bool treat_approval(struct importing *im, struct value *server, struct value *v)
{
    if (v->type == VALUE_STRING && span_is(v->text, "never"))
        return false;
    if (v->type != VALUE_MAP)
        return true;
    struct value *always = value_get(v, "always");
    struct value *names = always ? value_get(always, "tool_names") : NULL;
    if (names) {
        value_remove(always, names);
        import_add(server, "approve", names);
    } else if (always && always->type == VALUE_LIST) {
        value_remove(v, always);
        import_add(server, "approve", always);
    } else if (!value_get(v, "never")) {
        import_say(im, PROBLEM_ERROR, server, v, "expected 'always' with a list of tools");
    }
    return false;
}

/* prompts: "auto", or a list of names and of {name, args}. */
static bool treat_context(struct importing *im, struct value *v)
{
    if (v->type == VALUE_STRING && span_is(v->text, "auto")) {
        v->type = VALUE_LIST;
        value_append(v, value_text(im->arena, VALUE_STRING, SPAN("*")));
    }
    for (struct value *entry = v->first; entry; entry = entry->next) {
        struct value *args = value_get(entry, "args");
        if (args)
            args->as = SPAN("arguments");
    }
    return true;
}

/* --- one server --- */

/* A server's id on a bus is 12 hexadecimal digits; the only origin that is written is "agent". */
static bool is_mark(const struct value *v, const char *ours)
{
    static const char digits[] = "0123456789abcdef";
    bool id = v->type == VALUE_STRING && v->text.n == 12;

    if (strcmp(ours, "origin") == 0)
        return v->type == VALUE_STRING && span_is(v->text, "agent");
    for (size_t i = 0; id && i < v->text.n; i++)
        id = strchr(digits, v->text.p[i]) != NULL;
    return id;
}

static bool treat_value(struct importing *im, struct value *server, struct value *v,
                        const struct foreign_key *f)
{
    switch (f->treatment) {
    case RENAME:
        return true;
    case NEGATE:
        v->truth = !v->truth;
        return true;
    case MS:
        if (v->type == VALUE_NUMBER)
            add_unit(im, v, "ms");
        return true;
    case SECONDS:
        if (v->type == VALUE_NUMBER)
            add_unit(im, v, "s");
        return true;
    case UNCLEAR:
        if (v->type == VALUE_NUMBER && im->host && im->host->unit) {
            add_unit(im, v, im->host->unit);
            return true;
        }
        if (v->type == VALUE_NUMBER)
            import_say(im, PROBLEM_WARNING, server, v,
                       "ignored: a number may mean seconds or milliseconds; write 30s or 500ms");
        return v->type != VALUE_NUMBER;
    case WAY:
    case KIND:
        return treat_way(im, server, v, f->treatment == KIND);
    case FILTER:
        return treat_filter(im, server, v);
    case APPROVAL:
        return treat_approval(im, server, v);
    case CONTEXT:
        return treat_context(im, v);
    case MARK:
        return is_mark(v, f->ours);
    case BOUND: /* see take_bounds */
        return false;
    case IGNORE:
        if (im->thorough)
            import_say(im, PROBLEM_WARNING, server, v, "left out: it has no meaning here");
        return false;
    case DROP:
        import_say(im, PROBLEM_WARNING, server, v,
                   "left out: signing in, helpers and approvals are not carried over");
        return false;
    }
    return false;
}

/* False when the member is to be removed. */
static bool treat_member(struct importing *im, struct value *server, struct value *v)
{
    const struct foreign_key *f = find_foreign(im, v->key);

    if (v->as.n)
        return true; /* added by this import */
    if (!f) {
        v->as = v->key; /* one of our keys, or unknown: the schema decides */
        return true;
    }
    if (import_is_empty(v))
        return false;
    v->as = span_str(f->ours);
    return treat_value(im, server, v, f);
}

/* Other programs allow any name; here it becomes part of tool names and addresses. */
static void treat_name(struct importing *im, struct value *server)
{
    BUF_SCOPED name = {0};

    buf_span(&name, server->key);
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_word(name.p[i], i ? "_-." : ""))
            name.p[i] = i ? '-' : 'x';
    if (name.n && !span_eq(buf_view(&name), server->key)) {
        server->as = arena_span(im->arena, buf_view(&name));
        import_say(im, PROBLEM_WARNING, server, NULL, "this server is called '%s' here",
                   server->as.p);
    }
}

/* False when the server has bounds that are not understood. */
static bool take_bounds(struct importing *im, struct value *server)
{
    for (struct value *v = server->first; v; v = v->next) {
        bool skip = v->as.n || import_is_empty(v); /* added by this import, or unused */
        const struct foreign_key *f = skip ? NULL : find_foreign(im, v->key);
        const char *why = f && f->take ? f->take(im, server, v) : NULL;
        if (why) {
            import_say(im, PROBLEM_WARNING, server, v,
                       "server left out: '" SPAN_FMT "' is not understood (%s), and the server "
                       "must not run without it",
                       SPAN_ARG(v->key), why);
            return false;
        }
    }
    return true;
}

bool import_server(struct importing *im, struct value *server)
{
    if (server->type != VALUE_MAP)
        return true; /* the schema reports the error */
    bool literal = im->host && im->host->variables == HOST_NO_VARIABLES;
    if (literal)
        import_variables(im, server); /* before import_shapes writes variables of ours */
    import_shapes(im, server);
    /* In a manifest, the schema refuses a server that has neither. */
    if (!im->manifest && !import_member(im, server, "url") &&
        !import_member(im, server, "command")) {
        import_say(im, PROBLEM_WARNING, server, NULL,
                   "server left out: it has neither 'command' nor 'url'");
        return false;
    }
    /* A manifest must name the transport of each server; an empty value does not count. */
    if (im->manifest && !import_member(im, server, "transport"))
        import_say(im, PROBLEM_ERROR, server, NULL,
                   "expected the key 'transport': stdio, sse or streamable-http");
    treat_name(im, server);
    if (!take_bounds(im, server))
        return false;
    for (struct value *v = server->first, *next; v; v = next) {
        next = v->next;
        if (!treat_member(im, server, v))
            value_remove(server, v);
    }
    if (!literal)
        import_variables(im, server);
    return true;
}

/* --- documents --- */

static void import_map(struct importing *im, struct value *servers)
{
    servers->as = SPAN("servers");
    im->servers = servers->key.p;
    if (servers->type != VALUE_MAP)
        return;
    for (struct value *v = servers->first, *next; v; v = next) {
        next = v->next;
        if (!import_server(im, v))
            value_remove(servers, v);
    }
}

static struct value *get_nocase(const struct value *map, struct span key)
{
    for (struct value *v = map->first; v; v = v->next)
        if (span_eq_nocase(v->key, key))
            return v;
    return NULL;
}

/*
 * VS Code's file looks much like one of ours. A document is VS Code's if it is JSON, has only keys
 * that VS Code knows, and among them one that we do not know.
 */
static bool is_vscode(const struct value *root, const struct import_hints *hints)
{
    static const char *const own[] = {"type", "envFile", "dev", "gallery"};
    const struct value *servers = value_get(root, "servers");

    if (!hints->json || !servers || servers->type != VALUE_MAP)
        return false;
    for (const struct value *v = root->first; v; v = v->next)
        if (v != servers && !span_is(v->key, "inputs") && !span_is(v->key, "$schema"))
            return false;
    for (const struct value *v = servers->first; v; v = v->next)
        for (size_t i = 0; i < COUNT_OF(own); i++)
            if (value_get(v, own[i]))
                return true;
    return value_get(root, "inputs") || import_has_variables(servers);
}

/* The settings of VS Code have the same map under "mcp", among many other keys. */
static struct value *settings_of(const struct value *root)
{
    struct value *mcp = value_get(root, "mcp");
    const struct value *servers = mcp ? value_get(mcp, "servers") : NULL;

    return servers && servers->type == VALUE_MAP ? mcp : NULL;
}

static enum import_dialect dialect_of(struct importing *im, struct value *root,
                                      const struct import_hints *hints)
{
    const struct value *config = value_get(root, "config");

    if (root->type != VALUE_MAP)
        return IMPORT_OURS;
    if (import_host_servers(im, root, hints))
        return IMPORT_HOST;
    if (get_nocase(root, SPAN("mcpServers")))
        return IMPORT_MCP_SERVERS;
    if (config && value_get(config, "servers"))
        return IMPORT_MANIFEST;
    if (hints->json && !value_get(root, "servers") && settings_of(root))
        return IMPORT_VSCODE_SETTINGS;
    return is_vscode(root, hints) ? IMPORT_VSCODE : IMPORT_OURS;
}

static void import_mcp_servers(struct importing *im, struct value *root)
{
    struct value *servers = get_nocase(root, SPAN("mcpServers"));

    if (value_get(root, "servers"))
        problems_add(im->problems, PROBLEM_ERROR, servers->key_at, servers->key.p,
                     "'servers' and 'mcpServers' exclude each other; keep one");
    import_map(im, servers);
}

static void import_vscode(struct importing *im, struct value *root)
{
    static const char *const foreign[] = {"inputs", "$schema"};

    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        struct value *v = value_get(root, foreign[i]);
        if (v)
            value_remove(root, v);
    }
    import_map(im, value_get(root, "servers"));
}

enum import_dialect import_document(struct arena *a, struct value *root,
                                    const struct import_hints *hints, struct problems *problems)
{
    struct importing im = {.arena = a, .problems = problems, .thorough = hints->thorough};

    enum import_dialect dialect = dialect_of(&im, root, hints);

    switch (dialect) {
    case IMPORT_OURS:
        break;
    case IMPORT_MCP_SERVERS:
        import_mcp_servers(&im, root);
        break;
    case IMPORT_MANIFEST:
        import_manifest(&im, root, value_get(root, "config"));
        break;
    case IMPORT_HOST:
        import_host(&im, root, import_host_servers(&im, root, hints));
        break;
    case IMPORT_VSCODE_SETTINGS:
        *root = *settings_of(root);
        import_vscode(&im, root);
        break;
    case IMPORT_VSCODE:
        import_vscode(&im, root);
        break;
    }
    import_guards_end(&im, root);
    return dialect;
}

struct value *import_entry(struct arena *a, const struct host_program *host, struct value *entry,
                           struct problems *problems)
{
    struct importing im = {.arena = a, .problems = problems, .host = host};

    im.servers = host->place.keys[0];
    if (entry->type != VALUE_MAP || !import_server(&im, entry) || im.rules)
        return NULL; /* an entry cannot hold rules: a server with guards stays in its file */
    return convert_entry(a, entry);
}
