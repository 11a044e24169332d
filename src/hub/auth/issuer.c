/* Our own authorization server: its settings, metadata and paths, and judging its tokens. Called
 * by gate.c and hub/front.c; admin/api.c asks for codes and grants. */
#include "hub/auth/issuer_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

#include <errno.h>

#define METADATA        "/.well-known/oauth-authorization-server"
#define METADATA_OPENID "/.well-known/openid-configuration"

/* --- the configuration --- */

static bool is_mark(void *arg, uint64_t mark)
{
    return *(const uint64_t *)arg == mark;
}

static void on_revoked(void *arg, uint64_t mark)
{
    struct issuer *i = arg;

    passes_end(i->passes, i, is_mark, &mark);
}

struct issuer *issuer_new(struct loop *l, struct passes *passes)
{
    struct issuer *i = MEM_NEW(struct issuer);

    i->loop = l;
    i->passes = passes;
    i->pairing = pairing_new(l);
    list_init(&i->documents);
    list_init(&i->fetches);
    list_init(&i->asked);
    return i;
}

static void free_permits(struct issuer *i)
{
    if (i->permits)
        permits_close(i->permits);
    i->permits = NULL;
}

void issuer_free(struct issuer *i)
{
    issuer_forget_asked(i);
    issuer_forget_documents(i);
    passes_end(i->passes, i, NULL, NULL);
    free_permits(i);
    http_client_free(i->client);
    pairing_free(i->pairing);
    arena_fini(&i->arena);
    buf_fini(&i->settings);
    mem_free(i->public_url);
    mem_free(i);
}

static void add_name(struct arena *a, struct config_strings *to, const char *name)
{
    to->items[to->n++] = arena_span(a, span_str(name)).p;
}

static void copy_names(struct issuer *i, const struct config *c)
{
    struct arena *a = &i->arena;

    arena_fini(a);
    *a = (struct arena){0};
    i->views = (struct config_strings){ARENA_ARRAY(a, const char *, c->views.n + 1), 0};
    for (size_t k = 0; k < c->views.n; k++)
        add_name(a, &i->views, c->views.items[k].name);
    i->servers = (struct config_strings){ARENA_ARRAY(a, const char *, c->servers.n + 1), 0};
    for (size_t k = 0; k < c->servers.n; k++)
        add_name(a, &i->servers, c->servers.items[k].alias);
    struct config_strings hosts = {ARENA_ARRAY(a, const char *, c->client_hosts.n + 1), 0};
    for (size_t k = 0; k < c->client_hosts.n; k++)
        add_name(a, &hosts, c->client_hosts.items[k]);
    i->reach = (struct reach){.hosts = hosts.items, .n = hosts.n, .everywhere = true};
}

/* All settings that are used here, except the password. */
static void put_settings(struct buf *out, const struct config *c)
{
    buf_printf(out, "%d %s\n", (int)c->issuer, c->public_url ? c->public_url : "");
    for (size_t k = 0; k < c->views.n; k++)
        buf_printf(out, "%s\n", c->views.items[k].name);
    buf_char(out, '\f');
    for (size_t k = 0; k < c->servers.n; k++)
        buf_printf(out, "%s\n", c->servers.items[k].alias);
    buf_char(out, '\f');
    for (size_t k = 0; k < c->client_hosts.n; k++)
        buf_printf(out, "%s\n", c->client_hosts.items[k]);
}

void issuer_apply(struct issuer *i, const struct config *c)
{
    struct buf settings = {0};
    bool was_on = i->on, moved = i->public_url && c->public_url && i->on &&
                                 strcmp(i->public_url, c->public_url) != 0;

    pairing_set_password(i->pairing, c->password);
    put_settings(&settings, c);
    bool same = span_eq(buf_view(&settings), buf_view(&i->settings));
    buf_fini(&i->settings);
    i->settings = settings;
    if (same)
        return;
    issuer_forget_documents(i); /* fetches borrow `reach` */
    i->on = c->issuer == ISSUER_BUILT_IN && c->public_url;
    copy_names(i, c);
    mem_free(i->public_url);
    i->public_url = c->public_url ? mem_str(c->public_url) : NULL;
    if (moved || (was_on && !i->on)) {
        issuer_forget_asked(i);
        passes_end(i->passes, i, NULL, NULL);
    }
    if (!i->on)
        free_permits(i);
    else if (!i->permits)
        i->permits = permits_open(i->loop, on_revoked, i);
}

