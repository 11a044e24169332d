/* /oauth/authorize: checking the request, fetching the document of its client, the page, and the
 * person's answer. Called by issuer.c. */
#include "hub/auth/consent_page.h"
#include "hub/auth/issuer_inside.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/url.h"
#include "wire/webform.h"

enum {
    ASKED_MAX = 100,
    ASKED_MS = 10 * 60 * 1000,
    DOCUMENT_MAX = 5 * 1024,
    DOCUMENT_MS = 10 * 1000,
    DOCUMENTS_MAX = 100,
    FETCHES_MAX = 20,
    FRESH_MIN = 5 * 60 * 1000,
    FRESH_MAX = 24 * 3600 * 1000,
    STATE_MAX = 2048,
    CHALLENGE_N = 43,
};

enum {
    A_TYPE,
    A_CLIENT,
    A_REDIRECT,
    A_CHALLENGE,
    A_METHOD,
    A_STATE,
    A_RESOURCE,
    A_SCOPE,
    A_FIELDS
};

static const char *const names[A_FIELDS] = {
    "response_type",         "client_id", "redirect_uri", "code_challenge",
    "code_challenge_method", "state",     "resource",     "scope",
};

/* A request that a person is to answer. */
struct consent_request {
    struct list node;
    struct issuer *issuer;
    char id[ID_TOKEN_SIZE], csrf[ID_TOKEN_SIZE], session[ID_TOKEN_SIZE];
    char *client, *name, *redirect, *challenge, *state, *resource, *scope;
    bool registered;
    uint64_t until;
    struct http_exchange *x; /* waits while a password is being checked; otherwise NULL */
};

static void request_free(struct consent_request *a)
{
    char *texts[] = {a->client, a->name,     a->redirect, a->challenge,
                     a->state,  a->resource, a->scope};

    list_remove(&a->node);
    a->issuer->n_asked--;
    pairing_forget(a->issuer->pairing, a);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        mem_free(texts[i]);
    mem_free(a);
}

/* --- answers --- */

/* Back to the agent: REDIRECT?...&state=...&iss=... */
static void send_back(const struct issuer *i, struct http_exchange *x, struct span redirect,
                      struct span state, const char *name, struct span value,
                      const char *description)
{
    BUF_SCOPED to = {0}, headers = {0};

    buf_span(&to, redirect);
    if (span_find(redirect, '?') == redirect.n)
        buf_char(&to, '?');
    webform_put(&to, name, value);
    if (description)
        webform_put(&to, "error_description", span_str(description));
    if (state.p)
        webform_put(&to, "state", state);
    webform_put(&to, "iss", span_str(i->public_url));
    http_put_header(&headers, "Location", buf_view(&to));
    buf_str(&headers, "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                      "X-Frame-Options: DENY\r\nContent-Security-Policy: default-src 'none'; "
                      "frame-ancestors 'none'\r\n");
    http_respond(x, 303, NULL, buf_view(&headers), SPAN_EMPTY);
}

/* The cookie binds the form to this browser: a page of another site cannot send both. */
static void put_cookie(struct buf *out, const struct consent_request *a)
{
    bool secure = strncmp(a->issuer->public_url, "https:", 6) == 0;

    buf_printf(out, "Set-Cookie: %srialto-sign-in=%s; Path=/; HttpOnly; SameSite=Lax%s\r\n",
               secure ? "__Host-" : "", a->session, secure ? "; Secure" : "");
}

static void show_page(const struct consent_request *a, struct http_exchange *x, int status,
                      const char *problem)
{
    BUF_SCOPED cookie = {0};

    put_cookie(&cookie, a);
    consent_page_ask(
        x, status, buf_view(&cookie),
        &(struct consent_question){.name = a->name,
                                   .client = a->client,
                                   .redirect = span_str(a->redirect),
                                   .registered = a->registered,
                                   .scope = span_str(a->scope),
                                   .views = &a->issuer->views,
                                   .has_password = pairing_has_password(a->issuer->pairing),
                                   .request = a->id,
                                   .csrf = a->csrf,
                                   .problem = problem});
}

