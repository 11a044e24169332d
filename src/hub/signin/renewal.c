/* New tokens without a person: by a refresh token, by client credentials, by assertions; and the
 * end of a sign-in. Called by signin.c. */
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/signin/grant.h"
#include "hub/signin/signin_inside.h"
#include "wire/webform.h"

#include <stdio.h>
#include <time.h>

enum {
    TURN_MS = 50, /* between two checks whether the other process is done */
    TURNS_MAX = 30 * 1000 / TURN_MS,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 60 * 1000,
    ASSERTION_MAX = 64 * 1024,
};

static const struct reach configured = {.everywhere = true, .near = true};

/* --- the end of a renewal --- */

static void on_tell_now(struct timer *t)
{
    struct identity *id = CONTAINER_OF(t, struct identity, tell_now);
    struct list told;
    struct http_signer_wait *w;

    id->renewing = false;
    list_init(&told);
    while ((w = LIST_FIRST(&id->waits, struct http_signer_wait, node))) {
        list_remove(&w->node);
        list_append(&told, &w->node);
    }
    while ((w = LIST_FIRST(&told, struct http_signer_wait, node))) {
        list_remove(&w->node);
        w->fire(w);
    }
}

/* The key of the record that is locked; the record need not be in the file. */
static struct signin_record key_of(const struct identity *id)
{
    return (struct signin_record){
        .texts = {[SIGNIN_SERVER] = (char *)(uintptr_t)id->settings->alias,
                  [SIGNIN_URL] = (char *)(uintptr_t)id->settings->url,
                  [SIGNIN_USER] = id->user}};
}

/* Is the record being renewed by another identity here: for another plan of the server? */
static bool is_claimed_here(const struct identity *id)
{
    LIST_EACH (&id->all->identities, it) {
        const struct identity *other = LIST_ENTRY(it, struct identity, node);
        if (other->claimed && identity_record(other) == identity_record(id))
            return true;
    }
    return false;
}

static bool claim(struct identity *id)
{
    struct signin_record key = key_of(id);

    if (is_claimed_here(id))
        return false; /* the lock of the file only keeps other processes out */
    id->claimed = signin_file_claim(id->all->file, &key);
    return id->claimed;
}

static void release(struct identity *id)
{
    struct signin_record key = key_of(id);

    if (id->claimed)
        signin_file_unclaim(id->all->file, &key);
    id->claimed = false;
}

/* What is exchanged for a token is hidden from the log, and kept only until the exchange is
 * over. */
static void set_proof(struct identity *id, struct span proof)
{
    if (proof.n)
        log_hold_secret(proof);
    if (id->proof) {
        log_release_secret(span_str(id->proof));
        explicit_bzero(id->proof, strlen(id->proof));
    }
    mem_free(id->proof);
    id->proof = proof.n ? mem_span(proof) : NULL;
}

static void finish(struct identity *id)
{
    release(id);
    set_proof(id, SPAN_EMPTY);
    discovery_free(id->discovery);
    id->discovery = NULL;
    timer_set(loop_timers(id->all->loop), &id->tell_now, 0);
}

static void fail(struct identity *id, const char *why)
{
    uint64_t wait = backoff_next(&id->backoff, id_random_u64());
    BUF_SCOPED clean = {0}; /* `why` may be shown when the proof is not hidden any more */

    log_redact(&clean, span_str(why));
    why = buf_cstr(&clean);
    snprintf(id->why, sizeof id->why, "%s", why);
    id->failed = true;
    id->not_before = loop_now(id->all->loop) + wait;
    log_warn(id->settings->alias, "no new token: %s", why);
    finish(id);
}

bool identity_may_renew(const struct identity *id)
{
    bool shown = id->caller && id->caller->tokens != id->exchanged; /* there is a newer token */

    return shown || loop_now(id->all->loop) >= id->not_before;
}

bool identity_is_renewing(const struct identity *id)
{
    return id->renewing;
}

static void use_token(struct identity *id, const struct oauth_token *token, bool renewable)
{
    int64_t now = time(NULL);

    backoff_reset(&id->backoff);
    id->not_before = 0;
    identity_set_token(id, token->access, now, token->expires_in < 0 ? 0 : now + token->expires_in,
                       renewable);
}

