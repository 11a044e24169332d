#include "config/import.h"

#include "base/mem.h"
#include "config/problems.h"

struct importing {
    struct arena *arena;
    struct problems *problems;
    const char *servers; /* what the map of servers is called */
};

/* How a member of a server's entry is taken. */
enum treatment {
    RENAME,  /* the same value under our name */
    NEGATE,  /* true for false */
    MS,      /* a number of milliseconds */
    UNCLEAR, /* ours when it is text; as a number it means seconds here and milliseconds there */
    IGNORE,  /* concerns only the program that the file was written for */
};

static const struct foreign_key {
    const char *theirs; /* upper and lower case are the same in some of these programs */
    const char *ours;
    enum treatment treatment;
} foreign_keys[] = {
    {"command", "command", RENAME},
    {"args", "args", RENAME},
    {"env", "env", RENAME},
    {"cwd", "cwd", RENAME},
    {"url", "url", RENAME},
    {"serverUrl", "url", RENAME},
    {"httpUrl", "url", RENAME},
    {"headers", "headers", RENAME},
    {"allowedTools", "allow", RENAME},
    {"includeTools", "allow", RENAME},
    {"deniedTools", "deny", RENAME},
    {"excludeTools", "deny", RENAME},
    {"disabledTools", "deny", RENAME},
    {"disabled", "enabled", NEGATE},
    {"toolTimeoutMs", "timeout", MS},
    {"timeout", "timeout", UNCLEAR},
    {"type", NULL, IGNORE},
    {"transport", NULL, IGNORE},
    {"transportMode", NULL, IGNORE},
    {"autoApprove", NULL, IGNORE},
    {"alwaysAllow", NULL, IGNORE},
    {"trust", NULL, IGNORE},
    {"name", NULL, IGNORE},
    {"description", NULL, IGNORE},
    {"id", NULL, IGNORE},
    {"origin", NULL, IGNORE},
};

static const struct foreign_key *find_foreign(struct span key)
{
    for (size_t i = 0; i < COUNT_OF(foreign_keys); i++)
        if (span_eq_nocase(key, span_str(foreign_keys[i].theirs)))
            return &foreign_keys[i];
    return NULL;
}

/* Some of these programs write every key they know, used or not. */
static bool is_empty(const struct value *v)
{
    return v->type == VALUE_NULL || (v->type == VALUE_STRING && !v->text.n) ||
           ((v->type == VALUE_LIST || v->type == VALUE_MAP) && !v->n);
}

/* A member that means our key `ours` and is not empty. */
static const struct value *find_member(const struct value *server, const char *ours)
{
    for (const struct value *v = server->first; v; v = v->next) {
        const struct foreign_key *f = find_foreign(v->key);
        if (f && f->ours && strcmp(f->ours, ours) == 0 && !is_empty(v))
            return v;
    }
    return NULL;
}

/* 3000 becomes "3000ms". */
static void add_unit(struct importing *im, struct value *v, const char *unit)
{
    struct buf text = {0};

    buf_span(&text, v->text);
    buf_str(&text, unit);
    v->type = VALUE_STRING;
    v->text = arena_span(im->arena, buf_view(&text));
    buf_fini(&text);
}

/* False when the member is to be removed. */
static bool treat_member(struct importing *im, const struct value *server, struct value *v)
{
    const struct foreign_key *f = find_foreign(v->key);

    if (!f)
        return true; /* one of ours, or unknown: the schema says which */
    if (f->treatment == IGNORE || is_empty(v))
        return false;
    v->as = span_str(f->ours);
    if (f->treatment == NEGATE && v->type == VALUE_BOOL) {
        v->truth = !v->truth;
    } else if (f->treatment == MS && v->type == VALUE_NUMBER) {
        add_unit(im, v, "ms");
    } else if (f->treatment == UNCLEAR && v->type == VALUE_NUMBER) {
        problems_add(im->problems, PROBLEM_WARNING, v->at,
                     value_path(im->arena, value_path(im->arena, im->servers, server), v),
                     "ignored: a number may mean seconds or milliseconds; write 30s or 500ms");
        return false;
    }
    return true;
}

/* Names may be anything elsewhere; here they become part of tool names and addresses. */
static void treat_name(struct importing *im, struct value *server)
{
    struct buf name = {0};

    buf_span(&name, server->key);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (i > 0 && (c == '_' || c == '-' || c == '.'));
        if (!fine)
            name.p[i] = i ? '-' : 'x';
    }
    if (name.n && !span_eq(buf_view(&name), server->key)) {
        server->as = arena_span(im->arena, buf_view(&name));
        problems_add(im->problems, PROBLEM_WARNING, server->key_at,
                     value_path(im->arena, im->servers, server), "this server is called '%s' here",
                     server->as.p);
    }
    buf_fini(&name);
}

/* False when the server is to be left out. */
static bool treat_server(struct importing *im, struct value *server)
{
    if (server->type != VALUE_MAP)
        return true; /* the schema says what is wrong */
    if (!find_member(server, "url") && !find_member(server, "command")) {
        problems_add(im->problems, PROBLEM_WARNING, server->key_at,
                     value_path(im->arena, im->servers, server),
                     "server left out: it has neither 'command' nor 'url'");
        return false;
    }
    treat_name(im, server);
    for (struct value *v = server->first, *next; v; v = next) {
        next = v->next;
        if (!treat_member(im, server, v))
            value_remove(server, v);
    }
    return true;
}

bool import_document(struct arena *a, struct value *root, struct problems *problems)
{
    struct importing im = {.arena = a, .problems = problems};
    struct value *servers = NULL;

    if (root->type != VALUE_MAP)
        return false;
    for (struct value *v = root->first; v && !servers; v = v->next)
        if (span_eq_nocase(v->key, SPAN("mcpServers")))
            servers = v;
    if (!servers)
        return false;
    if (value_get(root, "servers"))
        problems_add(problems, PROBLEM_ERROR, servers->key_at, servers->key.p,
                     "'servers' and 'mcpServers' exclude each other; keep one");
    servers->as = SPAN("servers");
    im.servers = servers->key.p;
    if (servers->type != VALUE_MAP)
        return true;
    for (struct value *v = servers->first, *next; v; v = next) {
        next = v->next;
        if (!treat_server(&im, v))
            value_remove(servers, v);
    }
    return true;
}
