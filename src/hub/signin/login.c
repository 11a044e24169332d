/* The steps of one sign-in by a person: discovery, registration, the address to show, the way back,
 * the token. Called by signin.c. */
#include "hub/signin/login.h"

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "base/visible.h"
#include "hub/signin/client_metadata.h"
#include "hub/signin/discovery.h"
#include "wire/webform.h"

#include <stdio.h>
#include <time.h>

enum {
    LOGIN_MS = 10 * 60 * 1000,
    RANDOM_N = 32,     /* bytes of state and verifier */
    SLOW_DOWN_S = 5,   /* more between two questions, when the server asks for that */
    SECRET_LEFT_S = 60 /* a registration whose secret ends sooner is replaced */
};

struct login {
    struct loop *loop;
    struct http_client *client;
    struct login_spec spec;
    struct arena arena;
    const struct login_events *on;
    void *owner;
    const char *redirect_uri;
    const char *wanted; /* scopes that calls lacked, and those asked for before; or NULL */
    const char *scope;  /* asked for; NULL: none */
    const char *state, *verifier;
    const char *address, *code;
    const char *authorize; /* the address at the authorization server; NULL: not known yet */
    struct begin begin;    /* with spec.begin, once `authorize` is known */
    struct discovery *discovery;
    const struct discovered *found; /* the discovery's */
    struct grant_client id;
    bool registered; /* `id` is a registration in the file */
    bool other_host; /* the second spelling of the redirect URI was tried */
    struct fetched_document *registration;
    struct grant_request *grant;
    struct oauth_device device;
    struct timer timer; /* the next question about a device code; or the end of a failed step */
    struct timer late;
    bool over; /* `done` was called, or will be soon */
    struct err err;
};

/* --- the end --- */

static void on_timer(struct timer *t);

static void tell_failed(struct timer *t)
{
    struct login *l = CONTAINER_OF(t, struct login, timer);

    l->on->done(l->owner, &l->err);
}

/* l->err is set. The owner is told from the loop. */
static void fail(struct login *l)
{
    l->over = true;
    l->timer.fire = tell_failed;
    timer_set(loop_timers(l->loop), &l->timer, 0);
}

static const char *alias_of(const struct login *l)
{
    return l->spec.settings->alias;
}

/* The name by which our registration is found again. A registration for browsers cannot be used
 * for device codes: the server would give none. */
static const char *registered_as(const struct login *l)
{
    return l->spec.device ? "device" : l->redirect_uri;
}

/* The server may have forgotten our registration: drop it, so that the next login registers us. */
static void forget_registration(struct login *l)
{
    const struct signin_record *r =
        l->found && l->registered
            ? signin_file_client(l->spec.file, l->found->as.issuer, registered_as(l))
            : NULL;
    struct err err;

    if (r && signin_file_drop(l->spec.file, r, &err))
        log_warn(alias_of(l), "%s", err.text);
}

static void on_late(struct timer *t)
{
    struct login *l = CONTAINER_OF(t, struct login, late);

    if (l->over)
        return;
    err_set(&l->err, ERR_PROTOCOL, "nobody signed in to server '%s' within %d minutes", alias_of(l),
            LOGIN_MS / 60000);
    err_hint(&l->err, "if the browser is on another machine, paste the address where it ended into "
                      "'rialto login'");
    forget_registration(l);
    fail(l);
}

/* --- the token --- */

static void put_if(struct signin_record *r, enum signin_text which, const char *text)
{
    signin_record_set(r, which, span_str(text));
}