/* --- the request --- */

/* The value of our cookie; empty if there is none, or it is malformed. */
static struct span cookie_of(const struct http_request *req)
{
    struct span rest = http_header(req, "cookie"), name = SPAN("rialto-sign-in=");

    while (rest.n) {
        struct span one = span_trim(span_cut(rest, 0, span_find(rest, ';')));
        rest = span_from(rest, span_find(rest, ';') + 1);
        if (span_starts(one, SPAN("__Host-")))
            one = span_from(one, 7);
        if (span_starts(one, name) && one.n == name.n + ID_TOKEN_SIZE - 1 &&
            ascii_is_words(span_from(one, name.n), ""))
            return span_from(one, name.n);
    }
    return SPAN_EMPTY;
}

static char *copy(struct span text)
{
    return text.p ? mem_span(text) : NULL;
}

static void drop_old(struct issuer *i)
{
    uint64_t now = loop_now(i->loop);

    LIST_EACH_SAFE (&i->asked, it) {
        struct consent_request *a = LIST_ENTRY(it, struct consent_request, node);
        if (!a->x && (a->until <= now || i->n_asked >= ASKED_MAX))
            request_free(a);
    }
}

static void ask(struct issuer *i, struct http_exchange *x, const struct http_request *req,
                const struct registration *client, const struct span *f, struct span resource,
                struct span scope)
{
    struct consent_request *a = MEM_NEW(struct consent_request);
    struct span session = cookie_of(req);

    drop_old(i);
    a->issuer = i;
    id_token(a->id);
    id_token(a->csrf);
    id_token(a->session);
    if (session.n)
        memcpy(a->session, session.p, session.n);
    a->client = mem_str(client->id);
    a->name = mem_str(client->name ? client->name : client->id);
    a->registered = !client->fresh_until;
    a->redirect = copy(f[A_REDIRECT]);
    a->challenge = copy(f[A_CHALLENGE]);
    a->state = copy(f[A_STATE]);
    a->resource = copy(resource);
    a->scope = copy(scope);
    a->until = loop_now(i->loop) + ASKED_MS;
    list_append(&i->asked, &a->node);
    i->n_asked++;
    show_page(a, x, 200, NULL);
}

/* "mcp" if it is among the scopes, or if none is named; else the first. False: one is not known. */
static bool choose_scope(const struct issuer *i, struct span asked, struct span *scope)
{
    const char *view;

    *scope = SPAN("mcp");
    for (bool first = true; asked.n;) {
        struct span word = span_cut(asked, 0, span_find(asked, ' '));
        asked = span_from(asked, word.n + 1);
        if (!word.n || span_is(word, "offline_access"))
            continue;
        if (!issuer_knows_scope(i, word, &view))
            return false;
        if (first || !view)
            *scope = word;
        first = false;
    }
    return true;
}

static bool is_challenge(struct span text)
{
    return text.n == CHALLENGE_N && ascii_is_words(text, "-_");
}

/* Client and redirect address are known to be good: errors go back to the agent from here on. */
static void check_rest(struct issuer *i, struct http_exchange *x, const struct http_request *req,
                       const struct registration *client, const struct span *f)
{
    struct span scope, resource = SPAN("/mcp");
    const char *error = NULL, *why = NULL;

    if (f[A_RESOURCE].n)
        resource = issuer_resource(i, f[A_RESOURCE]);
    if (!span_is(f[A_TYPE], "code")) {
        error = "unsupported_response_type";
        why = "response_type must be code";
    } else if (!is_challenge(f[A_CHALLENGE]) || !span_is(f[A_METHOD], "S256")) {
        error = "invalid_request";
        why = "PKCE is needed: code_challenge, and code_challenge_method S256";
    } else if (f[A_STATE].n > STATE_MAX) {
        error = "invalid_request";
        why = "state is too long";
    } else if (!resource.n) {
        error = "invalid_target";
        why = "resource is none of this Rialto's";
    } else if (!choose_scope(i, f[A_SCOPE], &scope)) {
        error = "invalid_scope";
        why = "a scope is not known here";
    }
    if (error)
        send_back(i, x, f[A_REDIRECT], f[A_STATE].n > STATE_MAX ? SPAN_EMPTY : f[A_STATE], "error",
                  span_str(error), why);
    else
        ask(i, x, req, client, f, resource, scope);
}

