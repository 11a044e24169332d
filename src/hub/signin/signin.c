/* Identities at servers: their tokens, logins that people are asked for, and what other programs
 * write into signin.json. Called by hub/graph/instance.c, signin_tool.c, hub/hub.c, admin/ and
 * cmd/login.c. */
#include "hub/signin/signin.h"

#include "base/log.h"
#include "base/mem.h"
#include "hub/signin/callback.h"
#include "hub/signin/signin_inside.h"
#include "io/watch.h"
#include "wire/challenge.h"
#include "wire/webform.h"

#include <stdio.h>
#include <time.h>

enum {
    YOUNG_S = 30,    /* a token that is refused before this age is invalid, not too old */
    MARGIN_S = 60,   /* a token is renewed this long before it ends, */
    MARGIN_PART = 5, /* but not before the last fifth of its life */
    LOGINS_MAX = 256 /* under way at the same time: there may be many callers */
};

/* --- tokens --- */

void identity_tell_changed(struct identity *id)
{
    LIST_EACH_SAFE (&id->watches, it) {
        struct identity_watch *w = LIST_ENTRY(it, struct identity_watch, node);
        w->changed(w);
    }
}

void identity_set_token(struct identity *id, const char *token, int64_t since, int64_t expires,
                        bool renewable)
{
    char *before = id->token;

    id->token = mem_str(token);
    if (!span_eq(span_str(before), span_str(token))) {
        id->number++;
        /* Answers to requests with the last token may still come: it is hidden in the log until the
         * next change. */
        log_hold_secret(span_str(token));
        log_release_secret(span_str(id->previous));
        log_drop_secret(span_str(id->previous)); /* the file of tokens had it */
        mem_free(id->previous);
        id->previous = before;
    } else {
        mem_free(before);
    }
    id->since = since;
    id->expires = expires;
    id->renewable = renewable;
    id->failed = false;
    if (token)
        id->why[0] = '\0';
}

const struct signin_record *identity_record(const struct identity *id)
{
    const struct signin_settings *s = id->settings;

    return signin_file_find(id->all->file, s->alias, s->url, id->user);
}

/* Takes the token that the file has now. */
void identity_load(struct identity *id)
{
    struct err err;

    id->loaded = true;
    if (!identity_wants_person(id) || !signin_store(id->all))
        return;
    if (signin_file_read(id->all->file, &err)) {
        snprintf(id->why, sizeof id->why, "%.250s", err.text);
        log_warn(id->settings->alias, "%s", err.text);
        return;
    }
    const struct signin_record *r = identity_record(id);
    const char *token = r ? r->texts[SIGNIN_ACCESS] : NULL;
    if (token && id->dead && strcmp(token, id->dead) == 0)
        token = NULL;
    if (span_eq(span_str(token), span_str(id->token)))
        return;
    identity_set_token(id, token, r ? r->since : 0, r ? r->expires : 0,
                       r && r->texts[SIGNIN_REFRESH]);
}

/* The server refuses the token: it is not used again, even if the file still has it. */
static void bury_token(struct identity *id)
{
    mem_free(id->dead);
    id->dead = mem_str(id->token);
    identity_set_token(id, NULL, 0, 0, false);
}

static int64_t margin_of(const struct identity *id)
{
    int64_t part = (id->expires - id->since) / MARGIN_PART;

    return part < MARGIN_S ? part : MARGIN_S;
}

static bool is_ending(const struct identity *id)
{
    return id->expires && (int64_t)time(NULL) >= id->expires - margin_of(id);
}

/* In the second half of its life a token may have ended already by the server's clock. */
static bool is_young(const struct identity *id)
{
    int64_t age = (int64_t)time(NULL) - id->since;

    return age < YOUNG_S && (!id->expires || 2 * age < id->expires - id->since);
}

/* --- what other programs do --- */