static void keep_token(struct login *l, const struct oauth_token *token)
{
    const struct oauth_server *as = &l->found->as;
    struct signin_record r = {.since = time(NULL)};

    list_init(&r.node);
    put_if(&r, SIGNIN_SERVER, alias_of(l));
    put_if(&r, SIGNIN_URL, l->spec.settings->url);
    put_if(&r, SIGNIN_USER, l->spec.user);
    put_if(&r, SIGNIN_ISSUER, as->issuer);
    put_if(&r, SIGNIN_CLIENT, l->id.id);
    put_if(&r, SIGNIN_CLIENT_SECRET, l->id.secret);
    put_if(&r, SIGNIN_METHOD, oauth_method_name(l->id.method));
    put_if(&r, SIGNIN_RESOURCE, l->found->resource);
    put_if(&r, SIGNIN_TOKEN_ENDPOINT, as->token);
    put_if(&r, SIGNIN_REVOCATION, as->revocation);
    put_if(&r, SIGNIN_REDIRECT, registered_as(l));
    put_if(&r, SIGNIN_NEAR, l->found->reach.near ? "yes" : NULL);
    put_if(&r, SIGNIN_SCOPE, token->scope ? token->scope : l->scope);
    put_if(&r, SIGNIN_ASKED, l->scope);
    put_if(&r, SIGNIN_ACCESS, token->access);
    put_if(&r, SIGNIN_REFRESH, token->refresh);
    r.expires = token->expires_in < 0 ? 0 : r.since + token->expires_in;
    int code = signin_file_put(l->spec.file, &r, &l->err);
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        mem_free(r.texts[i]);
    if (code) {
        fail(l);
        return;
    }
    l->over = true;
    l->on->done(l->owner, NULL);
}

static bool is_error(const struct grant_answer *a, const char *code)
{
    return a->error.code && strcmp(a->error.code, code) == 0;
}

static void on_token(void *owner, const struct grant_answer *a)
{
    struct login *l = owner;

    l->grant = NULL;
    if (l->over)
        return;
    if (a->token) {
        keep_token(l, a->token);
        return;
    }
    bool pending = is_error(a, "authorization_pending"), slow = is_error(a, "slow_down");
    if (l->spec.device && (pending || slow || a->passing)) {
        l->device.interval += slow ? SLOW_DOWN_S : 0;
        l->timer.fire = on_timer;
        timer_set(loop_timers(l->loop), &l->timer, (uint64_t)l->device.interval * 1000);
        return;
    }
    l->err = a->err;
    if (is_error(a, "invalid_client"))
        forget_registration(l);
    if (is_error(a, "access_denied"))
        err_set(&l->err, ERR_PROTOCOL,
                "the sign-in to server '%s' was refused: by you, or by the provider", alias_of(l));
    if (is_error(a, "invalid_target"))
        err_hint(&l->err, "the authorization server does not know the resource '%.150s'",
                 l->found->resource);
    fail(l);
}

static void ask_for_token(struct login *l, struct buf *form)
{
    struct grant_spec spec = {.alias = alias_of(l),
                              .endpoint = l->found->as.token,
                              .ca = l->spec.settings->ca,
                              .reach = &l->found->reach,
                              .client = l->id};

    webform_put(form, "resource", span_str(l->found->resource));
    l->grant = grant_start(l->loop, l->client, &spec, form, on_token, l);
}

/* --- by a device code --- */

static void on_timer(struct timer *t)
{
    struct login *l = CONTAINER_OF(t, struct login, timer);
    struct buf form = {0};

    webform_put(&form, "grant_type", SPAN("urn:ietf:params:oauth:grant-type:device_code"));
    webform_put(&form, "device_code", span_str(l->device.device_code));
    ask_for_token(l, &form);
}

static void on_device(void *owner, const struct grant_answer *a)
{
    struct login *l = owner;

    l->grant = NULL;
    if (l->over)
        return;
    if (!a->ok) {
        l->err = a->err;
        fail(l);
        return;
    }
    if (oauth_read_device(&l->device, a->body, &l->arena, &l->err)) {
        fail(l);
        return;
    }
    log_add_secret(span_str(l->device.device_code));
    l->address = l->device.uri_complete ? l->device.uri_complete : l->device.uri;
    l->code = l->device.user_code;
    uint64_t left = (uint64_t)l->device.expires_in * 1000;
    if (left < LOGIN_MS)
        timer_set(loop_timers(l->loop), &l->late, left);
    l->timer.fire = on_timer;
    timer_set(loop_timers(l->loop), &l->timer, (uint64_t)l->device.interval * 1000);
    l->on->address(l->owner, l->address, l->code);
}