/* --- by a refresh token --- */

/* Writes the record of the identity again, with the tokens in `token`; NULL: without tokens. False:
 * somebody has logged out meanwhile, and there is no record. */
static bool write_tokens(struct identity *id, const struct oauth_token *token)
{
    struct signin_record r = {0};
    struct err err;

    if (signin_file_read(id->all->file, &err))
        log_warn(id->settings->alias, "%s", err.text);
    const struct signin_record *before = identity_record(id);
    if (!before)
        return false;
    char *spent = mem_str(before->texts[SIGNIN_REFRESH]);
    list_init(&r.node);
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        signin_record_set(&r, (enum signin_text)i, span_str(before->texts[i]));
    r.since = time(NULL);
    r.expires = token && token->expires_in >= 0 ? r.since + token->expires_in : 0;
    signin_record_set(&r, SIGNIN_ACCESS, span_str(token ? token->access : NULL));
    if (!token || token->refresh)
        signin_record_set(&r, SIGNIN_REFRESH, span_str(token ? token->refresh : NULL));
    if (token && token->scope)
        signin_record_set(&r, SIGNIN_SCOPE, span_str(token->scope));
    if (signin_file_put(id->all->file, &r, &err))
        log_error(id->settings->alias, "the new token is lost when this program ends: %s",
                  err.text);
    if (!r.texts[SIGNIN_REFRESH] || (spent && strcmp(spent, r.texts[SIGNIN_REFRESH]) != 0))
        log_drop_secret(span_str(spent));
    mem_free(spent);
    for (int i = 0; i < SIGNIN_TEXTS; i++)
        mem_free(r.texts[i]);
    return true;
}

