/* The checks of whole entries (a server, listen address, token or prompt) and of the configuration
 * as a whole. The checks of entries are listed in schema_rows.c and called by schema.c; config.c
 * calls check_config. */
#include "config/check.h"

#include "base/ascii.h"
#include "base/map.h"
#include "base/mem.h"
#include "wire/host.h"

/* The place of the key, or of the map if the key is not given. */
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

/* Does the transport fit the server's address or command? */
static void check_transport(struct schema_read *r, const struct value *v, const char *shown,
                            const struct config_server *s)
{
    static const char *const wants[] = {[TRANSPORT_STREAMABLE_HTTP] = "an http or https URL",
                                        [TRANSPORT_SSE] = "an http or https URL",
                                        [TRANSPORT_WS] = "a ws or wss URL",
                                        [TRANSPORT_STDIO] = "'command'"};
    struct span url = span_str(s->url);
    bool open = span_starts(url, SPAN("${")); /* the scheme is not known yet */
    bool http = open || span_starts(url, SPAN("http")), ws = open || span_starts(url, SPAN("ws"));
    bool fits[] = {[TRANSPORT_AUTO] = true,
                   [TRANSPORT_STREAMABLE_HTTP] = http,
                   [TRANSPORT_SSE] = http,
                   [TRANSPORT_WS] = ws,
                   [TRANSPORT_STDIO] = s->command != NULL};

    if ((s->command || s->url) && !fits[s->transport])
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "transport"), shown,
                     "this 'transport' needs %s", wants[s->transport]);
    if (s->ca && s->url && !open && !span_starts(url, SPAN("https:")) &&
        !span_starts(url, SPAN("wss:")))
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "ca"), shown,
                     "'ca' is for https and wss URLs, whose servers have certificates");
    if (s->auth.profile && ws && !open)
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "auth"), shown,
                     "'auth' is for http and https URLs; a WebSocket's token belongs in 'headers'");
}

/* Does `auth` set anything besides `profile`? Defaults do not count: an effective configuration
 * writes them out for every server. */
static bool says_something(const struct config_auth *a)
{
    return a->grant || a->per_user || a->issuer || a->client_id || a->client_secret ||
           a->client_metadata_url || a->private_key || a->scopes.n || a->assertion ||
           a->idp_token_endpoint || a->idp_client_id || a->idp_client_secret || a->idp_issuer ||
           a->idp_subject_token;
}

/* The keys that the grant needs and that are missing; NULL: none. */
static const char *lacks_of(const struct config_auth *a)
{
    bool exchanges = a->grant == GRANT_ID_JAG || a->grant == GRANT_TOKEN_EXCHANGE;

    if (a->grant == GRANT_CLIENT_CREDENTIALS &&
        (!a->client_id || (!a->client_secret && !a->private_key)))
        return "'client_id', and 'client_secret' or 'private_key'";
    if (a->grant == GRANT_JWT_BEARER && !a->assertion)
        return "'assertion'";
    if (a->grant == GRANT_ID_JAG && !a->client_id)
        return "'client_id'";
    if (exchanges && (!a->idp_token_endpoint || !a->idp_client_id))
        return "'idp' with 'token_endpoint' and 'client_id'";
    if (exchanges && a->per_user && (!a->idp_issuer || a->idp_subject_token))
        return "'idp.issuer' beside 'per_user', and no 'idp.subject_token': the caller's is used";
    if (exchanges && !a->per_user && !a->idp_subject_token)
        return "'idp.subject_token', or 'per_user' and 'idp.issuer' for the caller's own token";
    return NULL;
}