static void ask_for_device(struct login *l)
{
    struct grant_spec spec = {.alias = alias_of(l),
                              .endpoint = l->found->as.device,
                              .ca = l->spec.settings->ca,
                              .reach = &l->found->reach,
                              .client = l->id,
                              .plain = true};
    struct buf form = {0};

    if (!l->found->as.device) {
        err_set(&l->err, ERR_PROTOCOL, "the authorization server of '%s' knows no device codes",
                alias_of(l));
        err_hint(&l->err, "'rialto login %s --no-browser' takes a pasted address instead",
                 alias_of(l));
        fail(l);
        return;
    }
    if (l->scope)
        webform_put(&form, "scope", span_str(l->scope));
    webform_put(&form, "resource", span_str(l->found->resource));
    l->grant = grant_start(l->loop, l->client, &spec, &form, on_device, l);
}

/* --- by the browser --- */

static const char *random_text(struct login *l)
{
    unsigned char bytes[RANDOM_N];
    BUF_SCOPED text = {0};

    id_random_bytes(bytes, sizeof bytes);
    base64_put_url(&text, span_of((const char *)bytes, sizeof bytes));
    return arena_span(&l->arena, buf_view(&text)).p;
}

static void put_challenge(struct buf *url, const char *verifier)
{
    unsigned char digest[SHA256_N];
    BUF_SCOPED text = {0};

    sha_256(digest, span_str(verifier));
    base64_put_url(&text, span_of((const char *)digest, sizeof digest));
    webform_put(url, "code_challenge", buf_view(&text));
    webform_put(url, "code_challenge_method", SPAN("S256"));
}

static void show_address(struct login *l)
{
    const struct oauth_server *as = &l->found->as;
    BUF_SCOPED url = {0};

    l->state = random_text(l); /* no secret: it is in the address that people and agents see */
    l->verifier = random_text(l);
    log_add_secret(span_str(l->verifier));
    buf_str(&url, as->authorize);
    if (!strchr(as->authorize, '?'))
        buf_char(&url, '?');
    webform_put(&url, "response_type", SPAN("code"));
    webform_put(&url, "client_id", span_str(l->id.id));
    webform_put(&url, "redirect_uri", span_str(l->redirect_uri));
    put_challenge(&url, l->verifier);
    webform_put(&url, "state", span_str(l->state));
    webform_put(&url, "resource", span_str(l->found->resource));
    if (l->scope)
        webform_put(&url, "scope", span_str(l->scope));
    if (oauth_scope_has(l->scope, "offline_access"))
        webform_put(&url, "prompt", SPAN("consent"));
    l->address = l->authorize = arena_span(&l->arena, buf_view(&url)).p;
    if (l->spec.begin)
        begin_init(&l->begin, l->spec.begin);
    l->on->address(l->owner, login_address(l), NULL);
}

static bool may_browse(struct login *l)
{
    const struct oauth_server *as = &l->found->as;
    const char *lacks = !as->authorize  ? "has no 'authorization_endpoint'"
                        : !as->has_code ? "knows no authorization codes"
                        : !as->has_s256 ? "does not say that it knows PKCE with S256 "
                                          "(code_challenge_methods_supported)"
                                        : NULL;

    if (!lacks)
        return true;
    err_set(&l->err, ERR_PROTOCOL, "the authorization server '%.150s' of server '%s' %s",
            as->issuer, alias_of(l), lacks);
    fail(l);
    return false;
}

bool login_waits(const struct login *l)
{
    return l->state && !l->over && !l->grant;
}

struct begin *login_begin(struct login *l)
{
    return l->spec.begin && login_waits(l) ? &l->begin : NULL;
}

bool login_is_of(const struct login *l, struct span state)
{
    return login_waits(l) && span_eq_secret(state, span_str(l->state));
}

/* RFC 9207: the answer must be from the server that was asked. Checked before anything else in the
 * answer, which may be forged. */
