/* Plans made from entries of the configuration: command line, environment, filters, limits, with
 * secrets filled in; and providers made from plans. Called by bridge.c, bridge_server.c,
 * instance.c, lease.c, variant.c, hub/signin/signin.c and side_request.c, and in cmd/ by doctor/,
 * login.c, logout.c and sandbox.c. */
#include "hub/graph/server.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/credentials.h"
#include "config/env_file.h"
#include "hub/graph/filling.h"
#include "hub/graph/install.h"
#include "hub/graph/memory.h"
#include "hub/graph/nesting.h"
#include "hub/graph/profile.h"
#include "hub/graph/sandbox.h"
#include "hub/places.h"
#include "mcp/server/http_upstream.h"
#include "mcp/server/ws_upstream.h"
#include "wire/oauth.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The time from closing a server's stdin to SIGTERM, and from there to SIGKILL. It is short, so
 * that after Ctrl-C everything ends within a second. */
enum { STOP_GRACE_MS = 400 };

struct server_plan {
    struct arena arena; /* all texts of the plan */
    unsigned holders;
    struct filling text;                 /* how variables in them were filled in */
    bool failed;                         /* the plan cannot be used; the reason is in the log */
    const char *lacks;                   /* why the server cannot be started; NULL: it can */
    struct server_plan *newer;           /* owns texts of filter and policy; NULL: this plan does */
    struct stdio_upstream_options stdio; /* argv NULL for remote servers */
    struct http_upstream_options http;   /* url NULL for programs */
    struct signin_settings signin;       /* url NULL: nobody signs in there */
    struct profile *profile;             /* NULL: there is no auth.profile */
    struct reach reach;                  /* set for a server that an agent has registered */
    bool discreet;                       /* true for such a server */
    const char *memory;                  /* NULL: the catalog is not remembered */
    struct filter filter;
    struct mcp_overrides overrides;
    struct mcp_extras extras;
    struct policy policy;
    uint64_t ping;
    enum mcp_era era;
    bool per_session;
    unsigned traits; /* SERVER_ bits */
};

/* The variables, with NAME=VALUE added in front unless NAME is among them. */
static const char *const *with_default(struct arena *arena, const char *const *env,
                                       const char *name, const char *value)
{
    BUF_SCOPED text = {0};
    size_t n = 0;

    buf_printf(&text, "%s=", name);
    for (; env[n]; n++)
        if (span_starts(span_str(env[n]), buf_view(&text)))
            return env;
    buf_str(&text, value);
    const char **longer = ARENA_ARRAY(arena, const char *, n + 2);
    longer[0] = arena_span(arena, buf_view(&text)).p;
    memcpy(longer + 1, env, n * sizeof *env);
    return longer;
}

static const char *const *argv_of(struct server_plan *plan, const struct config_server *s)
{
    const char **argv = ARENA_ARRAY(&plan->arena, const char *, s->args.n + 2);

    argv[0] = filling_text(&plan->text, s->command);
    for (size_t i = 0; i < s->args.n; i++)
        argv[i + 1] = filling_text(&plan->text, s->args.items[i]);
    credentials_in_args(argv);
    return argv;
}

/* The variables of the server's env_file that `env` does not set. */
static struct config_pairs file_env(struct server_plan *plan, const struct config_server *s)
{
    struct config_pairs from = {0}, more = {0};
    BUF_SCOPED path = {0};
    struct err err = {0};

    if (!s->env_file)
        return more;
    const char *file = filling_text(&plan->text, s->env_file);
    if (file[0] != '/' && s->cwd)
        buf_printf(&path, "%s/", filling_text(&plan->text, s->cwd));
    buf_str(&path, file);
    if (env_file_read(&plan->arena, buf_cstr(&path), &from, &err)) {
        log_error(s->alias, "is left out: %s", err.text);
        plan->failed = true;
    }
    more.items = ARENA_ARRAY(&plan->arena, struct config_pair, from.n + 1);
    for (size_t i = 0; i < from.n; i++) {
        bool set = false;
        for (size_t k = 0; k < s->env.n; k++)
            set |= strcmp(s->env.items[k].name, from.items[i].name) == 0;
        if (!set)
            more.items[more.n++] = from.items[i];
    }
    return more;
}