/* Does `auth` have all keys that its grant needs, and none that contradict it? */
static void check_auth(struct schema_read *r, const struct value *v, const char *shown,
                       const struct config_server *s)
{
    const struct config_auth *a = &s->auth;
    const struct value *auth = value_get(v, "auth");
    const char *lacks = lacks_of(a);

    if (!auth)
        return;
    if (a->profile) {
        if (says_something(a))
            problems_add(
                r->problems, PROBLEM_ERROR, auth->at, shown,
                "'profile' is a token that something else renews: no other key goes with it");
        return;
    }
    if (lacks)
        problems_add(r->problems, PROBLEM_ERROR, auth->at, shown, "this 'grant' needs %s", lacks);
    if ((a->client_secret || a->private_key) && !a->client_id)
        problems_add(r->problems, PROBLEM_ERROR, auth->at, shown,
                     "a secret or a key is of no use without 'client_id'");
    if (a->per_user && (a->grant == GRANT_CLIENT_CREDENTIALS || a->grant == GRANT_JWT_BEARER))
        problems_add(r->problems, PROBLEM_ERROR, place_of(auth, "per_user"), shown,
                     "'per_user' is for grants by which a person signs in or is vouched for");
    for (size_t i = 0; i < s->headers.n; i++)
        if (says_something(a) &&
            span_eq_nocase(span_str(s->headers.items[i].name), SPAN("Authorization")))
            problems_add(r->problems, PROBLEM_WARNING, auth->at, shown,
                         "the header Authorization in 'headers' switches this off");
}

bool check_server(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    static const char *const for_command[] = {"args", "env", "env_file", "cwd", "sandbox"};
    static const char *const for_url[] = {"headers", "ca", "auth"};
    struct config_server *s = entry;
    bool command = is_given(v, "command"), url = is_given(v, "url");

    if (!command && !url)
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown,
                     "expected the key 'command' with the program to start, or 'url'");
    if (command && url)
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "url"), shown,
                     "'command' and 'url' exclude each other; keep one");
    for (size_t i = 0; url && !command && i < COUNT_OF(for_command); i++)
        if (is_given(v, for_command[i]) &&
            (strcmp(for_command[i], "sandbox") != 0 || s->sandbox.level))
            problems_add(r->problems, PROBLEM_ERROR, place_of(v, for_command[i]), shown,
                         "'%s' makes no sense for a server with 'url'", for_command[i]);
    for (size_t i = 0; command && i < COUNT_OF(for_url); i++)
        if (is_given(v, for_url[i]) &&
            (strcmp(for_url[i], "auth") != 0 || s->auth.profile || says_something(&s->auth)))
            problems_add(r->problems, PROBLEM_ERROR, place_of(v, for_url[i]), shown,
                         "'%s' makes no sense for a server with 'command'", for_url[i]);
    check_transport(r, v, shown, s);
    check_auth(r, v, shown, s);
    s->unset = r->unset.n ? arena_span(r->arena, buf_view(&r->unset)).p : NULL;
    r->unset.n = 0;
    if (s->origin == ORIGIN_AGENT && command && !is_given(v, "sandbox"))
        s->sandbox.level = SANDBOX_LIGHT;
    s->own_timeout = is_given(v, "timeout");
    s->attachments.given = is_given(v, "attachments");
    s->own_approve_by = is_given(v, "approve_by");
    /* Closed pipes show that a program has ended, and a busy one that does not answer a ping must
     * not be stopped. */
    if (command && !is_given(v, "ping"))
        s->ping = 0;
    if (s->command && strchr(s->command, ' ') && !s->args.n)
        problems_add(r->problems, PROBLEM_WARNING, place_of(v, "command"), shown,
                     "'command' is the program alone; what follows it belongs in 'args'");
    if (strcmp(s->alias, "sse") == 0)
        problems_add(r->problems, PROBLEM_WARNING, v->key_at, shown,
                     "/mcp/sse is taken, so this server has no address of its own");
    return true;
}

bool check_listen(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    struct config_listen *l = entry;

    if (v->type == VALUE_MAP && !is_given(v, "address"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'address'");
    const struct value *tls = value_get(v, "tls");
    if (tls && tls->type == VALUE_MAP && (!tls->n || !l->tls_cert != !l->tls_key))
        problems_add(r->problems, PROBLEM_ERROR, tls->at, shown,
                     "'tls' needs both 'cert' and 'key'");
    if (l->address && l->tls_cert && strncmp(l->address, "unix:", 5) == 0)
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "tls"), shown,
                     "a Unix socket does not leave this machine and has no TLS");
    struct span host = host_name(span_str(l->address));
    l->open = host.n && !span_is(host, "unix") && !host_is_loopback(host);
    return l->address != NULL;
}