static bool is_one_of(const char *code, const char *const *codes, size_t n)
{
    for (size_t i = 0; code && i < n; i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

/* The authorization server does not know us any more: the next login registers us again. */
static void drop_registration(struct identity *id)
{
    const struct signin_record *r = identity_record(id);
    const struct signin_record *client =
        r ? signin_file_client(id->all->file, r->texts[SIGNIN_ISSUER], r->texts[SIGNIN_REDIRECT])
          : NULL;
    struct err err;

    if (client && signin_file_drop(id->all->file, client, &err))
        log_warn(id->settings->alias, "%s", err.text);
}

static void on_refreshed(void *owner, const struct grant_answer *a)
{
    static const char *const over[] = {"invalid_grant", "invalid_client", "unauthorized_client"};
    struct identity *id = owner;

    id->grant = NULL;
    if (a->token) {
        /* The file first: a crash must not leave the old token in it. */
        if (write_tokens(id, a->token))
            use_token(id, a->token, true);
        else
            identity_set_token(id, NULL, 0, 0, false);
        finish(id);
        return;
    }
    if (a->passing || !is_one_of(a->error.code, over, COUNT_OF(over))) {
        fail(id, a->err.text);
        return;
    }
    if (strcmp(a->error.code, over[0]) != 0)
        drop_registration(id);
    (void)write_tokens(id, NULL);
    identity_set_token(id, NULL, 0, 0, false);
    snprintf(id->why, sizeof id->why, "the last one was ended by the authorization server ('%s')",
             a->error.code);
    finish(id);
}

static struct grant_client client_of(const struct identity *id, const struct signin_record *r)
{
    const struct signin_settings *s = id->settings;
    int method = OAUTH_NONE;

    for (int m = 0; m < OAUTH_METHODS; m++)
        if (span_is(span_str(r->texts[SIGNIN_METHOD]), oauth_method_name((enum oauth_method)m)))
            method = m;
    return (struct grant_client){.id = r->texts[SIGNIN_CLIENT],
                                 .secret = r->texts[SIGNIN_CLIENT_SECRET],
                                 .method = (enum oauth_method)method,
                                 .private_key = s->private_key,
                                 .audience = r->texts[SIGNIN_ISSUER]};
}

static void refresh(struct identity *id, const struct signin_record *r)
{
    struct buf form = {0};

    id->reach = (struct reach){.everywhere = true, .near = r->texts[SIGNIN_NEAR] != NULL};
    webform_put(&form, "grant_type", SPAN("refresh_token"));
    webform_put(&form, "refresh_token", span_str(r->texts[SIGNIN_REFRESH]));
    webform_put(&form, "resource", span_str(r->texts[SIGNIN_RESOURCE]));
    if (r->texts[SIGNIN_SCOPE])
        webform_put(&form, "scope", span_str(r->texts[SIGNIN_SCOPE]));
    id->grant = grant_start(id->all->loop, id->all->client,
                            &(struct grant_spec){.alias = id->settings->alias,
                                                 .endpoint = r->texts[SIGNIN_TOKEN_ENDPOINT],
                                                 .ca = id->settings->ca,
                                                 .reach = &id->reach,
                                                 .client = client_of(id, r)},
                            &form, on_refreshed, id);
}

/* Has another process put another token into the file? Then the identity uses that token now. */
static bool was_replaced(struct identity *id)
{
    uint64_t before = id->number;

    id->expires = id->expires ? id->expires : 1;
    identity_load(id);
    return id->number != before;
}

static void take_turn(struct identity *id)
{
    const struct signin_record *r;

    if (was_replaced(id) || !(r = identity_record(id)) || !r->texts[SIGNIN_REFRESH]) {
        finish(id);
    } else if (!claim(id)) {
        if (id->turns++ < TURNS_MAX)
            timer_set(loop_timers(id->all->loop), &id->turn, TURN_MS);
        else
            fail(id, "another program has been renewing the token for too long");
    } else if (was_replaced(id) || !(r = identity_record(id))) {
        finish(id); /* the other process was done just before we got the lock */
    } else {
        refresh(id, r);
    }
}

static void on_turn(struct timer *t)
{
    take_turn(CONTAINER_OF(t, struct identity, turn));
}

/* --- without any person --- */

static void on_granted(void *owner, const struct grant_answer *a)
{
    struct identity *id = owner;

    id->grant = NULL;
    if (!a->token) {
        fail(id, a->err.text);
        return;
    }
    use_token(id, a->token, true);
    finish(id);
}

static const char *scope_of(const struct identity *id)
{
    return id->settings->scopes ? id->settings->scopes : id->found->scopes;
}

static void put_target(struct buf *form, const struct identity *id)
{
    webform_put(form, "resource", span_str(id->found->resource));
    if (scope_of(id))
        webform_put(form, "scope", span_str(scope_of(id)));
}

/* Asks the server's own authorization server for a token, and shows it who we are. */
static void ask(struct identity *id, struct buf *form)
{
    const struct signin_settings *s = id->settings;
    const struct oauth_server *as = &id->found->as;
    int method = grant_choose_method(as, s->client_secret, s->private_key);

    put_target(form, id);
    id->grant =
        grant_start(id->all->loop, id->all->client,
                    &(struct grant_spec){
                        .alias = s->alias,
                        .endpoint = as->token,
                        .ca = s->ca,
                        .reach = &id->found->reach,
                        .client = {.id = s->client_id,
                                   .secret = s->client_secret,
                                   .method = method < 0 ? OAUTH_BASIC : (enum oauth_method)method,
                                   .private_key = s->private_key,
                                   .algs = as->algs,
                                   .audience = as->issuer}},
                    form, on_granted, id);
}

static void ask_with_proof(struct identity *id)
{
    struct buf form = {0};

    webform_put(&form, "grant_type", SPAN("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    webform_put(&form, "assertion", span_str(id->proof));
    ask(id, &form);
}

/* `setting` is a JWT, or the path of a file with a JWT. The file is read each time, because
 * platforms renew it. */
static bool read_proof(struct identity *id, const char *setting)
{
    BUF_SCOPED text = {0}, why = {0};
    int code = 0;

    if (setting[0] == '/')
        code = file_read(&text, setting, ASSERTION_MAX);
    else
        buf_str(&text, setting);
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    set_proof(id, buf_view(&text));
    if (!code && text.n)
        return true;
    buf_printf(&why, "cannot read the assertion in %s: %s", setting,
               code ? err_name(code) : "it is empty");
    fail(id, buf_cstr(&why));
    return false;
}

/* The identity provider has vouched for the caller: its assertion goes to the server's own
 * authorization server. */
static void on_exchanged(void *owner, const struct grant_answer *a)
{
    struct identity *id = owner;

    id->grant = NULL;
    if (!a->token) {
        fail(id, a->err.text);
        return;
    }
    set_proof(id, span_str(a->token->access));
    ask_with_proof(id);
}

/* Finds the token that tells the identity provider for whom we ask: the configured one, or the
 * caller's own. The caller's token goes only to the provider that issued it. */
static bool find_proof(struct identity *id)
{
    const struct signin_settings *s = id->settings;
    const struct principal *caller = id->caller;
    BUF_SCOPED why = {0};

    if (!s->per_user)
        return read_proof(id, s->idp_subject_token);
    id->exchanged = caller ? caller->tokens : 0;
    if (caller && caller->token.n && span_is(caller->issuer, s->idp_issuer)) {
        set_proof(id, caller->token);
        return true;
    }
    buf_printf(&why,
               "the caller's own is exchanged for it, and must be an access token of '%.80s': "
               "connect with one",
               s->idp_issuer);
    fail(id, buf_cstr(&why));
    return false;
}

#define TOKEN_TYPE "urn:ietf:params:oauth:token-type:"

/* RFC 8693: the identity provider is asked for the server's token itself, or for an assertion that
 * the server's own authorization server takes (ID-JAG). */
static void exchange(struct identity *id)
{
    const struct signin_settings *s = id->settings;
    bool jag = s->grant == GRANT_ID_JAG;
    struct buf form = {0};

    if (!find_proof(id))
        return;
    webform_put(&form, "grant_type", SPAN("urn:ietf:params:oauth:grant-type:token-exchange"));
    webform_put(&form, "requested_token_type",
                jag ? SPAN(TOKEN_TYPE "id-jag") : SPAN(TOKEN_TYPE "access_token"));
    if (jag)
        webform_put(&form, "audience", span_str(id->found->as.issuer));
    webform_put(&form, "subject_token", span_str(id->proof));
    webform_put(&form, "subject_token_type",
                s->per_user ? SPAN(TOKEN_TYPE "access_token") : SPAN(TOKEN_TYPE "id_token"));
    put_target(&form, id);
    id->grant = grant_start(
        id->all->loop, id->all->client,
        &(struct grant_spec){.alias = s->alias,
                             .endpoint = s->idp_token_endpoint,
                             .ca = s->ca,
                             .reach = &configured,
                             .client = {.id = s->idp_client_id,
                                        .secret = s->idp_client_secret,
                                        .method = s->idp_client_secret ? OAUTH_BASIC : OAUTH_NONE},
                             .is_exchange = jag},
        &form, jag ? on_exchanged : on_granted, id);
}

static void on_discovered(void *owner, const struct discovered *found, const struct err *err,
                          bool passing)
{
    struct identity *id = owner;
    const struct signin_settings *s = id->settings;
    struct buf form = {0};

    (void)passing;
    if (!found) {
        fail(id, err->text);
        return;
    }
    id->found = found;
    if (s->grant == GRANT_CLIENT_CREDENTIALS) {
        webform_put(&form, "grant_type", SPAN("client_credentials"));
        ask(id, &form);
    } else if (s->grant == GRANT_JWT_BEARER) {
        if (read_proof(id, s->assertion))
            ask_with_proof(id);
    } else {
        exchange(id);
    }
}

void identity_renew(struct identity *id)
{
    if (id->renewing)
        return;
    id->renewing = true;
    id->turns = 0;
    if (identity_wants_person(id))
        take_turn(id);
    else
        id->discovery =
            discovery_start(id->all->loop, id->all->client, id->settings, NULL, on_discovered, id);
}

/* --- scopes --- */

bool identity_note_scope(struct identity *id, const char *scope)
{
    const struct signin_record *r = signin_store(id->all) ? identity_record(id) : NULL;
    struct signin_record changed;
    BUF_SCOPED wanted = {0};
    struct err err;

    if (!r || oauth_scope_has(r->texts[SIGNIN_ASKED], scope))
        return !r;
    oauth_scope_join(&wanted, r->texts[SIGNIN_WANTED]);
    oauth_scope_join(&wanted, scope);
    changed = *r;
    changed.texts[SIGNIN_WANTED] = (char *)(uintptr_t)buf_cstr(&wanted);
    if (!oauth_scope_has(r->texts[SIGNIN_WANTED], scope) &&
        signin_file_put(id->all->file, &changed, &err))
        log_warn(id->settings->alias, "%s", err.text);
    return true;
}

/* --- logging out --- */

static void on_revoked(void *owner, const struct grant_answer *a)
{
    struct identity *id = owner;
    struct err warning = a->err;

    id->grant = NULL;
    warning.code = 0; /* see identity_logout */
    id->logged_out(id->logged_out_arg, a->ok ? NULL : &warning);
    identity_drop(id);
}

static bool revoke(struct identity *id, const struct signin_record *r)
{
    const char *token =
        r->texts[SIGNIN_REFRESH] ? r->texts[SIGNIN_REFRESH] : r->texts[SIGNIN_ACCESS];
    struct buf form = {0};

    if (!r->texts[SIGNIN_REVOCATION] || !token || id->grant)
        return false;
    id->reach = (struct reach){.everywhere = true, .near = r->texts[SIGNIN_NEAR] != NULL};
    webform_put(&form, "token", span_str(token));
    webform_put(&form, "token_type_hint",
                r->texts[SIGNIN_REFRESH] ? SPAN("refresh_token") : SPAN("access_token"));
    id->grant = grant_start(id->all->loop, id->all->client,
                            &(struct grant_spec){.alias = id->settings->alias,
                                                 .endpoint = r->texts[SIGNIN_REVOCATION],
                                                 .ca = id->settings->ca,
                                                 .reach = &id->reach,
                                                 .client = client_of(id, r),
                                                 .plain = true},
                            &form, on_revoked, id);
    return true;
}

/* The answer to a renewal that is under way would sign us in again. */
static void stop_renewal(struct identity *id)
{
    if (!id->renewing)
        return;
    grant_cancel(id->grant);
    id->grant = NULL;
    timer_clear(loop_timers(id->all->loop), &id->turn);
    finish(id);
}

void identity_logout(struct identity *id, void (*done)(void *arg, const struct err *err), void *arg)
{
    struct err err = {0};
    const struct signin_record *r = NULL;

    id->logged_in = false;
    stop_renewal(id);
    int code = signin_store(id->all) ? signin_file_read(id->all->file, &err) : 0;
    if (!code && id->all->file)
        r = identity_record(id);
    bool revoking = r && revoke(id, r);
    if (r && (code = signin_file_drop(id->all->file, r, &err)) && revoking) {
        grant_cancel(id->grant); /* another logout can still do that */
        id->grant = NULL;
        revoking = false;
    }
    if (revoking) {
        id->holders++; /* until the answer */
        id->logged_out = done;
        id->logged_out_arg = arg;
    }
    identity_set_token(id, NULL, 0, 0, false);
    identity_tell_changed(id);
    signin_load_all(id->all); /* other plans of the server have identities with the same record */
    if (!revoking)
        done(arg, code ? &err : NULL);
}

/* --- life --- */

void identity_init_renewal(struct identity *id)
{
    id->turn.fire = on_turn;
    id->tell_now.fire = on_tell_now;
    id->backoff = (struct backoff){.first = BACKOFF_MS, .max = BACKOFF_MAX_MS};
}

void identity_end_renewal(struct identity *id)
{
    timer_clear(loop_timers(id->all->loop), &id->turn);
    timer_clear(loop_timers(id->all->loop), &id->tell_now);
    release(id);
    set_proof(id, SPAN_EMPTY);
    grant_cancel(id->grant);
    discovery_free(id->discovery);
}
