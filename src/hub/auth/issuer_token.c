/* /oauth/token and /oauth/revoke: exchanging codes and refresh tokens for tokens, and revoking
 * them. Called by issuer.c. */
#include "hub/auth/issuer_inside.h"

#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"
#include "wire/webform.h"

enum {
    F_GRANT,
    F_CODE,
    F_REDIRECT,
    F_VERIFIER,
    F_CLIENT,
    F_SECRET,
    F_REFRESH,
    F_RESOURCE,
    F_SCOPE,
    F_TOKEN,
    F_FIELDS
};

static const char *const names[F_FIELDS] = {
    "grant_type",    "code",          "redirect_uri", "code_verifier", "client_id",
    "client_secret", "refresh_token", "resource",     "scope",         "token",
};

/* One request: its fields, and the client that it says it comes from. */
struct token_request {
    struct issuer *issuer;
    struct http_exchange *x;
    struct span fields[F_FIELDS];
    struct buf scratch, basic;
    struct span id, secret;
    bool by_header;
};

/* --- who asks --- */

/* "Basic" with both texts form-encoded (RFC 6749 2.3.1). False: the header makes no sense. */
static bool read_basic(struct token_request *r, const struct http_request *req)
{
    struct span value = http_header(req, "authorization");
    BUF_SCOPED raw = {0};

    if (!value.p)
        return true;
    r->by_header = true;
    if (!span_eq_nocase(span_cut(value, 0, 6), SPAN("Basic ")) ||
        base64_read(&raw, span_trim(span_from(value, 6))))
        return false;
    size_t colon = span_find(buf_view(&raw), ':');
    BUF_SCOPED both = {0};
    buf_str(&both, "i=");
    buf_span(&both, span_cut(buf_view(&raw), 0, colon));
    buf_str(&both, "&s=");
    buf_span(&both, span_from(buf_view(&raw), colon + 1));
    struct span parts[2];
    static const char *const two[] = {"i", "s"};
    if (colon >= raw.n || webform_read(buf_view(&both), two, 2, parts, &r->basic))
        return false;
    r->id = parts[0];
    r->secret = parts[1];
    return true;
}

/* Has the client proven its id, by the method that it registered with? */
static bool is_client(const struct token_request *r)
{
    const struct registration *c = permits_client(r->issuer->permits, r->id);
    unsigned char hash[SHA256_N];

    /* A client with a document has no secret: what it asks for is bound to its id. */
    if (!c)
        return span_starts(r->id, SPAN("https://")) && !r->secret.n;
    if (c->method == REGISTRATION_NONE)
        return !r->secret.n;
    if (!r->secret.n)
        return false;
    sha_256(hash, r->secret);
    return sha_same(hash, c->secret, sizeof hash);
}

static bool is_form(const struct http_request *req)
{
    struct span type = http_header(req, "content-type");

    return span_eq_nocase(span_trim(span_cut(type, 0, span_find(type, ';'))),
                          SPAN("application/x-www-form-urlencoded"));
}

/* Reads the request and finds out who asks; if that fails, the request has been refused. */
static bool begin(struct token_request *r, const struct http_request *req)
{
    if (!is_form(req) || webform_read(req->body, names, F_FIELDS, r->fields, &r->scratch)) {
        issuer_refuse(r->x, 400, "invalid_request",
                      "send a form (application/x-www-form-urlencoded), with no parameter twice");
        return false;
    }
    if (!read_basic(r, req) ||
        (r->by_header && (r->fields[F_SECRET].n ||
                          (r->fields[F_CLIENT].n && !span_eq(r->fields[F_CLIENT], r->id))))) {
        issuer_refuse(r->x, 401, "invalid_client", "the client shows two identities, or none");
        return false;
    }
    if (!r->by_header) {
        r->id = r->fields[F_CLIENT];
        r->secret = r->fields[F_SECRET];
    }
    if (!r->id.n || !is_client(r)) {
        issuer_refuse(r->x, 401, "invalid_client", "this client is not known here; register again");
        return false;
    }
    return true;
}

static void end(struct token_request *r)
{
    buf_fini(&r->scratch);
    buf_fini(&r->basic);
}

/* --- tokens --- */

/* False: the grant could not be saved, so the request has been refused. */
static bool answer(struct token_request *r, const struct permit *p, struct span access,
                   struct span refresh)
{
    if (permits_save(r->issuer->permits)) {
        issuer_refuse(r->x, 500, "server_error", "what was granted cannot be kept");
        return false;
    }
    struct buf *out = http_respond_begin(r->x, 200, "application/json",
                                         SPAN("Cache-Control: no-store\r\nPragma: no-cache\r\n"));
    buf_char(out, '{');
    json_out_text(out, "access_token", access);
    json_out_str(out, "token_type", "Bearer");
    json_out_number(out, "expires_in", PERMIT_ACCESS_S);
    if (refresh.n)
        json_out_text(out, "refresh_token", refresh);
    json_out_str(out, "scope", p->scope);
    buf_str(out, "}\n");
    http_respond_end(r->x);
    return true;
}