static void check_client(struct issuer *i, struct http_exchange *x, const struct http_request *req,
                         const struct registration *client)
{
    BUF_SCOPED scratch = {0};
    struct span f[A_FIELDS];

    if (webform_read(req->query, names, A_FIELDS, f, &scratch)) {
        consent_page_refuse(x, 400, "This address is not valid",
                            "A parameter occurs twice, or is malformed. "
                            "Start again in the program that sent you here.");
        return;
    }
    if (!client) {
        consent_page_refuse(x, 400, "The program that sent you here is not known",
                            "It has to register again: remove this Rialto there, and add it once "
                            "more.");
        return;
    }
    if (!f[A_REDIRECT].n || !registration_has_redirect(client, f[A_REDIRECT])) {
        consent_page_refuse(x, 400, "You would be sent to an address that is not registered",
                            "So you stay here. If you have just tried to connect a program, remove "
                            "this Rialto there, and add it once more.");
        return;
    }
    check_rest(i, x, req, client, f);
}

/* --- documents about clients --- */

struct document_fetch {
    struct list node;
    struct issuer *issuer;
    struct fetched_document *document;
    char *id;
    struct http_exchange *x; /* the request that waits */
    const struct http_request *req;
};

static void fetch_free(struct document_fetch *f)
{
    list_remove(&f->node);
    f->issuer->n_fetches--;
    if (f->document)
        document_cancel(f->document);
    mem_free(f->id);
    mem_free(f);
}

static void on_fetch_gone(void *owner)
{
    fetch_free(owner);
}

static void drop_document(struct issuer *i, struct registration *r)
{
    list_remove(&r->node);
    i->n_documents--;
    registration_free(r);
}

static struct registration *find_document(struct issuer *i, struct span id)
{
    LIST_EACH_SAFE (&i->documents, it) {
        struct registration *r = LIST_ENTRY(it, struct registration, node);
        if (r->fresh_until <= loop_now(i->loop))
            drop_document(i, r);
        else if (span_is(id, r->id))
            return r;
    }
    return NULL;
}

/* NULL, with a reason, for a document that is not that of a client. */
static struct registration *read_document(struct issuer *i, const char *id,
                                          const struct document_answer *a, struct err *err)
{
    struct registration *r = MEM_NEW(struct registration);
    struct span type = http_head_value(&a->head, "content-type");

    if (a->code)
        err_set(err, ERR_PROTOCOL, "%s", a->why);
    else if (a->head.status != 200)
        err_set(err, ERR_PROTOCOL, "the answer is HTTP %d", a->head.status);
    else if (!span_has_nocase(type, SPAN("json")))
        err_set(err, ERR_PROTOCOL, "it is not JSON");
    else if (registration_read(r, a->body, err))
        ;
    else if (!r->id || strcmp(r->id, id) != 0)
        err_set(err, ERR_PROTOCOL, "its client_id is not its address");
    else if (r->method == REGISTRATION_POST)
        err_set(err, ERR_PROTOCOL, "a client with a document has no secret");
    else {
        r->method = REGISTRATION_NONE;
        r->fresh_until = loop_now(i->loop) + document_freshness(a, FRESH_MIN, FRESH_MAX);
        return r;
    }
    registration_free(r);
    return NULL;
}