static const char *const *env_of(struct server_plan *plan, const struct config *c,
                                 const struct config_server *s)
{
    struct config_pairs more = file_env(plan, s);
    const char **own = filling_pairs(&plan->text, &s->env, "=", false);
    const char **texts = ARENA_ARRAY(&plan->arena, const char *, more.n + s->env.n + 2);
    BUF_SCOPED text = {0};

    for (size_t i = 0; i < more.n; i++) {
        text.n = 0;
        credentials_in_pair(span_str(more.items[i].name), span_str(more.items[i].value));
        buf_printf(&text, "%s=%s", more.items[i].name, more.items[i].value);
        filling_note(&plan->text, buf_view(&text));
        texts[i] = arena_span(&plan->arena, buf_view(&text)).p;
    }
    memcpy(texts + more.n, own, s->env.n * sizeof *own);
    text.n = 0;
    nesting_put(&text, c->file);
    texts[more.n + s->env.n] = arena_span(&plan->arena, buf_view(&text)).p;
    return texts;
}

/* Plans the sandbox of the server, with a TMPDIR of its own, and the step that installs the server.
 * False, with the reason in the log, when there is no place for the sandbox's files. */
static bool plan_cage(struct server_plan *plan, const struct config_server *s)
{
    struct stdio_upstream_options *stdio = &plan->stdio;
    BUF_SCOPED name = {0}, folder = {0}, tmp = {0};
    struct install_words words;

    if (!s->command || !s->sandbox.level)
        return true;
    bool installs = install_read(stdio->argv, &words);
    buf_printf(&name, "servers/%s", s->alias);
    if (installs)
        install_put_folder(&folder, s->alias, &words);
    char *own = place_name(PLACE_STATE, buf_cstr(&name));
    char *installed = installs ? place_name(PLACE_STATE, buf_cstr(&folder)) : NULL;
    struct sandbox_places places = {
        .server = s->alias, .home = getenv("HOME"), .own = own, .installed = installed};
    if (own) {
        buf_printf(&tmp, "%s/tmp", own);
        stdio->env = with_default(&plan->arena, stdio->env, "TMPDIR", buf_cstr(&tmp));
        stdio->cage =
            sandbox_rules(&plan->arena, &s->sandbox, filling_texts(&plan->text, &s->sandbox.read),
                          filling_texts(&plan->text, &s->sandbox.write), &places);
    } else {
        log_error(s->alias, "is left out: there is no state folder for what its sandbox needs; set "
                            "HOME or XDG_STATE_HOME");
    }
    if (installed)
        stdio->before =
            install_step(&plan->arena, stdio->argv, stdio->env, &words, installed,
                         sandbox_rules_to_install(&plan->arena, stdio->cage, installed));
    mem_free(installed);
    mem_free(own);
    return stdio->cage != NULL;
}

static struct mcp_overrides overrides_of(struct server_plan *plan, const struct config_server *s)
{
    struct mcp_override *rows = ARENA_ARRAY(&plan->arena, struct mcp_override, s->tools.n + 1);

    for (size_t i = 0; i < s->tools.n; i++) {
        const struct config_tool *t = &s->tools.items[i];
        rows[i] = (struct mcp_override){arena_text(&plan->arena, t->own),
                                        filling_some(&plan->text, t->name),
                                        filling_some(&plan->text, t->description),
                                        filling_json(&plan->text, t->arguments), t->hide};
    }
    return (struct mcp_overrides){rows, s->tools.n};
}

static struct mcp_extras extras_of(struct server_plan *plan, const struct config_server *s)
{
    size_t n = s->prompts_as_context.n;
    struct mcp_context_row *rows = ARENA_ARRAY(&plan->arena, struct mcp_context_row, n + 1);

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct mcp_context_row){
            filling_some(&plan->text, s->prompts_as_context.items[i].name),
            filling_json(&plan->text, s->prompts_as_context.items[i].arguments)};
    const char **uris = ARENA_ARRAY(&plan->arena, const char *, s->resources_as_context.n + 1);
    for (size_t i = 0; i < s->resources_as_context.n; i++)
        uris[i] = filling_text(&plan->text, s->resources_as_context.items[i]);
    return (struct mcp_extras){.resources_as_tools = s->resources_as_tools,
                               .prompts_as_tools = s->prompts_as_tools,
                               .context = rows,
                               .n_context = n,
                               .resources = uris,
                               .n_resources = s->resources_as_context.n};
}