static bool is_from_issuer(struct login *l, struct span iss)
{
    const struct oauth_server *as = &l->found->as;

    if (iss.p ? span_is(iss, as->issuer) : !as->says_iss)
        return true;
    err_set(&l->err, ERR_PROTOCOL,
            "the answer to the sign-in to server '%s' %s the authorization server '%.150s': it is "
            "not used",
            alias_of(l), iss.p ? "is not from" : "does not say that it is from", as->issuer);
    fail(l);
    return false;
}

/* The words of the authorization server, shortened, and with invisible characters made visible. */
static void say_refused(struct login *l, struct span error, struct span description)
{
    enum { WORDS_MAX = 200 };
    BUF_SCOPED words = {0};

    if (span_is(error, "access_denied")) {
        err_set(&l->err, ERR_PROTOCOL,
                "the sign-in to server '%s' was refused: by you, or by the provider", alias_of(l));
        return;
    }
    visible_put(&words, span_cut(error, 0, WORDS_MAX), 0);
    if (description.n) {
        buf_str(&words, ", ");
        visible_put(&words, span_cut(description, 0, WORDS_MAX), 0);
    }
    err_set(&l->err, ERR_PROTOCOL, "the sign-in to server '%s' was refused: %s", alias_of(l),
            buf_cstr(&words));
}

void login_come_back(struct login *l, struct span query)
{
    static const char *const names[] = {"code", "iss", "error", "error_description"};
    enum { CODE, ISS, ERROR, DESCRIPTION, N };
    struct span got[N];
    BUF_SCOPED scratch = {0};
    struct buf form = {0};

    if (webform_read(query, names, N, got, &scratch)) {
        err_set(&l->err, ERR_SYNTAX, "the answer to the sign-in to server '%s' is malformed",
                alias_of(l));
        fail(l);
        return;
    }
    if (!is_from_issuer(l, got[ISS]))
        return;
    if (!got[CODE].n) {
        say_refused(l, got[ERROR], got[DESCRIPTION]);
        fail(l);
        return;
    }
    log_add_secret(got[CODE]);
    webform_put(&form, "grant_type", SPAN("authorization_code"));
    webform_put(&form, "code", got[CODE]);
    webform_put(&form, "redirect_uri", span_str(l->redirect_uri));
    webform_put(&form, "code_verifier", span_str(l->verifier));
    ask_for_token(l, &form);
}

/* --- who we are --- */

static void go_to_person(struct login *l)
{
    if (l->spec.device)
        ask_for_device(l);
    else if (may_browse(l))
        show_address(l);
}

static void register_us(struct login *l);

static void take_registration(struct login *l, const struct oauth_client *c)
{
    struct signin_record r = {.expires = c->expires};
    int method = c->method >= 0 ? c->method : grant_choose_method(&l->found->as, c->secret, false);

    if (method < 0 || (method != OAUTH_NONE && !c->secret))
        method = OAUTH_NONE;
    l->id = (struct grant_client){
        .id = c->id, .secret = c->secret, .method = (enum oauth_method)method};
    list_init(&r.node);
    put_if(&r, SIGNIN_URL, registered_as(l));
    put_if(&r, SIGNIN_ISSUER, l->found->as.issuer);
    put_if(&r, SIGNIN_CLIENT, c->id);
    put_if(&r, SIGNIN_CLIENT_SECRET, c->secret);
    put_if(&r, SIGNIN_METHOD, oauth_method_name(l->id.method));
    int code = signin_file_put(l->spec.file, &r, &l->err);
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        mem_free(r.texts[i]);
    l->registered = true;
    if (code)
        fail(l);
    else
        go_to_person(l);
}

/* Some authorization servers accept only one of the two names of this machine: try the other. With
 * a page of ours (spec.begin) that cannot work: its cookie is sent only to the name of the page. */
static bool try_other_host(struct login *l, const struct oauth_error *e)
{
    static const char one[] = "http://127.0.0.1:";
    BUF_SCOPED uri = {0};

    if (l->spec.begin || l->other_host || !e->code ||
        strcmp(e->code, "invalid_redirect_uri") != 0 ||
        !span_starts(span_str(l->redirect_uri), SPAN("http://127.0.0.1:")))
        return false;
    l->other_host = true;
    buf_printf(&uri, "http://localhost:%s", l->redirect_uri + strlen(one));
    l->redirect_uri = arena_text(&l->arena, buf_cstr(&uri));
    register_us(l);
    return true;
}