static void on_document(void *owner, const struct document_answer *a)
{
    struct document_fetch *f = owner;
    struct issuer *i = f->issuer;
    struct http_exchange *x = f->x;
    const struct http_request *req = f->req;
    struct err err = {0};
    struct registration *r = read_document(i, f->id, a, &err);

    if (!r)
        log_warn("auth", "the document %s of a client is not taken: %s", f->id, err.text);
    f->document = NULL;
    fetch_free(f);
    http_exchange_on_gone(x, NULL, NULL);
    if (!r) {
        consent_page_refuse(x, 400, "The description of the program cannot be read",
                            "Its document could not be fetched, or is not valid; the log of this "
                            "Rialto has the reason.");
        return;
    }
    if (i->n_documents >= DOCUMENTS_MAX)
        drop_document(i, LIST_FIRST(&i->documents, struct registration, node));
    list_append(&i->documents, &r->node);
    i->n_documents++;
    check_client(i, x, req, r);
}

static void fetch_document(struct issuer *i, struct http_exchange *x,
                           const struct http_request *req, struct span id)
{
    static const char *const headers[] = {"Accept: application/json", NULL};
    struct document_fetch *f;

    if (i->n_fetches >= FETCHES_MAX) {
        consent_page_refuse(x, 503, "Too much is going on", "Try again in a minute.");
        return;
    }
    if (!i->client)
        i->client = http_client_new(i->loop);
    f = MEM_NEW(struct document_fetch);
    *f = (struct document_fetch){.issuer = i, .id = mem_span(id), .x = x, .req = req};
    list_append(&i->fetches, &f->node);
    i->n_fetches++;
    http_exchange_on_gone(x, on_fetch_gone, f);
    f->document = document_fetch(
        i->loop, i->client,
        &(struct document_spec){
            .fetch = {.method = "GET", .url = f->id, .headers = headers, .reach = &i->reach},
            .max = DOCUMENT_MAX,
            .timeout = DOCUMENT_MS},
        on_document, f);
}

/* Is the id the https address of a document, with a path? */
static bool is_document(struct span id)
{
    struct url_parts u;

    return url_read(&u, id) && u.secure && u.path.n > 1 && span_find(id, '#') == id.n;
}

/* --- the person's answer --- */

static void let_in(struct consent_request *a, struct http_exchange *x)
{
    struct issuer *i = a->issuer;
    struct registration *client = permits_client(i->permits, span_str(a->client));
    BUF_SCOPED code = {0};
    struct permit_code c = {.client = mem_str(a->client),
                            .name = mem_str(a->name),
                            .redirect = mem_str(a->redirect),
                            .challenge = mem_str(a->challenge),
                            .resource = mem_str(a->resource),
                            .scope = mem_str(a->scope)};

    if (client && !client->granted) {
        client->granted = true;
        (void)!permits_save(i->permits);
    }
    permits_add_code(i->permits, &c, &code);
    send_back(i, x, span_str(a->redirect), span_str(a->state), "code", buf_view(&code), NULL);
    request_free(a);
}

static const char wrong_word[] = "That is not the password, nor a code that is still good.";

static void on_checked(void *owner, bool right)
{
    struct consent_request *a = owner;
    struct http_exchange *x = a->x;

    a->x = NULL;
    http_exchange_on_gone(x, NULL, NULL);
    if (right)
        let_in(a, x);
    else
        show_page(a, x, 403, wrong_word);
}

static void on_person_gone(void *owner)
{
    struct consent_request *a = owner;

    a->x = NULL;
    pairing_forget(a->issuer->pairing, a);
}

enum { P_REQUEST, P_CSRF, P_WORD, P_ANSWER, P_SCOPE, P_FIELDS };

static const char *const form_names[P_FIELDS] = {"request", "csrf", "word", "answer", "scope"};

static struct consent_request *find_asked(struct issuer *i, const struct http_request *req,
                                          const struct span *f)
{
    struct span session = cookie_of(req);

    LIST_EACH (&i->asked, it) {
        struct consent_request *a = LIST_ENTRY(it, struct consent_request, node);
        if (span_eq_secret(f[P_REQUEST], span_str(a->id)) && a->until > loop_now(i->loop) && !a->x)
            return span_eq_secret(f[P_CSRF], span_str(a->csrf)) &&
                           span_eq_secret(session, span_str(a->session))
                       ? a
                       : NULL;
    }
    return NULL;
}