static struct policy policy_of(const struct config_server *s)
{
    struct policy policy = policy_default;

    policy.timeout = s->timeout;
    policy.ask_timeout = s->ask_timeout;
    policy.progress_extends = s->timeout_on_progress == PROGRESS_RESET;
    policy.timeout_max = s->timeout_max ? s->timeout_max : 10 * s->timeout;
    policy.concurrency = s->concurrency;
    policy.queue = s->queue;
    policy.start_timeout = s->start_timeout;
    policy.restart_limit = (unsigned)s->restarts;
    policy.eager = s->start == START_EAGER;
    policy.idle_stop = s->idle_stop;
    policy.approve_timeout = s->approve_timeout;
    policy.approve_by = s->approve_by;
    return policy;
}

static struct server_plan *new_plan(void)
{
    struct server_plan *plan = MEM_NEW(struct server_plan);

    plan->holders = 1;
    return plan;
}

struct server_plan *server_plan_hold(struct server_plan *plan)
{
    plan->holders++;
    return plan;
}

void server_plan_drop(struct server_plan *plan)
{
    if (!plan || --plan->holders)
        return;
    server_plan_drop(plan->newer);
    profile_free(plan->profile);
    arena_fini(&plan->arena);
    mem_free(plan);
}

void server_plan_adjust(struct server_plan *plan, struct server_plan *newer)
{
    server_plan_hold(newer);
    server_plan_drop(plan->newer);
    plan->newer = newer;
    plan->filter = newer->filter;
    plan->policy = newer->policy;
}

bool server_plan_same_secrets(const struct server_plan *a, const struct server_plan *b)
{
    return memcmp(a->text.digest, b->text.digest, sizeof a->text.digest) == 0;
}

/* A server that an agent has registered may only lead to the hosts that the operator allows. */
static void bound_reach(struct server_plan *plan, const struct config *c)
{
    const struct config_strings *hosts = &c->bus.register_hosts;
    const char **copies = ARENA_ARRAY(&plan->arena, const char *, hosts->n + 1);

    for (size_t i = 0; i < hosts->n; i++)
        copies[i] = arena_text(&plan->arena, hosts->items[i]);
    plan->reach = (struct reach){copies, hosts->n};
    plan->discreet = true;
}

static bool has_authorization(const struct config_server *s)
{
    for (size_t i = 0; i < s->headers.n; i++)
        if (span_eq_nocase(span_str(s->headers.items[i].name), SPAN("Authorization")))
            return true;
    return false;
}

/* Nobody signs in to a server that has an Authorization header or an auth profile, nor to one that
 * an agent has registered; and no token leaves this machine without TLS. */
static void plan_signin(struct server_plan *plan, const struct config_server *s)
{
    const struct config_auth *a = &s->auth;
    const struct http_upstream_options *http = &plan->http;
    BUF_SCOPED scopes = {0};
    struct url_parts url;

    if (s->origin == ORIGIN_AGENT || s->auth.profile || has_authorization(s) || !http->url ||
        !url_read(&url, span_str(http->url)) || !url_is_safe(&url))
        return;
    for (size_t i = 0; i < a->scopes.n; i++)
        oauth_scope_join(&scopes, filling_text(&plan->text, a->scopes.items[i]));
    plan->signin = (struct signin_settings){
        .alias = plan->stdio.alias,
        .url = http->url,
        .ca = http->ca,
        .headers = http->headers,
        .grant = a->grant,
        .issuer = filling_some(&plan->text, a->issuer),
        .client_id = filling_some(&plan->text, a->client_id),
        .client_secret = filling_some(&plan->text, a->client_secret),
        .client_metadata_url = filling_some(&plan->text, a->client_metadata_url),
        .private_key = filling_some(&plan->text, a->private_key),
        .scopes = scopes.n ? arena_span(&plan->arena, buf_view(&scopes)).p : NULL,
        .assertion = filling_some(&plan->text, a->assertion),
        .idp_token_endpoint = filling_some(&plan->text, a->idp_token_endpoint),
        .idp_client_id = filling_some(&plan->text, a->idp_client_id),
        .idp_client_secret = filling_some(&plan->text, a->idp_client_secret),
        .idp_issuer = filling_some(&plan->text, a->idp_issuer),
        .idp_subject_token = filling_some(&plan->text, a->idp_subject_token),
        .per_user = a->per_user};
    log_add_secret(span_str(plan->signin.client_secret));
    log_add_secret(span_str(plan->signin.idp_client_secret));
}