bool issuer_is_on(const struct issuer *i)
{
    return i->on;
}

bool issuer_knows_scope(const struct issuer *i, struct span scope, const char **view)
{
    *view = NULL;
    if (span_is(scope, "mcp"))
        return true;
    for (size_t k = 0; span_starts(scope, SPAN("mcp:")) && k < i->views.n; k++)
        if (span_is(span_from(scope, 4), i->views.items[k]))
            *view = i->views.items[k];
    return *view != NULL;
}

struct span issuer_resource(const struct issuer *i, struct span resource)
{
    struct span base = span_str(i->public_url), path = span_from(resource, base.n);

    if (!span_starts(resource, base))
        return SPAN_EMPTY;
    if (span_is(path, "/mcp") || span_is(path, "/sse"))
        return path;
    for (size_t k = 0; span_starts(path, SPAN("/mcp/")) && k < i->servers.n; k++)
        if (span_is(span_from(path, 5), i->servers.items[k]))
            return path;
    return SPAN_EMPTY;
}

/* --- tokens --- */

enum trust_answer issuer_judge(struct issuer *i, struct span token, const struct pass **pass,
                               const char **why)
{
    int64_t expires;
    struct permit *p = permits_by_access(i->permits, token, &expires);
    struct pass_facts facts = {.issuer = span_str(i->public_url), .judge = i};
    BUF_SCOPED subject = {0};

    if (!p)
        return TRUST_NOT_OURS;
    if (expires <= pass_clock()) {
        *why = "it has expired";
        return TRUST_REFUSES;
    }
    if (!issuer_knows_scope(i, span_str(p->scope), &facts.view)) {
        *why = "it is for a view that is not there any more";
        return TRUST_REFUSES;
    }
    p->used = pass_clock();
    buf_printf(&subject, "%s [%s]", p->name, p->client);
    facts.subject = buf_view(&subject);
    facts.resource = strcmp(p->resource, "/mcp") == 0 ? SPAN_EMPTY : span_str(p->resource);
    facts.expires = expires;
    facts.mark = p->mark;
    *pass = passes_add(i->passes, token, &facts);
    return TRUST_PASSES;
}

bool issuer_put_code(struct issuer *i, char out[PAIRING_CODE_SIZE])
{
    if (i->on)
        pairing_put_code(i->pairing, out);
    return i->on;
}