/* Does the form come from our own page? Browsers send the origin of a form. */
static bool is_own_origin(const struct issuer *i, const struct http_request *req)
{
    struct span origin = http_header(req, "origin");
    struct url_parts own, from;

    return url_read(&own, span_str(i->public_url)) && url_read(&from, origin) && !from.path.n &&
           url_same_origin(&own, &from);
}

static void try_word(struct consent_request *a, struct http_exchange *x, struct span word)
{
    switch (pairing_try(a->issuer->pairing, word, on_checked, a)) {
    case PAIRING_RIGHT:
        let_in(a, x);
        break;
    case PAIRING_WRONG:
        show_page(a, x, 403, wrong_word);
        break;
    case PAIRING_TOO_SOON:
        http_exchange_add_headers(x, SPAN("Retry-After: 30\r\n"));
        show_page(a, x, 429, "Too many tries. Wait half a minute.");
        break;
    case PAIRING_CHECKING:
        a->x = x;
        http_exchange_on_gone(x, on_person_gone, a);
        break;
    }
}

static void take_answer(struct issuer *i, struct http_exchange *x, const struct http_request *req)
{
    BUF_SCOPED scratch = {0};
    struct span f[P_FIELDS];
    const char *view;
    bool read = webform_read(req->body, form_names, P_FIELDS, f, &scratch) == 0;
    struct consent_request *a = read && is_own_origin(i, req) ? find_asked(i, req, f) : NULL;

    if (!a) {
        consent_page_refuse(x, 403, "This answer is not taken",
                            "The page is too old, or the answer was not given on it. Start again "
                            "in the program that sent you here.");
        return;
    }
    if (span_is(f[P_ANSWER], "deny")) {
        send_back(i, x, span_str(a->redirect), span_str(a->state), "error", SPAN("access_denied"),
                  "the person said no");
        request_free(a);
        return;
    }
    if (!span_is(f[P_ANSWER], "allow") || !issuer_knows_scope(i, f[P_SCOPE], &view)) {
        show_page(a, x, 400, "Choose what it may use.");
        return;
    }
    mem_free(a->scope);
    a->scope = mem_span(f[P_SCOPE]);
    try_word(a, x, f[P_WORD]);
}

void issuer_handle_authorize(struct issuer *i, struct http_exchange *x,
                             const struct http_request *req)
{
    BUF_SCOPED scratch = {0};
    struct span id = http_query(req->query, "client_id", &scratch);

    if (span_is(req->method, "POST")) {
        take_answer(i, x, req);
        return;
    }
    if (!span_is(req->method, "GET")) {
        http_refuse_with(x, 405, SPAN("Allow: GET, POST\r\n"), "method not allowed",
                         "this is a page for people: GET");
        return;
    }
    struct registration *client = permits_client(i->permits, id);
    if (!client && is_document(id))
        client = find_document(i, id);
    if (!client && is_document(id))
        fetch_document(i, x, req, id);
    else
        check_client(i, x, req, client);
}

void issuer_forget_asked(struct issuer *i)
{
    LIST_EACH_SAFE (&i->asked, it) {
        struct consent_request *a = LIST_ENTRY(it, struct consent_request, node);
        if (a->x) {
            http_exchange_on_gone(a->x, NULL, NULL);
            consent_page_refuse(a->x, 503, "Not now", "Start again in a moment.");
        }
        request_free(a);
    }
}

void issuer_forget_documents(struct issuer *i)
{
    LIST_EACH_SAFE (&i->fetches, it) {
        struct document_fetch *f = LIST_ENTRY(it, struct document_fetch, node);
        http_exchange_on_gone(f->x, NULL, NULL);
        consent_page_refuse(f->x, 503, "Not now", "Start again in a moment.");
        fetch_free(f);
    }
    LIST_EACH_SAFE (&i->documents, it)
        drop_document(i, LIST_ENTRY(it, struct registration, node));
}