void signin_load_all(void *arg)
{
    const struct signin *s = arg;

    LIST_EACH_SAFE (&s->identities, it) {
        struct identity *id = LIST_ENTRY(it, struct identity, node);
        bool before = id->token;
        identity_load(id);
        if (!before != !id->token)
            identity_tell_changed(id);
    }
}

static void follow_file(struct signin *s)
{
    if (s->watch || !signin_store(s))
        return;
    s->watch = watch_open(s->loop, signin_file_path(s->file), signin_load_all, s);
    watch_events_only(s->watch);
}

/* --- the signer --- */

static struct identity *of_signer(struct http_signer *s)
{
    return CONTAINER_OF(s, struct identity, signer);
}

static const char *signer_token(struct http_signer *s, uint64_t *number)
{
    struct identity *id = of_signer(s);

    if (!id->loaded)
        identity_load(id);
    *number = id->number;
    return id->token;
}

static bool signer_ready(struct http_signer *s, struct http_signer_wait *w)
{
    struct identity *id = of_signer(s);
    bool machine = !identity_wants_person(id);

    if (!id->loaded)
        identity_load(id);
    bool wants = id->token ? is_ending(id) && id->renewable : machine && !id->failed;
    if (!identity_is_renewing(id) && (!wants || !identity_may_renew(id)))
        return true;
    identity_renew(id);
    list_remove(&w->node);
    list_append(&id->waits, &w->node);
    return false;
}

static void put_command(struct buf *why, const struct identity *id)
{
    buf_printf(why, "rialto login %s", id->settings->alias);
}

/* 403: the token is valid, but does not cover this call. The next login asks for the missing
 * scope. */
static enum http_signed lacks_scope(struct identity *id, const struct http_refusal *r,
                                    struct buf *why)
{
    BUF_SCOPED scratch = {0};
    struct challenge c;

    if (!challenge_read(r->challenge, &c, &scratch) || !span_is(c.error, "insufficient_scope"))
        return HTTP_SIGNED_NOT;
    char *scope = oauth_is_scope(c.scope) ? mem_span(c.scope) : NULL;
    buf_printf(why, "it needs %s%s%s that we do not have", scope ? "the scope '" : "a scope",
               scope ? scope : "", scope ? "'" : "");
    if (!identity_wants_person(id)) {
        buf_printf(why, ": see servers.%s.auth.scopes", id->settings->alias);
    } else if (scope && identity_note_scope(id, scope)) {
        buf_str(why, ": sign in again with ");
        put_command(why, id);
    } else {
        buf_str(why, ", although it was asked for at the last sign-in");
    }
    mem_free(scope);
    return HTTP_SIGNED_NOT;
}

/* There is no token, and we cannot get another: without a person, or for the moment. */
static enum http_signed give_up(struct identity *id, struct buf *why)
{
    id->failed = false; /* the next request tries again */
    if (!identity_wants_person(id) || id->token) {
        buf_printf(why, "there is no token for it: %s",
                   id->why[0] ? id->why : "it refuses the one that it was given");
        return HTTP_SIGNED_LATER;
    }
    buf_printf(why, "needs a sign-in%s%s: ", id->why[0] ? ", " : "", id->why);
    put_command(why, id);
    follow_file(id->all);
    return HTTP_SIGNED_OUT;
}

static enum http_signed signer_refused(struct http_signer *s, const struct http_refusal *r,
                                       struct buf *why)
{
    struct identity *id = of_signer(s);
    bool machine = !identity_wants_person(id);

    if (r->status == 403)
        return lacks_scope(id, r, why);
    if (r->number != id->number || !id->token)
        identity_load(id);
    if (id->token && r->number != id->number)
        return HTTP_SIGNED_AGAIN; /* there is a newer one already */
    if (!id->token)
        return machine && !id->failed && identity_may_renew(id) ? HTTP_SIGNED_AGAIN
                                                                : give_up(id, why);
    bool young = is_young(id);
    if (!young && id->renewable) {
        id->expires = 1; /* counts as expired, whatever its lifetime was */
        return identity_may_renew(id) ? HTTP_SIGNED_AGAIN : give_up(id, why);
    }
    if (r->beside) { /* the address of a file may need another token, while calls go on */
        buf_str(why, "the server refuses its token for this address");
        return HTTP_SIGNED_NOT;
    }
    snprintf(id->why, sizeof id->why, "%s",
             young ? "the server refuses the token that it was just given"
                   : "the last one has ended");
    bury_token(id);
    return give_up(id, why);
}