/* The token of the profile replaces an Authorization header of the entry. */
static void plan_profile(struct server_plan *plan, const struct config *c, const char *name,
                         const char **headers)
{
    size_t n = 0;

    for (size_t i = 0; headers[i]; i++)
        if (!span_eq_nocase(span_cut(span_str(headers[i]), 0, sizeof "Authorization"),
                            SPAN("Authorization:")))
            headers[n++] = headers[i];
    headers[n] = NULL;
    plan->profile = profile_new(&c->secrets, name);
}

/* The folder in which the program is started. A server with scope: project has one instance for
 * each project folder, so ${PROJECT} is filled in even if no text of the entry contains it. */
static const char *folder_of(struct server_plan *plan, const struct config_server *s)
{
    const char *project = s->scope == SCOPE_PROJECT && plan->text.secrets
                              ? filling_some(&plan->text, "${" VARIABLES_PROJECT "}")
                              : NULL;

    return s->cwd ? filling_some(&plan->text, s->cwd) : project;
}

static void plan_pipe(struct server_plan *plan, const struct config *c,
                      const struct config_server *s)
{
    static const enum http_transport transports[] = {
        [TRANSPORT_AUTO] = HTTP_TRANSPORT_AUTO,
        [TRANSPORT_STREAMABLE_HTTP] = HTTP_TRANSPORT_STREAMABLE,
        [TRANSPORT_SSE] = HTTP_TRANSPORT_OLD_SSE,
        [TRANSPORT_WS] = HTTP_TRANSPORT_AUTO,
        [TRANSPORT_STDIO] = HTTP_TRANSPORT_AUTO,
    };
    const char *alias = arena_text(&plan->arena, s->alias), *folder = folder_of(plan, s);

    plan->stdio.alias = alias;
    if (s->url) {
        const char *url = filling_text(&plan->text, s->url),
                   **headers = filling_pairs(&plan->text, &s->headers, ": ", c->omits_headers);
        if (s->auth.profile && plan->text.secrets)
            plan_profile(plan, c, s->auth.profile, headers);
        credentials_in_text(span_str(url));
        plan->http = (struct http_upstream_options){.alias = alias,
                                                    .url = url,
                                                    .socket = arena_text(&plan->arena, s->socket),
                                                    .ca = filling_some(&plan->text, s->ca),
                                                    .headers = headers,
                                                    .transport = transports[s->transport],
                                                    .max_message = c->limits.message,
                                                    .reach = plan->discreet ? &plan->reach : NULL};
    } else
        plan->stdio = (struct stdio_upstream_options){.alias = alias,
                                                      .argv = argv_of(plan, s),
                                                      .env = env_of(plan, c, s),
                                                      .cwd = folder,
                                                      .max_message = c->limits.message,
                                                      .stop_grace = STOP_GRACE_MS};
}

/* Why the server cannot be started: which values are missing, and where they were looked for. */
static void put_lacks(struct buf *out, struct span missing, bool for_caller)
{
    if (span_is(missing, VARIABLES_PROJECT) && !for_caller)
        buf_str(out, "it runs in the folder of a project (scope: project), which only hosts that "
                     "run 'rialto stdio' have");
    else
        buf_printf(out, "no value for " SPAN_FMT " (not in the secrets, not in %s)",
                   SPAN_ARG(missing),
                   for_caller ? "the environment in which the host runs 'rialto stdio'"
                              : "the environment of this Rialto");
}