/* RFC 7636 4.6: the challenge is the base64url of the verifier's SHA-256. */
static bool fits_challenge(struct span verifier, const char *challenge)
{
    unsigned char hash[SHA256_N];
    BUF_SCOPED made = {0};

    if (verifier.n < 43 || verifier.n > 128)
        return false;
    sha_256(hash, verifier);
    base64_put_url(&made, span_of((const char *)hash, sizeof hash));
    return span_eq_secret(buf_view(&made), span_str(challenge));
}

static bool is_same_resource(const struct token_request *r, const char *path)
{
    struct span asked = r->fields[F_RESOURCE];

    return !asked.n || span_is(issuer_resource(r->issuer, asked), path);
}

static void by_code(struct token_request *r)
{
    struct permits *permits = r->issuer->permits;
    struct permit_code *code = permits_code(permits, r->fields[F_CODE]);
    BUF_SCOPED access = {0}, refresh = {0};

    if (code && code->used) {
        struct permit *stolen = permits_by_mark(permits, code->used);
        log_warn("auth", "a code was used twice, from %s", http_exchange_peer(r->x));
        if (stolen)
            permits_revoke(permits, stolen, "its code was used a second time");
        (void)!permits_save(permits);
        code = NULL;
    }
    if (!code || !span_is(r->id, code->client)) {
        issuer_refuse(r->x, 400, "invalid_grant", "the code is not known, was used, or is too old");
        return;
    }
    if (!span_is(r->fields[F_REDIRECT], code->redirect) ||
        !fits_challenge(r->fields[F_VERIFIER], code->challenge)) {
        code->used = 1; /* one try */
        issuer_refuse(r->x, 400, "invalid_grant",
                      "redirect_uri or code_verifier is not that of the authorization request");
        return;
    }
    if (!is_same_resource(r, code->resource)) {
        issuer_refuse(r->x, 400, "invalid_target", "the code is for another resource");
        return;
    }
    struct permit *p = permits_redeem(permits, code, &access, &refresh);
    if (answer(r, p, buf_view(&access), buf_view(&refresh))) {
        log_info("auth", "'%s' was let in, grant %s, scope %s", p->name, p->id, p->scope);
        return;
    }
    permits_revoke(permits, p, "it could not be kept");
    code->used = 0; /* the agent may try again */
}

static void by_refresh(struct token_request *r)
{
    struct permits *permits = r->issuer->permits;
    enum permit_refresh what;
    struct permit *p = permits_by_refresh(permits, r->fields[F_REFRESH], &what);
    BUF_SCOPED access = {0}, refresh = {0};

    if (p && span_is(r->id, p->client) && what == PERMIT_REPLAYED) {
        log_warn("auth", "an old refresh token was used again, from %s", http_exchange_peer(r->x));
        permits_revoke(permits, p, "an old refresh token was used again");
        (void)!permits_save(permits);
        p = NULL;
    }
    if (!p || !span_is(r->id, p->client)) {
        issuer_refuse(r->x, 400, "invalid_grant", "sign in again");
        return;
    }
    if (!is_same_resource(r, p->resource)) {
        issuer_refuse(r->x, 400, "invalid_target", "the grant is for another resource");
        return;
    }
    if (r->fields[F_SCOPE].n && !span_is(r->fields[F_SCOPE], p->scope)) {
        issuer_refuse(r->x, 400, "invalid_scope", "the grant has another scope");
        return;
    }
    struct permit unchanged = *p;
    permits_renew(permits, p, what == PERMIT_CURRENT ? r->fields[F_REFRESH] : SPAN_EMPTY, &access,
                  &refresh);
    if (!answer(r, p, buf_view(&access), buf_view(&refresh)))
        *p = unchanged; /* the agent has the old refresh token, and no other */
}

void issuer_handle_token(struct issuer *i, struct http_exchange *x, const struct http_request *req)
{
    struct token_request r = {.issuer = i, .x = x};

    if (begin(&r, req)) {
        if (span_is(r.fields[F_GRANT], "authorization_code"))
            by_code(&r);
        else if (span_is(r.fields[F_GRANT], "refresh_token"))
            by_refresh(&r);
        else
            issuer_refuse(x, 400, "unsupported_grant_type",
                          "only authorization_code and refresh_token are known here");
    }
    end(&r);
}

/* --- revoking (RFC 7009): the answer never tells whether there was such a token --- */

void issuer_handle_revoke(struct issuer *i, struct http_exchange *x, const struct http_request *req)
{
    struct token_request r = {.issuer = i, .x = x};
    enum permit_refresh what;
    int64_t expires;
    int code = 0;

    if (begin(&r, req)) {
        struct span token = r.fields[F_TOKEN];
        struct permit *p = permits_by_refresh(i->permits, token, &what);
        if (!p)
            p = permits_by_access(i->permits, token, &expires);
        bool own = p && span_is(r.id, p->client);
        if (own)
            permits_revoke(i->permits, p, "revoked by the agent");
        if (own || permits_is_unsaved(i->permits))
            code = permits_save(i->permits);
        /* If the file was not saved, the token would be valid again after a restart. */
        if (code)
            issuer_refuse(x, 503, "server_error", "the end of the grant cannot be kept");
        else
            http_respond(x, 200, NULL, SPAN("Cache-Control: no-store\r\n"), SPAN_EMPTY);
    }
    end(&r);
}