/* --- logins --- */

static void end_login(struct identity *id)
{
    login_free(id->login);
    id->login = NULL;
    if (id->callback)
        callback_close(id->callback);
    id->callback = NULL;
}

static void on_login_address(void *owner, const char *url, const char *code)
{
    struct identity *id = owner;

    LIST_EACH_SAFE (&id->logins, it) {
        struct identity_wait *w = LIST_ENTRY(it, struct identity_wait, node);
        w->address(w, url, code);
    }
}

static void tell_logins(struct identity *id, const struct err *err)
{
    struct identity_wait *w;

    while ((w = LIST_FIRST(&id->logins, struct identity_wait, node))) {
        list_remove(&w->node);
        w->done(w, err);
    }
}

static void on_login_done(void *owner, const struct err *err)
{
    struct identity *id = owner;
    struct err why = err ? *err : (struct err){0};

    if (!err) {
        mem_free(id->dead);
        id->dead = NULL;
        identity_load(id);
        log_info(id->settings->alias, "somebody has signed in");
    } else {
        log_warn(id->settings->alias, "%s", why.text);
    }
    id->last = why;
    id->logged_in = !err;
    if (!err)
        identity_tell_changed(id); /* first: it starts the server, which the calls then wait for */
    tell_logins(id, err ? &why : NULL);
    end_login(id); /* after the page in the browser has got its answer */
}

static const struct login_events login_events = {on_login_address, on_login_done};

/* Tells the address to those who joined the login when the address was known already. */
static void on_tell(struct timer *t)
{
    struct identity *id = CONTAINER_OF(t, struct identity, tell);

    if (id->login && login_address(id->login))
        on_login_address(id, login_address(id->login), login_code(id->login));
}

static void on_refuse(struct timer *t)
{
    struct identity *id = CONTAINER_OF(t, struct identity, refuse);

    on_login_done(id, &id->refusal);
}

static bool are_too_many(const struct signin *s)
{
    size_t n = 0;

    LIST_EACH (&s->identities, it)
        n += LIST_ENTRY(it, struct identity, node)->login != NULL;
    return n >= LOGINS_MAX;
}

/* Can a login begin? *redirect is where the browser is to come back to; id->refusal says why
 * not. */
static bool may_begin(struct identity *id, const char **redirect)
{
    struct signin *s = id->all;
    struct err *err = &id->refusal;

    if (!signin_store(s)) {
        err_set(err, ERR_CONFIG,
                "there is no state folder to keep tokens in: set HOME or "
                "XDG_STATE_HOME");
        return false;
    }
    if (are_too_many(s)) {
        err_set(err, ERR_SIZE, "%d sign-ins are under way: try again in some minutes", LOGINS_MAX);
        return false;
    }
    if (!s->redirect)
        id->callback = callback_new(s, s->config, err);
    *redirect = id->callback ? callback_uri(id->callback) : s->redirect;
    return *redirect != NULL;
}

static void begin_login(struct identity *id, bool device)
{
    struct signin *s = id->all;
    const char *redirect;

    if (!may_begin(id, &redirect)) {
        timer_set(loop_timers(s->loop), &id->refuse, 0);
        return;
    }
    id->login = login_start(
        s->loop, s->client,
        &(struct login_spec){.settings = id->settings,
                             .file = s->file,
                             .user = id->user,
                             .redirect_uri = redirect,
                             .begin = s->begin,
                             .device = device || id->settings->grant == GRANT_DEVICE_CODE},
        &login_events, id);
}