static void on_registration(void *owner, const struct document_answer *a)
{
    struct login *l = owner;
    struct oauth_client c;
    struct oauth_error e;
    int status = a->head.status;

    l->registration = NULL;
    if (l->over)
        return;
    oauth_read_error(&e, a->body, &l->arena);
    if (!a->code && (status == 200 || status == 201)) {
        struct err why;
        if (!oauth_read_client(&c, a->body, &l->arena, &why)) {
            take_registration(l, &c);
            return;
        }
        err_set(&l->err, ERR_PROTOCOL, "server '%s': %s", alias_of(l), why.text);
    } else if (a->code) {
        err_set(&l->err, a->code, "server '%s': the authorization server did not answer: %s",
                alias_of(l), a->why);
    } else if (try_other_host(l, &e)) {
        return;
    } else {
        err_set(&l->err, ERR_PROTOCOL,
                "server '%s': the authorization server does not register us (HTTP %d%s%s%s%s)",
                alias_of(l), status, e.code ? ", " : "", e.code ? e.code : "",
                e.description ? ": " : "", e.description ? e.description : "");
    }
    err_hint(&l->err,
             "register a client there by hand, with the redirect address %.100s, and give "
             "its id in servers.%s.auth.client_id",
             l->redirect_uri, alias_of(l));
    fail(l);
}

static void put_metadata(struct buf *out, const struct login *l)
{
    unsigned methods = l->found->as.methods;
    enum oauth_method method = methods & 1u << OAUTH_NONE    ? OAUTH_NONE
                               : methods & 1u << OAUTH_BASIC ? OAUTH_BASIC
                               : methods & 1u << OAUTH_POST  ? OAUTH_POST
                                                             : OAUTH_NONE;

    buf_char(out, '{');
    client_metadata_put(out, l->redirect_uri, method, l->spec.device);
    buf_char(out, '}');
}

static void register_us(struct login *l)
{
    static const char *const headers[] = {"Content-Type: application/json",
                                          "Accept: application/json", NULL};
    struct buf body = {0};

    put_metadata(&body, l);
    struct document_spec spec = {
        .fetch = {.method = "POST",
                  .url = l->found->as.registration,
                  .headers = headers,
                  .body = &body,
                  .ca = l->spec.settings->ca,
                  .reach = &l->found->reach},
        .max = OAUTH_DOCUMENT_MAX,
        .timeout = DISCOVERY_TIMEOUT_MS,
    };
    l->registration = document_fetch(l->loop, l->client, &spec, on_registration, l);
}

static bool is_registered(struct login *l)
{
    const struct signin_record *r =
        signin_file_client(l->spec.file, l->found->as.issuer, registered_as(l));
    int method = OAUTH_NONE;

    if (!r || !r->texts[SIGNIN_CLIENT] ||
        (r->expires && r->expires < (int64_t)time(NULL) + SECRET_LEFT_S))
        return false;
    for (int m = 0; m < OAUTH_METHODS; m++)
        if (span_is(span_str(r->texts[SIGNIN_METHOD]), oauth_method_name((enum oauth_method)m)))
            method = m;
    l->id = (struct grant_client){.id = arena_text(&l->arena, r->texts[SIGNIN_CLIENT]),
                                  .secret = arena_text(&l->arena, r->texts[SIGNIN_CLIENT_SECRET]),
                                  .method = (enum oauth_method)method};
    l->registered = true;
    return true;
}