static void set_lacks(struct server_plan *plan, const struct buf *missing, bool for_caller)
{
    BUF_SCOPED text = {0};

    if (!plan || !missing->n)
        return;
    put_lacks(&text, buf_view(missing), for_caller);
    plan->lacks = arena_span(&plan->arena, buf_view(&text)).p;
    plan->policy.eager = false; /* it cannot be started */
}

/* Would the server start this same configuration again, and so on without end? */
static bool is_nested(const struct config *c, const struct config_server *s)
{
    bool nested = s->command && nesting_has(c->file);

    if (nested)
        log_error(s->alias,
                  "is left out: this Rialto was itself started by a server of %s, and would start "
                  "itself without end; remove that server, or give it another configuration",
                  c->file);
    return nested;
}

/* `missing` gets the names without a value. NULL, with the reason in the log, when the server
 * cannot be used for another reason. */
static struct server_plan *make_plan(const struct config *c, const struct config_server *s,
                                     struct secrets *secrets, struct buf *missing)
{
    static const enum mcp_era eras[] = {
        [ERA_AUTO] = MCP_ERA_AUTO, [ERA_LEGACY] = MCP_ERA_LEGACY, [ERA_MODERN] = MCP_ERA_MODERN};
    struct server_plan *plan = new_plan();
    struct arena *arena = &plan->arena;
    /* A server that an agent has registered must not get at our secrets. */
    plan->text = (struct filling){.arena = arena,
                                  .alias = arena_text(arena, s->alias),
                                  .secrets = s->origin == ORIGIN_AGENT ? NULL : secrets};
    plan->filter = (struct filter){filling_spans(&plan->text, &s->allow), s->allow.n,
                                   filling_spans(&plan->text, &s->deny), s->deny.n};
    plan->overrides = overrides_of(plan, s);
    plan->extras = extras_of(plan, s);
    plan->policy = policy_of(s);
    plan->policy.approve = filling_spans(&plan->text, &s->approve);
    plan->policy.n_approve = s->approve.n;
    plan->ping = s->ping;
    plan->era = eras[s->era];
    plan->per_session = s->instances == INSTANCES_PER_SESSION;
    if (s->origin == ORIGIN_AGENT)
        bound_reach(plan, c);
    plan_pipe(plan, c, s);
    plan_signin(plan, s);
    if (server_is_per_user(plan))
        plan->policy.eager = false; /* it needs the token of a caller */
    bool placed = plan_cage(plan, s);
    /* What one user is shown is not for the next. */
    char *memory = server_is_per_user(plan) ? NULL : memory_path(c, s);
    plan->memory = arena_text(arena, memory);
    mem_free(memory);
    filling_put_missing(&plan->text, missing);
    buf_fini(&plan->text.missing);
    plan->text.secrets = NULL;
    if (placed && !plan->failed && !is_nested(c, s))
        return plan;
    server_plan_drop(plan);
    return NULL;
}

struct server_plan *server_plan_new(const struct config *c, const struct config_server *s,
                                    struct secrets *secrets)
{
    BUF_SCOPED missing = {0};

    buf_str(&missing, s->unset ? s->unset : "");
    struct server_plan *plan = make_plan(c, s, secrets, &missing);
    if (!missing.n)
        return plan;
    log_error(s->alias, "is left out: no value for %s (not in the secrets, not in the environment)",
              buf_cstr(&missing));
    server_plan_drop(plan);
    return NULL;
}

struct server_plan *server_plan_for_callers(const struct config *c, const struct config_server *s,
                                            struct secrets *secrets, struct buf *missing)
{
    /* Values that are not texts are the same for all callers, so no caller can bring what `unset`
     * names. With c->project there is only one caller, the command itself. */
    if (s->unset || c->project) {
        buf_str(missing, s->unset ? s->unset : "");
        return server_plan_new(c, s, secrets);
    }
    struct server_plan *plan = make_plan(c, s, secrets, missing);
    bool of_projects = span_is(buf_view(missing), VARIABLES_PROJECT);
    if (missing->n && !of_projects)
        log_error(
            s->alias,
            "is left out: no value for %s (not in the secrets, not in the environment); hosts "
            "that run 'rialto stdio' may bring it",
            buf_cstr(missing));
    set_lacks(plan, missing, false);
    return plan;
}