void identity_login(struct identity *id, bool device, struct identity_wait *w)
{
    struct timers *timers = loop_timers(id->all->loop);

    list_append(&id->logins, &w->node);
    if (!identity_wants_person(id)) {
        err_set(&id->refusal, ERR_CONFIG,
                "there is no sign-in to server '%s': it gets its tokens by auth.grant",
                id->settings->alias);
        timer_set(timers, &id->refuse, 0);
    } else if (!id->login) {
        begin_login(id, device);
    } else if (login_address(id->login)) {
        if (login_begin(id->login))
            begin_renew(login_begin(id->login)); /* a new address, if the last one was used */
        timer_set(timers, &id->tell, 0);
    }
}

enum login_state identity_login_state(struct identity *id, const struct err **err)
{
    *err = &id->last;
    if (id->login || timer_is_set(&id->refuse))
        return LOGIN_WAITS;
    if (id->last.text[0])
        return LOGIN_FAILED;
    return id->logged_in || identity_is_signed_in(id) ? LOGIN_DONE : LOGIN_NONE;
}

void identity_join(struct identity *id, struct identity_wait *w)
{
    list_append(&id->logins, &w->node);
}

void identity_leave(struct identity_wait *w)
{
    if (w->node.next)
        list_remove(&w->node);
}

struct login *signin_find_begin(const struct signin *s, struct span id)
{
    LIST_EACH (&s->identities, it) {
        struct login *l = LIST_ENTRY(it, struct identity, node)->login;
        if (l && login_begin(l) && begin_is(login_begin(l), id))
            return l;
    }
    return NULL;
}

struct login *identity_waiting(const struct identity *id)
{
    return id->login;
}

struct identity *signin_find_back(const struct signin *s, struct span query)
{
    static const char *const names[] = {"state"};
    BUF_SCOPED scratch = {0};
    struct span state;

    if (webform_read(query, names, 1, &state, &scratch) || !state.n)
        return NULL;
    LIST_EACH (&s->identities, it) {
        struct identity *id = LIST_ENTRY(it, struct identity, node);
        if (id->login && login_is_of(id->login, state))
            return id;
    }
    return NULL;
}

bool identity_paste(struct identity *id, struct span text)
{
    struct span query = span_from(text, span_find(text, '?') + 1);
    BUF_SCOPED form = {0};

    if (query.n ? signin_find_back(id->all, query) != id
                : !id->login || !login_waits(id->login) || !text.n)
        return false;
    if (!query.n)
        webform_put(&form, "code", text);
    login_come_back(id->login, query.n ? query : buf_view(&form));
    return true;
}

/* --- identities --- */

struct http_signer *identity_signer(struct identity *id)
{
    return &id->signer;
}

bool identity_wants_person(const struct identity *id)
{
    return id->settings->grant == GRANT_AUTHORIZATION_CODE ||
           id->settings->grant == GRANT_DEVICE_CODE;
}

bool identity_is_signed_in(struct identity *id)
{
    if (!id->loaded)
        identity_load(id);
    return id->token != NULL;
}

void identity_watch(struct identity *id, struct identity_watch *w)
{
    list_append(&id->watches, &w->node);
}

/* A sign-in by a person belongs to the user's name; a token in exchange for the caller's own
 * belongs to that one principal. */
static bool is_of(const struct identity *id, const struct signin_settings *settings,
                  const struct principal *caller)
{
    return strcmp(id->settings->alias, settings->alias) == 0 &&
           strcmp(id->settings->url, settings->url) == 0 &&
           span_eq(span_str(id->user), span_str(principal_name(caller))) &&
           (identity_wants_person(id) || id->caller == caller);
}

struct identity *signin_find(const struct signin *s, const struct server_plan *plan)
{
    LIST_EACH (&s->identities, it) {
        struct identity *id = LIST_ENTRY(it, struct identity, node);
        if (id->plan == plan && !id->user)
            return id;
    }
    return NULL;
}