void issuer_put_grants(struct buf *out, const struct issuer *i)
{
    const struct permit *p = NULL;

    buf_char(out, '[');
    while (i->permits && (p = permits_next(i->permits, p))) {
        json_out_open(out, NULL, '{');
        json_out_str(out, "id", p->id);
        json_out_str(out, "name", p->name);
        json_out_str(out, "client", p->client);
        json_out_str(out, "scope", p->scope);
        json_out_str(out, "resource", p->resource);
        json_out_number(out, "created", (uint64_t)p->created);
        json_out_number(out, "used", (uint64_t)p->used);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

int issuer_revoke(struct issuer *i, struct span id)
{
    struct permit *p = NULL;

    while (i->permits && (p = permits_next(i->permits, p)))
        if (span_is(id, p->id))
            break;
    if (p)
        permits_revoke(i->permits, p, "revoked by an operator");
    else if (!i->permits || !permits_is_unsaved(i->permits))
        return -ENOENT;
    return permits_save(i->permits) ? -EIO : 0;
}

/* --- metadata --- */

void issuer_refuse(struct http_exchange *x, int status, const char *error, const char *description)
{
    struct buf *out = http_respond_begin(
        x, status, "application/json",
        status == 401 ? SPAN("Cache-Control: no-store\r\nWWW-Authenticate: Basic realm=\"Rialto\""
                             "\r\n")
                      : SPAN("Cache-Control: no-store\r\n"));

    buf_char(out, '{');
    json_out_str(out, "error", error);
    if (description)
        json_out_str(out, "error_description", description);
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void put_address(struct buf *out, const char *name, const struct issuer *i, const char *path)
{
    BUF_SCOPED url = {0};

    buf_printf(&url, "%s%s", i->public_url, path);
    json_out_text(out, name, buf_view(&url));
}

/* `words` is one text, or several separated by blanks. */
static void put_list(struct buf *out, const char *name, const char *words)
{
    struct span rest = span_str(words);

    json_out_open(out, name, '[');
    while (rest.n) {
        struct span word = span_cut(rest, 0, span_find(rest, ' '));
        json_out_text(out, NULL, word);
        rest = span_from(rest, word.n + 1);
    }
    buf_char(out, ']');
}

static void handle_metadata(struct issuer *i, struct http_exchange *x,
                            const struct http_request *req)
{
    static const char auth_methods[] = "none client_secret_basic client_secret_post";

    if (!span_is(req->method, "GET") && !span_is(req->method, "HEAD")) {
        http_refuse_with(x, 405, SPAN("Allow: GET\r\n"), "method not allowed",
                         "this can only be looked at: GET");
        return;
    }
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_char(out, '{');
    json_out_str(out, "issuer", i->public_url);
    put_address(out, "authorization_endpoint", i, ISSUER_AUTHORIZE);
    put_address(out, "token_endpoint", i, "/oauth/token");
    put_address(out, "registration_endpoint", i, "/oauth/register");
    put_address(out, "revocation_endpoint", i, "/oauth/revoke");
    put_list(out, "response_types_supported", "code");
    put_list(out, "response_modes_supported", "query");
    put_list(out, "grant_types_supported", "authorization_code refresh_token");
    put_list(out, "code_challenge_methods_supported", "S256");
    put_list(out, "token_endpoint_auth_methods_supported", auth_methods);
    put_list(out, "revocation_endpoint_auth_methods_supported", auth_methods);
    json_out_open(out, "scopes_supported", '[');
    json_out_str(out, NULL, "mcp");
    for (size_t k = 0; k < i->views.n; k++) {
        BUF_SCOPED scope = {0};
        buf_printf(&scope, "mcp:%s", i->views.items[k]);
        json_out_text(out, NULL, buf_view(&scope));
    }
    buf_char(out, ']');
    json_out_bool(out, "authorization_response_iss_parameter_supported", true);
    json_out_bool(out, "client_id_metadata_document_supported", true);
    buf_str(out, "}\n");
    http_respond_end(x);
}

/* --- paths --- */

static const struct {
    const char *path;
    bool below, post;
    void (*handle)(struct issuer *i, struct http_exchange *x, const struct http_request *req);
} endpoints[] = {
    {METADATA, true, false, handle_metadata},
    {METADATA_OPENID, true, false, handle_metadata},
    {"/mcp/.well-known/openid-configuration", false, false, handle_metadata},
    {"/oauth/register", false, true, issuer_handle_register},
    {"/oauth/token", false, true, issuer_handle_token},
    {"/oauth/revoke", false, true, issuer_handle_revoke},
    {ISSUER_AUTHORIZE, false, false, issuer_handle_authorize},
};

const char *const issuer_paths[] = {
    METADATA,
    METADATA_OPENID,
    "/mcp/.well-known/openid-configuration",
    "/oauth/register",
    "/oauth/token",
    "/oauth/revoke",
    NULL,
};

static bool is_at(size_t k, struct span path)
{
    struct span own = span_str(endpoints[k].path);

    return span_starts(path, own) &&
           (path.n == own.n || (endpoints[k].below && path.p[own.n] == '/'));
}

void issuer_handle(struct issuer *i, struct http_exchange *x, const struct http_request *req)
{
    for (size_t k = 0; i->on && k < COUNT_OF(endpoints); k++) {
        if (!is_at(k, req->path))
            continue;
        if (endpoints[k].post && !span_is(req->method, "POST"))
            http_refuse_with(x, 405, SPAN("Allow: POST\r\n"), "method not allowed",
                             "this takes a POST");
        else
            endpoints[k].handle(i, x, req);
        return;
    }
    http_refuse(x, 404, "no such path", "MCP is at /mcp and at /mcp/<server>");
}