struct server_plan *server_plan_for_caller(const struct config *c, const struct config_server *s,
                                           struct secrets *secrets)
{
    BUF_SCOPED missing = {0};
    struct server_plan *plan = make_plan(c, s, secrets, &missing);

    set_lacks(plan, &missing, true);
    return plan;
}

struct server_plan *server_plan_demo(const struct config *c)
{
    static const char *const no_env[] = {NULL};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n < 0)
        return NULL;
    struct server_plan *plan = new_plan();
    const char **argv = ARENA_ARRAY(&plan->arena, const char *, 3);
    argv[0] = arena_span(&plan->arena, span_of(self, (size_t)n)).p;
    argv[1] = "demo-server";
    plan->policy = policy_default;
    plan->stdio = (struct stdio_upstream_options){.alias = "demo",
                                                  .argv = argv,
                                                  .env = no_env,
                                                  .max_message = c->limits.message,
                                                  .stop_grace = STOP_GRACE_MS};
    return plan;
}

struct http_signer *server_profile(const struct server_plan *plan, struct loop *loop)
{
    return plan->profile ? profile_signer(plan->profile, loop) : NULL;
}

static struct mcp_provider *make_provider(struct loop *loop, const struct server_plan *plan,
                                          struct http_signer *signer)
{
    const struct http_upstream_options *remote = &plan->http;

    if (!remote->url)
        return stdio_upstream_new(loop, &plan->stdio);
    if (!span_starts(span_str(remote->url), SPAN("ws"))) {
        struct http_upstream_options options = *remote;
        options.signer = signer ? signer : server_profile(plan, loop);
        return http_upstream_new(loop, &options);
    }
    return ws_upstream_new(loop, &(struct ws_upstream_options){.alias = remote->alias,
                                                               .url = remote->url,
                                                               .ca = remote->ca,
                                                               .headers = remote->headers,
                                                               .max_message = remote->max_message,
                                                               .reach = remote->reach});
}

struct mcp_provider *server_start(struct loop *loop, const struct server_plan *plan,
                                  struct http_signer *signer)
{
    struct mcp_provider *p = make_provider(loop, plan, signer);

    mcp_provider_core(p)->policy = plan->policy;
    mcp_provider_set_era(p, plan->era);
    mcp_provider_set_ping(p, plan->ping);
    mcp_provider_set_overrides(p, &plan->overrides);
    mcp_provider_set_extras(p, &plan->extras);
    if (plan->discreet)
        mcp_provider_set_discreet(p);
    return p;
}

const struct signin_settings *server_signin(const struct server_plan *plan)
{
    return plan->signin.url ? &plan->signin : NULL;
}

const char *server_alias(const struct server_plan *plan)
{
    return plan->stdio.alias;
}

const struct stdio_upstream_options *server_program(const struct server_plan *plan)
{
    return plan->http.url ? NULL : &plan->stdio;
}

const struct http_upstream_options *server_remote(const struct server_plan *plan)
{
    struct span url = span_str(plan->http.url);

    return span_starts(url, SPAN("http")) ? &plan->http : NULL;
}

const struct filter *server_filter(const struct server_plan *plan)
{
    return &plan->filter;
}

const struct policy *server_policy(const struct server_plan *plan)
{
    return &plan->policy;
}

const char *server_memory(const struct server_plan *plan)
{
    return plan->memory;
}

bool server_fills(const struct server_plan *plan)
{
    return plan->text.fills;
}

const char *server_lacks(const struct server_plan *plan)
{
    return plan->lacks;
}

bool server_is_lazy(const struct server_plan *plan)
{
    return !plan->policy.eager;
}

bool server_is_per_user(const struct server_plan *plan)
{
    return plan->signin.url && plan->signin.per_user;
}

bool server_is_per_session(const struct server_plan *plan)
{
    return plan->per_session;
}

enum mcp_era server_era(const struct server_plan *plan)
{
    return plan->era;
}

unsigned server_traits(const struct server_plan *plan)
{
    return plan->traits;
}

void server_set_traits(struct server_plan *plan, unsigned traits)
{
    plan->traits = traits;
}