bool check_token(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    struct config_token *t = entry;

    if (t->view && !is_given(v, "role"))
        t->role = ROLE_AGENT;
    if (v->type == VALUE_MAP && !is_given(v, "name"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'name'");
    if (v->type == VALUE_MAP && !is_given(v, "hash"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                     "expected the key 'hash'; 'rialto token add NAME' makes a token");
    return t->name && t->hash;
}

bool check_jwt(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const struct config_jwt *j = entry;
    struct span jwks = span_str(j->jwks);

    if (v->type == VALUE_MAP && !is_given(v, "issuer"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'issuer'");
    if (v->type == VALUE_MAP && !is_given(v, "jwks"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                     "expected the key 'jwks' with a file or a URL: the issuer's metadata names it "
                     "(jwks_uri)");
    if (span_starts(jwks, SPAN("http")) && span_find(jwks, ':') < 6 && check_web_url(jwks))
        problems_add(r->problems, PROBLEM_ERROR, place_of(v, "jwks"), shown, "%s",
                     check_web_url(jwks));
    return j->issuer && j->jwks;
}

bool check_prompt(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const struct config_prompt *p = entry;

    if (v->type == VALUE_MAP && !is_given(v, "name"))
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'name'");
    return p->name != NULL;
}

bool check_capture(struct schema_read *r, const struct value *v, const char *shown, void *entry)
{
    const struct config_capture *c = entry;

    if (!c->tools.n)
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected the key 'tools'");
    return c->tools.n > 0;
}

/* Names must differ in more than case: some programs ignore case. */
static void check_aliases(struct schema_read *r, const struct value *servers)
{
    struct map seen = {0};

    for (const struct value *v = servers->first; v; v = v->next) {
        BUF_SCOPED lowered = {0};
        buf_span(&lowered, value_key(v));
        for (size_t i = 0; i < lowered.n; i++)
            lowered.p[i] = ascii_to_lower(lowered.p[i]);
        const struct value *first = map_get(&seen, buf_view(&lowered));
        /* A key that occurs twice was already reported by the reader. */
        if (first && !span_eq(first->key, v->key))
            problems_add(r->problems, PROBLEM_ERROR, v->key_at,
                         value_path(r->arena, servers->key.p, v),
                         "too much like '%s' on line %u; choose another name", first->key.p,
                         first->key_at.line);
        if (!first)
            map_put(&seen, buf_view(&lowered), (void *)(uintptr_t)v);
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
                             "the address %s is listed twice", c->listen.items[i].address);
    const struct value *v = value_get(root, "listen");
    if (v && v->type == VALUE_LIST && !v->n)
        problems_add(r->problems, PROBLEM_ERROR, v->at, "listen", "expected at least one address");
}

static const struct config_view *find_view(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->views.n; i++)
        if (strcmp(c->views.items[i].name, name) == 0)
            return &c->views.items[i];
    return NULL;
}

static void check_views(struct schema_read *r, const struct value *root, const struct config *c)
{
    const struct value *views = value_get(root, "views");

    for (const struct value *v = views ? views->first : NULL; v; v = v->next) {
        const struct config_view *view = find_view(c, value_key(v).p);
        for (size_t i = 0; view && i < view->servers.n; i++)
            if (!config_server(c, view->servers.items[i]))
                problems_add(r->problems, PROBLEM_ERROR, place_of(v, "servers"),
                             value_path(r->arena, "views", v), "there is no server '%.64s'",
                             view->servers.items[i]);
    }
}

/* A rule that says a server's name wrong would not deny what it seems to. Patterns may be about
 * servers to come, and a proxy's servers are found on the bus. */
static void check_rules(struct schema_read *r, const struct value *root, const struct config *c)
{
    const struct value *rules = value_get(root, "rules");
    bool proxy = c->bus.role != BUS_WORKER && strcmp(c->bus.url, "off") != 0;
    const struct value *v = rules && rules->type == VALUE_LIST ? rules->first : rules;

    for (size_t i = 0; v && !proxy && i < c->rules.n; i++, v = v->next) {
        const char *server = c->rules.items[i].server;
        bool known = !server || server[strcspn(server, "*?@")] != '\0';
        for (size_t k = 0; k < c->servers.n && !known; k++)
            known = span_glob(span_str(server), span_str(c->servers.items[k].alias));
        BUF_SCOPED key = {0};
        buf_printf(&key, "rules[%zu].server", i);
        if (!known)
            problems_add(r->problems, PROBLEM_WARNING, place_of(v, "server"), buf_cstr(&key),
                         "no server is called '%.64s'; unless that is a session of web pages, no "
                         "call matches this rule",
                         server);
    }
}

static void check_scopes(struct schema_read *r, struct place at, const struct config *c,
                         const struct config_pairs *views)
{
    for (size_t i = 0; i < views->n; i++)
        if (!find_view(c, views->items[i].value))
            problems_add(r->problems, PROBLEM_ERROR, at, "auth",
                         "the scope '%.64s' names the view '%.64s', and there is none",
                         views->items[i].name, views->items[i].value);
}

/* Callers' tokens can be exchanged only if we accept tokens of their issuer. */
static void check_idp(struct schema_read *r, struct place at, const struct config *c,
                      const struct config_server *s)
{
    const char *issuer = s->auth.idp_issuer, *asked = c->introspection.issuer;
    bool known = !issuer || (asked && strcmp(asked, issuer) == 0);

    for (size_t i = 0; i < c->jwt.n && !known; i++)
        known = strcmp(c->jwt.items[i].issuer, issuer) == 0;
    if (!known)
        problems_add(r->problems, PROBLEM_ERROR, at, "auth",
                     "server '%s' exchanges tokens of '%.150s' (auth.idp.issuer), and callers with "
                     "such tokens are not let in: add the issuer to auth.jwt",
                     s->alias, issuer);
}

/* Identity providers, introspection and our own issuer: the checks that need several keys. */
static void check_signing_in(struct schema_read *r, const struct value *auth, struct place at,
                             const struct config *c)
{
    for (size_t i = 0; i < c->jwt.n; i++) {
        if (!c->jwt.items[i].audience && !c->public_url)
            problems_add(r->problems, PROBLEM_ERROR, at, "auth.jwt",
                         "set public_url, for which tokens are then, or 'audience'");
        check_scopes(r, at, c, &c->jwt.items[i].views);
    }
    check_scopes(r, at, c, &c->introspection.views);
    if (c->introspection.url && !c->introspection.audience && !c->public_url)
        problems_add(r->problems, PROBLEM_ERROR, at, "auth.introspection",
                     "set public_url, for which tokens are then, or 'audience'");
    if (auth && is_given(auth, "introspection") && !c->introspection.url)
        problems_add(r->problems, PROBLEM_ERROR, at, "auth.introspection",
                     "expected the key 'url'");
    for (size_t i = 0; i < c->servers.n; i++)
        check_idp(r, at, c, &c->servers.items[i]);
    if (c->issuer && !c->public_url)
        problems_add(r->problems, PROBLEM_ERROR, at, "auth.issuer",
                     "set public_url: it is the name of the issuer, and where people sign in");
}

/* Tokens of the same name would share sessions; the same hash for two names identifies neither. */
static void check_tokens(struct schema_read *r, const struct value *root, struct config *c)
{
    const struct value *auth = value_get(root, "auth");
    const struct value *list = auth ? value_get(auth, "tokens") : NULL;
    struct place at = auth ? place_of(auth, "tokens") : root->at;

    check_signing_in(r, auth, at, c);
    /* An empty list, or none behind the key, is what is left when the last token was revoked or
     * commented out: it must not let anybody in. */
    bool listed = list || (auth && value_get(auth, "jwt")),
         others = c->jwt.n || c->introspection.url || c->issuer;
    c->asks_tokens = listed || others;
    if (listed && !c->tokens.items) /* for the list to be seen in what is written again */
        c->tokens.items = arena_alloc(r->arena, 0);
    if (listed && (!list || !list->n) && !others)
        problems_add(r->problems, PROBLEM_WARNING, at, "auth.tokens",
                     "there is no token, so nobody is let in over the network; 'rialto token add "
                     "NAME' makes one, and without 'auth' everybody on this machine is let in");
    for (size_t i = 0; i < c->tokens.n; i++) {
        const struct config_token *t = &c->tokens.items[i];
        if (t->view && !find_view(c, t->view))
            problems_add(r->problems, PROBLEM_ERROR, at, "auth.tokens",
                         "the token of '%.64s' names the view '%.64s', and there is none", t->name,
                         t->view);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(c->tokens.items[k].name, t->name) == 0)
                problems_add(r->problems, PROBLEM_ERROR, at, "auth.tokens",
                             "the name '%.64s' is used twice", t->name);
            if (strcmp(c->tokens.items[k].hash, t->hash) == 0)
                problems_add(r->problems, PROBLEM_ERROR, at, "auth.tokens",
                             "'%.64s' and '%.64s' have the same hash", c->tokens.items[k].name,
                             t->name);
        }
    }
}

/* A section without `url` means our own bus; without the section there is no bus. */
static void check_bus(struct schema_read *r, const struct value *root, struct config *c)
{
    const struct value *bus = value_get(root, "bus");

    if (!c->bus.url)
        c->bus.url = bus ? "embedded:" : "off";
    if (!bus || bus->type != VALUE_MAP)
        return;
    bool own = strncmp(c->bus.url, "embedded:", 9) == 0 || strncmp(c->bus.url, "unix:", 5) == 0;
    if (c->bus.listen && !own)
        problems_add(r->problems, PROBLEM_ERROR, place_of(bus, "listen"), "bus",
                     "'listen' is for our own bus: 'url' must be embedded: or unix:PATH");
    if (c->bus.listen && !c->bus.token)
        problems_add(r->problems, PROBLEM_ERROR, place_of(bus, "listen"), "bus",
                     "'listen' needs a 'token' that those who join must show");
}

void check_config(struct schema_read *r, const struct value *root, struct config *c)
{
    const struct value *servers = value_get(root, "servers");

    if (c->names && strcmp(c->names, "{tool}") == 0)
        c->names = "bare"; /* "{tool}" and "bare" mean the same */
    if (servers && servers->type == VALUE_MAP)
        check_aliases(r, servers);
    apply_enabled_servers(r, root, c);
    check_tokens(r, root, c);
    for (size_t i = 0; i < c->servers.n; i++) {
        struct config_server *s = &c->servers.items[i];
        s->resources_as_tools |= c->resources_as_tools;
        s->prompts_as_tools |= c->prompts_as_tools;
        s->sandbox.warns = c->sandbox_missing == MISSING_WARN;
        /* With tokens or views there are callers that are not trusted with everything. */
        if (!s->own_approve_by && (c->asks_tokens || c->views.n))
            s->approve_by = APPROVE_BY_OPERATOR;
    }
    check_addresses(r, root, c);
    check_views(r, root, c);
    check_bus(r, root, c);
    check_rules(r, root, c);
    if (c->audit.file && c->audit.syslog)
        problems_add(r->problems, PROBLEM_ERROR, value_get(root, "audit")->at, "audit",
                     "give 'file' or 'syslog', not both");
    if (c->record.size && c->record.body > c->record.size / 8)
        problems_add(r->problems, PROBLEM_ERROR, place_of(root, "record"), "record",
                     "'body' may be an eighth of 'size' at most");
}