struct identity *identity_hold(struct signin *s, struct server_plan *plan, struct principal *caller)
{
    static const struct http_signer table = {signer_token, signer_ready, signer_refused};
    const struct signin_settings *settings = server_signin(plan);

    if (!settings->per_user)
        caller = NULL;
    LIST_EACH (&s->identities, it) {
        struct identity *id = LIST_ENTRY(it, struct identity, node);
        if (id->plan == plan && is_of(id, settings, caller)) {
            id->holders++;
            return id;
        }
    }
    if (!s->client)
        s->client = http_client_new(s->loop); /* only now: it loads a library that few need */
    struct identity *id = MEM_NEW(struct identity);
    id->all = s;
    id->holders = 1;
    id->signer = table;
    id->plan = server_plan_hold(plan);
    id->settings = settings;
    id->caller = principal_hold(caller);
    id->user = mem_str(principal_name(caller));
    id->tell.fire = on_tell;
    id->refuse.fire = on_refuse;
    list_init(&id->waits);
    list_init(&id->logins);
    list_init(&id->watches);
    identity_init_renewal(id);
    list_append(&s->identities, &id->node);
    return id;
}

/* Nobody can sign in here any more. */
static void tell_gone(struct identity *id)
{
    struct err err = {0};

    err_set(&err, ERR_CONFIG, "the server was taken out of the configuration or replaced");
    tell_logins(id, &err);
}

void identity_drop(struct identity *id)
{
    struct timers *timers = loop_timers(id->all->loop);

    if (--id->holders)
        return;
    tell_gone(id);
    end_login(id);
    identity_end_renewal(id);
    timer_clear(timers, &id->tell);
    timer_clear(timers, &id->refuse);
    list_remove(&id->node);
    LIST_EACH_SAFE (&id->waits, it)
        list_remove(it);
    LIST_EACH_SAFE (&id->watches, it)
        list_remove(it);
    server_plan_drop(id->plan);
    principal_release(id->caller);
    log_release_secret(span_str(id->token)); /* a person's tokens stay in the file, and hidden */
    log_release_secret(span_str(id->previous));
    mem_free(id->token);
    mem_free(id->previous);
    mem_free(id->dead);
    mem_free(id->user);
    mem_free(id);
}

/* --- all of them --- */

struct signin *signin_new(struct loop *loop, const struct config *c)
{
    struct signin *s = MEM_NEW(struct signin);

    s->loop = loop;
    s->config = c;
    list_init(&s->identities);
    list_init(&s->callbacks);
    return s;
}

struct loop *signin_loop(const struct signin *s)
{
    return s->loop;
}

bool signin_is_busy(const struct signin *s)
{
    return !list_empty(&s->callbacks);
}

struct list *signin_callbacks(struct signin *s)
{
    return &s->callbacks;
}

void signin_free(struct signin *s)
{
    LIST_EACH_SAFE (&s->callbacks, it)
        list_remove(it); /* they end by themselves */
    if (s->watch)
        watch_close(s->watch);
    http_client_free(s->client);
    signin_file_free(s->file);
    mem_free(s->redirect);
    mem_free(s->begin);
    mem_free(s);
}

void signin_set_redirect(struct signin *s, const char *uri, const char *begin)
{
    mem_free(s->redirect);
    mem_free(s->begin);
    s->redirect = mem_str(uri);
    s->begin = mem_str(begin);
}

const char *signin_redirect(const struct signin *s)
{
    return s->redirect;
}

/* Opened when it is first needed: looking up its key may take time. */
struct signin_file *signin_store(struct signin *s)
{
    BUF_SCOPED key = {0};

    if (s->file || s->no_file)
        return s->file;
    struct secrets *secrets = secrets_new(s->config);
    secrets_find(secrets, "rialto-token-key", &key);
    secrets_free(secrets);
    s->file = signin_file_new(buf_view(&key));
    s->no_file = !s->file;
    return s->file;
}