/* Our client id: configured, the address of our document, registered before, or registered now. */
static void find_identity(struct login *l)
{
    const struct signin_settings *s = l->spec.settings;
    const struct oauth_server *as = &l->found->as;

    if (s->client_id) {
        int method = grant_choose_method(as, s->client_secret, s->private_key);
        l->id = (struct grant_client){
            .id = s->client_id,
            .secret = s->client_secret,
            .method = method < 0 ? OAUTH_BASIC : (enum oauth_method)method,
            .private_key = s->private_key,
            .algs = as->algs,
            .audience = as->issuer,
        };
        go_to_person(l);
    } else if (s->client_metadata_url && as->takes_urls) {
        l->id = (struct grant_client){.id = s->client_metadata_url, .method = OAUTH_NONE};
        go_to_person(l);
    } else if (is_registered(l)) {
        go_to_person(l);
    } else if (as->registration) {
        register_us(l);
    } else {
        err_set(&l->err, ERR_PROTOCOL,
                "the authorization server '%.150s' of server '%s' registers nobody by itself",
                as->issuer, alias_of(l));
        err_hint(&l->err,
                 "register a client there, with the redirect address %.100s, and give its id in "
                 "servers.%s.auth.client_id",
                 l->redirect_uri, alias_of(l));
        fail(l);
    }
}

/* The configured scopes, else those that the server asks for; and those that calls lacked. */
static void find_scope(struct login *l)
{
    const struct signin_settings *s = l->spec.settings;
    BUF_SCOPED scope = {0};

    oauth_scope_join(&scope, s->scopes ? s->scopes : l->found->scopes);
    oauth_scope_join(&scope, l->wanted);
    if (l->found->as.offers_offline)
        oauth_scope_join(&scope, "offline_access");
    l->scope = scope.n ? arena_span(&l->arena, buf_view(&scope)).p : NULL;
}

static void on_discovered(void *owner, const struct discovered *found, const struct err *err,
                          bool passing)
{
    struct login *l = owner;

    (void)passing;
    if (l->over)
        return;
    if (!found) {
        l->err = *err;
        fail(l);
        return;
    }
    l->found = found;
    find_scope(l);
    find_identity(l);
}

/* --- life --- */

/* If calls lacked scopes: these, and those that the last sign-in asked for. */
static const char *wanted_scopes(struct login *l, const struct signin_record *r)
{
    BUF_SCOPED scope = {0};

    if (!r || !r->texts[SIGNIN_WANTED])
        return NULL;
    oauth_scope_join(&scope, r->texts[SIGNIN_ASKED]);
    oauth_scope_join(&scope, r->texts[SIGNIN_WANTED]);
    return arena_span(&l->arena, buf_view(&scope)).p;
}

struct login *login_start(struct loop *loop, struct http_client *client,
                          const struct login_spec *spec, const struct login_events *on, void *owner)
{
    struct login *l = MEM_NEW(struct login);
    const struct signin_settings *s = spec->settings;

    l->loop = loop;
    l->client = client;
    l->spec = *spec;
    l->spec.user = arena_text(&l->arena, spec->user);
    l->spec.begin = arena_text(&l->arena, spec->begin);
    l->redirect_uri = arena_text(&l->arena, spec->redirect_uri);
    l->on = on;
    l->owner = owner;
    l->late.fire = on_late;
    timer_set(loop_timers(loop), &l->late, LOGIN_MS);
    if (signin_file_read(spec->file, &l->err)) {
        fail(l);
        return l;
    }
    const struct signin_record *before = signin_file_find(spec->file, s->alias, s->url, spec->user);
    l->wanted = wanted_scopes(l, before);
    l->discovery = discovery_start(loop, client, s, before ? before->texts[SIGNIN_ISSUER] : NULL,
                                   on_discovered, l);
    return l;
}

void login_free(struct login *l)
{
    if (!l)
        return;
    timer_clear(loop_timers(l->loop), &l->timer);
    timer_clear(loop_timers(l->loop), &l->late);
    if (l->registration)
        document_cancel(l->registration);
    grant_cancel(l->grant);
    discovery_free(l->discovery);
    begin_fini(&l->begin);
    arena_fini(&l->arena);
    mem_free(l);
}

const struct login_spec *login_spec(const struct login *l)
{
    return &l->spec;
}

const char *login_authorize(const struct login *l)
{
    return l->authorize;
}

const char *login_address(const struct login *l)
{
    return l->begin.address.n ? l->begin.address.p : l->address;
}

const char *login_code(const struct login *l)
{
    return l->code;
}
