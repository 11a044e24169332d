/* Judging bearer tokens: those of the configuration by their hashes, others by trust.c,
 * introspection.c and issuer.c; the answers to callers that are not let in, and the metadata of RFC
 * 9728. Called by hub/front.c for requests, by cmd/token.c for new tokens, and by the commands that
 * check `listen` and `auth` of a configuration (serve, browser, check, doctor). */
#include "hub/auth/gate.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/units.h"
#include "hub/auth/introspection.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

#include <stdio.h>

/* Check for expired tokens at least this often: the machine may sleep, or its clock may be set. */
enum { LOOK_AGAIN_MS = 60 * 1000 };

/* One of auth.tokens. */
struct gate_token {
    struct pass pass;
    unsigned char hash[SHA256_N];
};

struct gate {
    struct loop *loop;
    bool asks;
    char *public_url; /* or NULL */
    struct gate_token *tokens;
    size_t n;
    struct timer expiry;        /* set while a token is going to expire */
    struct http_client *client; /* NULL until something must be fetched */
    struct passes *passes;
    struct trust *trust;                 /* NULL without auth.jwt */
    struct introspection *introspection; /* NULL without auth.introspection */
    struct issuer *issuer;               /* our own; it may be switched off */
    struct buf scopes;                   /* that agents are told to ask for, with blanks between */
    struct buf issuers;                  /* JSON strings, with commas between */
    void (*ended)(void *arg);
    void (*news)(void *arg);
    void *arg;
};

/* --- tokens --- */

static unsigned char digit(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void tell_ended(void *arg)
{
    struct gate *g = arg;

    if (g->ended)
        g->ended(g->arg);
}

static void tell_news(void *arg)
{
    struct gate *g = arg;

    if (g->news)
        g->news(g->arg);
}

/* Ends the principals whose tokens have expired; sets the timer for the next one. */
static bool look_at_clock(struct gate *g)
{
    int64_t now = pass_clock(), wait = INT64_MAX;
    bool any = false;

    for (size_t i = 0; i < g->n; i++) {
        struct pass *t = &g->tokens[i].pass;
        if (pass_is_over(t, now) && !t->who->ended) {
            log_info("http", "the token '%s' has expired", t->who->name);
            t->who->ended = any = true;
        } else if (t->expires > now && t->expires - now < wait) {
            wait = t->expires - now;
        }
    }
    if (wait == INT64_MAX)
        timer_clear(loop_timers(g->loop), &g->expiry);
    else
        timer_set(loop_timers(g->loop), &g->expiry,
                  wait < LOOK_AGAIN_MS ? (uint64_t)wait : LOOK_AGAIN_MS);
    return any;
}

static void on_expiry(struct timer *t)
{
    struct gate *g = CONTAINER_OF(t, struct gate, expiry);

    if (look_at_clock(g))
        tell_ended(g);
}

static struct gate_token token_of(const struct config_token *from)
{
    const char *hex = from->hash + strlen("sha256:"); /* checked by config/ */
    struct gate_token t = {
        .pass = {.view = from->view ? mem_str(from->view) : NULL, .role = from->role}};

    for (size_t k = 0; k < SHA256_N; k++)
        t.hash[k] = (unsigned char)(digit(hex[2 * k]) << 4 | digit(hex[2 * k + 1]));
    if (from->expires)
        (void)units_read_time(span_str(from->expires), &t.pass.expires); /* checked by config/ */
    return t;
}

/* Is this the same token with the same rights? If not, what its owner has open must end. */
static bool is_same(const struct gate_token *a, const char *name, const struct gate_token *b)
{
    const struct pass *p = &a->pass, *q = &b->pass;
    bool same_view = p->view && q->view ? strcmp(p->view, q->view) == 0 : p->view == q->view;

    return !p->who->ended && strcmp(p->who->name, name) == 0 && same_view && p->role == q->role &&
           memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

/* The principal that the same token had before, or a new one. */
static struct principal *principal_for(struct gate *g, const char *name, const struct gate_token *t)
{
    for (size_t i = 0; i < g->n; i++)
        if (is_same(&g->tokens[i], name, t))
            return principal_hold(g->tokens[i].pass.who);
    return principal_new(name);
}

/* End the principals of old tokens that no current token has. */
static bool end_lost(struct gate_token *old, size_t n_old, const struct gate *g)
{
    bool any = false;

    for (size_t i = 0; i < n_old; i++) {
        struct principal *who = old[i].pass.who;
        bool kept = who->ended;
        for (size_t k = 0; k < g->n && !kept; k++)
            kept = g->tokens[k].pass.who == who;
        if (!kept) {
            log_info("http", "the token '%s' was revoked or changed", who->name);
            who->ended = any = true;
        }
    }
    return any;
}

static void free_tokens(struct gate_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        principal_release(tokens[i].pass.who);
        mem_free(tokens[i].pass.view);
    }
    mem_free(tokens);
}

/* --- the configuration --- */

static bool has_word(struct span list, struct span word)
{
    while (list.n) {
        struct span one = span_cut(list, 0, span_find(list, ' '));
        if (span_eq(one, word))
            return true;
        list = span_from(list, one.n + 1);
    }
    return false;
}

static void add_scope(struct gate *g, const char *scope)
{
    if (has_word(buf_view(&g->scopes), span_str(scope)))
        return;
    buf_printf(&g->scopes, "%s%s", g->scopes.n ? " " : "", scope);
}

static void add_issuer(struct gate *g, const char *issuer)
{
    if (g->issuers.n)
        buf_char(&g->issuers, ',');
    json_quote(&g->issuers, span_str(issuer));
}

/* What agents read before they sign in. */
static void set_metadata(struct gate *g, const struct config *c)
{
    const struct config_pairs *views = &c->introspection.views;

    g->scopes.n = g->issuers.n = 0;
    for (size_t i = 0; i < c->jwt.n; i++) {
        add_issuer(g, c->jwt.items[i].issuer);
        for (size_t k = 0; k < c->jwt.items[i].views.n; k++)
            add_scope(g, c->jwt.items[i].views.items[k].name);
    }
    if (c->introspection.issuer)
        add_issuer(g, c->introspection.issuer);
    for (size_t k = 0; k < views->n; k++)
        add_scope(g, views->items[k].name);
    if (c->issuer) {
        add_issuer(g, c->public_url);
        add_scope(g, "mcp");
    }
}

/* Judges whose settings are the same stay, with all that they have found out. */
static void apply_issuers(struct gate *g, const struct config *c)
{
    if ((c->jwt.n || c->introspection.url) && !g->client)
        g->client = http_client_new(g->loop);
    if (g->trust && !trust_is_same(g->trust, c)) {
        trust_free(g->trust);
        g->trust = NULL;
    }
    if (c->jwt.n && !g->trust)
        g->trust = trust_new(g->loop, g->client, c, g->passes, tell_news, g);
    if (g->introspection && !introspection_is_same(g->introspection, c)) {
        introspection_free(g->introspection);
        g->introspection = NULL;
    }
    if (c->introspection.url && !g->introspection)
        g->introspection = introspection_new(g->loop, g->client, c, g->passes, tell_news, g);
    issuer_apply(g->issuer, c);
    mem_free(g->public_url);
    g->public_url = c->public_url ? mem_str(c->public_url) : NULL;
    set_metadata(g, c);
}

void gate_apply(struct gate *g, const struct config *c)
{
    struct gate_token *old = g->tokens, *fresh = MEM_ARRAY(struct gate_token, c->tokens.n + 1);
    size_t n_old = g->n;
    bool opened = g->asks;

    for (size_t i = 0; i < c->tokens.n; i++) {
        const struct config_token *from = &c->tokens.items[i];
        fresh[i] = token_of(from);
        fresh[i].pass.who = principal_for(g, from->name, &fresh[i]);
        principal_set_limits(fresh[i].pass.who, &from->limits);
    }
    g->tokens = fresh;
    g->n = c->tokens.n;
    g->asks = c->asks_tokens;
    apply_issuers(g, c);
    bool any = end_lost(old, n_old, g);
    any |= look_at_clock(g);
    free_tokens(old, n_old);
    if (any || opened != g->asks)
        tell_ended(g);
    tell_news(g); /* requests that wait for a judge that was replaced are judged anew */
}

void gate_on_change(struct gate *g, void (*ended)(void *arg), void (*news)(void *arg), void *arg)
{
    g->ended = ended;
    g->news = news;
    g->arg = arg;
}

struct gate *gate_new(struct loop *loop)
{
    struct gate *g = MEM_NEW(struct gate);

    g->loop = loop;
    g->expiry.fire = on_expiry;
    g->passes = passes_new(loop, tell_ended, g);
    g->issuer = issuer_new(loop, g->passes);
    return g;
}

void gate_free(struct gate *g)
{
    timer_clear(loop_timers(g->loop), &g->expiry);
    free_tokens(g->tokens, g->n);
    if (g->trust)
        trust_free(g->trust);
    if (g->introspection)
        introspection_free(g->introspection);
    issuer_free(g->issuer);
    http_client_free(g->client);
    passes_free(g->passes);
    buf_fini(&g->scopes);
    buf_fini(&g->issuers);
    mem_free(g->public_url);
    mem_free(g);
}

bool gate_asks(const struct gate *g)
{
    return g->asks;
}

const char *gate_public_url(const struct gate *g)
{
    return g->public_url;
}

struct issuer *gate_issuer(const struct gate *g)
{
    return g->issuer;
}

void gate_check(const struct config *c, struct problems *problems)
{
    for (size_t i = 0; !c->asks_tokens && !c->anonymous && i < c->listen.n; i++)
        if (c->listen.items[i].open)
            problems_add(problems, PROBLEM_ERROR, (struct place){0}, "listen",
                         "other machines reach %s, and there are no tokens; add auth.tokens "
                         "('rialto token add NAME' makes one), or say that everybody may "
                         "use all servers, auth: {anonymous: true}",
                         c->listen.items[i].address);
}

/* --- judging --- */

static const struct pass *find_listed(const struct gate *g, struct span token)
{
    unsigned char hash[SHA256_N];
    const struct pass *found = NULL;

    if (!g->n)
        return NULL;
    sha_256(hash, token);
    for (size_t i = 0; i < g->n; i++)
        if (sha_same(hash, g->tokens[i].hash, sizeof hash))
            found = &g->tokens[i].pass;
    return found;
}

static struct gate_verdict let_in(const struct pass *p, const struct http_request *req)
{
    struct span only = span_str(p->resource);

    if (only.n &&
        !(span_starts(req->path, only) && (req->path.n == only.n || req->path.p[only.n] == '/')))
        return (struct gate_verdict){GATE_REFUSES, NULL,
                                     "it is for another address of this Rialto"};
    return (struct gate_verdict){.answer = GATE_LETS_IN, .pass = p};
}

static void drop_kept(void *pass)
{
    pass_release(pass);
}

/* Keep the pass with the connection: the next request finds it by comparing the token's bytes. */
static struct gate_verdict remember(struct http_exchange *x, const struct http_request *req,
                                    const struct pass *p)
{
    if (x)
        http_exchange_keep(x, (void *)(uintptr_t)pass_hold(p), drop_kept);
    return let_in(p, req);
}

static struct gate_verdict verdict_of(enum trust_answer answer, const char *why)
{
    static const enum gate_answer answers[] = {
        [TRUST_PASSES] = GATE_LETS_IN,    [TRUST_REFUSES] = GATE_REFUSES,
        [TRUST_NO_SCOPE] = GATE_NO_SCOPE, [TRUST_WAIT] = GATE_WAIT,
        [TRUST_DOWN] = GATE_DOWN,         [TRUST_NOT_OURS] = GATE_REFUSES,
    };

    return (struct gate_verdict){.answer = answers[answer], .why = why};
}

/* Tokens of our own issuer, JWTs, and those that another issuer is asked about. */
static struct gate_verdict judge_issued(struct gate *g, struct http_exchange *x,
                                        const struct http_request *req, struct span token)
{
    const struct pass *p = passes_find(g->passes, token);
    const char *why = "it is not known here";
    enum trust_answer answer = TRUST_NOT_OURS;

    if (p)
        return remember(x, req, p);
    if (issuer_is_on(g->issuer))
        answer = issuer_judge(g->issuer, token, &p, &why);
    if (answer == TRUST_NOT_OURS && g->trust)
        answer = trust_judge(g->trust, token, &p, &why);
    if (answer == TRUST_NOT_OURS && g->introspection)
        answer = introspection_judge(g->introspection, token, &p, &why);
    return answer == TRUST_PASSES ? remember(x, req, p) : verdict_of(answer, why);
}

/* More than one token, or one in the query, which ends up in logs (RFC 6750 2). */
static bool is_doubtful(const struct http_request *req, struct span token)
{
    BUF_SCOPED scratch = {0};

    for (size_t i = req->n_headers; token.n && i--;) {
        const struct http_header *h = &req->headers[i];
        if (!span_eq_nocase(h->name, SPAN("authorization")))
            continue;
        if (token.p < h->value.p || token.p > h->value.p + h->value.n)
            return true;
        break;
    }
    return req->query.n && http_query(req->query, "access_token", &scratch).p;
}

struct gate_verdict gate_judge(struct gate *g, struct http_exchange *x,
                               const struct http_request *req)
{
    const struct pass *kept = x ? http_exchange_kept(x) : NULL;
    struct span token = http_bearer(req);

    if (is_doubtful(req, token))
        return (struct gate_verdict){GATE_BAD_REQUEST, NULL,
                                     "send one token, and in the header Authorization alone"};
    if (!token.n)
        return (struct gate_verdict){GATE_NO_TOKEN, NULL, "it shows no token"};
    if (kept && pass_is_of(kept, token))
        return let_in(kept, req);
    const struct pass *listed = find_listed(g, token);
    if (!listed)
        return judge_issued(g, x, req, token);
    if (listed->who->ended || (listed->expires && pass_is_over(listed, pass_clock())))
        return (struct gate_verdict){GATE_REFUSES, NULL, "it has expired"};
    return (struct gate_verdict){.answer = GATE_LETS_IN, .pass = listed};
}

void gate_hash(struct span token, char out[GATE_HASH_SIZE])
{
    unsigned char hash[SHA256_N];

    sha_256(hash, token);
    int at = snprintf(out, GATE_HASH_SIZE, "sha256:");
    for (size_t i = 0; i < sizeof hash; i++)
        at += snprintf(out + at, 3, "%02x", hash[i]);
}

/* --- answers to callers without a token --- */

/*
 * "https://host" of public_url. Without that setting there is no issuer either, only tokens that a
 * person hands out: then it is the Host that the client sent, since the client compares the two,
 * and hub/front.c has checked that the Host is a name of ours.
 */
static void put_origin(struct buf *out, const struct gate *g, const struct http_exchange *x,
                       const struct http_request *req)
{
    struct span host = http_header(req, "host");

    if (g->public_url) {
        buf_str(out, g->public_url);
        return;
    }
    buf_str(out, http_exchange_is_secure(x) ? "https://" : "http://");
    buf_span(out, host.n && ascii_is_words(host, ".:-_[]") ? host : SPAN("localhost"));
}

/* The protected resource that a path belongs to. */
static struct span resource_of(struct span path)
{
    bool is_one = span_starts(path, SPAN("/mcp")) || span_starts(path, SPAN("/sse"));

    return is_one && ascii_is_words(path, "/._-") ? path : SPAN("/mcp");
}

static bool speaks_rpc(struct span path)
{
    return span_starts(path, SPAN("/mcp")) || span_is(path, "/sse");
}

/* What is sent for each answer; `error` is a code of RFC 6750. */
static const struct {
    int status;
    const char *error, *text;
} refusals[] = {
    [GATE_LETS_IN] = {500, NULL, "let in"}, /* never sent */
    [GATE_NO_TOKEN] = {401, NULL, "Unauthorized: a bearer token is needed"},
    [GATE_BAD_REQUEST] = {400, "invalid_request", "Bad request"},
    [GATE_REFUSES] = {401, "invalid_token", "Unauthorized: this bearer token is not valid"},
    [GATE_NO_SCOPE] = {403, "insufficient_scope",
                       "Forbidden: this bearer token has no scope that opens anything here"},
    [GATE_WAIT] = {503, NULL, "too many requests wait for their tokens to be checked"},
    [GATE_DOWN] = {503, NULL, "tokens cannot be checked now: their issuer cannot be reached"},
};

static void put_challenge(struct buf *out, const struct gate *g, struct http_exchange *x,
                          const struct http_request *req, const struct gate_verdict *v)
{
    const char *error = refusals[v->answer].error;

    if (refusals[v->answer].status == 503) {
        buf_str(out, "Retry-After: 5\r\n");
        return;
    }
    buf_str(out, "WWW-Authenticate: Bearer resource_metadata=\"");
    put_origin(out, g, x, req);
    buf_str(out, GATE_METADATA);
    buf_span(out, resource_of(req->path));
    buf_char(out, '"');
    if (g->scopes.n)
        buf_printf(out, ", scope=\"" SPAN_FMT "\"", SPAN_ARG(buf_view(&g->scopes)));
    if (error)
        buf_printf(out, ", error=\"%s\"", error);
    if (error && v->why)
        buf_printf(out, ", error_description=\"%s\"", v->why);
    buf_str(out, "\r\n");
}

void gate_refuse(const struct gate *g, struct http_exchange *x, const struct http_request *req,
                 const struct gate_verdict *v)
{
    bool signs_in = g->issuers.n > 0;
    const char *hint =
        v->answer >= GATE_WAIT ? "try again in a few seconds"
        : signs_in ? "sign in where the address in WWW-Authenticate says, or send Authorization: "
                     "Bearer TOKEN"
                   : "send Authorization: Bearer TOKEN; the operator of this bridge has it "
                     "from 'rialto token add NAME'";
    BUF_SCOPED headers = {0}, text = {0};

    log_warn("http", "refused a request from %s: its token: %s", http_exchange_peer(x),
             v->why ? v->why : "cannot be checked now");
    put_challenge(&headers, g, x, req, v);
    buf_str(&text, refusals[v->answer].text);
    if (v->why && refusals[v->answer].error)
        buf_printf(&text, ": %s", v->why);
    if (speaks_rpc(req->path)) {
        struct buf *out = http_respond_begin(x, refusals[v->answer].status, "application/json",
                                             buf_view(&headers));
        buf_printf(&text, " (%s)", hint);
        rpc_put_error(out, SPAN_EMPTY, MCP_ERROR_SERVER, buf_view(&text), SPAN_EMPTY);
        http_respond_end(x);
    } else {
        http_refuse_with(x, refusals[v->answer].status, buf_view(&headers), buf_cstr(&text), hint);
    }
}

static void put_words(struct buf *out, struct span words)
{
    for (bool first = true; words.n; first = false) {
        struct span one = span_cut(words, 0, span_find(words, ' '));
        if (!first)
            buf_char(out, ',');
        json_quote(out, one);
        words = span_from(words, one.n + 1);
    }
}

void gate_describe(const struct gate *g, struct http_exchange *x, const struct http_request *req,
                   struct span rest)
{
    BUF_SCOPED resource = {0};

    put_origin(&resource, g, x, req);
    buf_span(&resource, resource_of(rest));
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_char(out, '{');
    json_out_text(out, "resource", buf_view(&resource));
    /* Without an issuer, a person hands the tokens out; an empty list is not allowed. */
    if (g->issuers.n) {
        json_out_open(out, "authorization_servers", '[');
        buf_span(out, buf_view(&g->issuers));
        buf_char(out, ']');
    }
    if (g->scopes.n) {
        json_out_open(out, "scopes_supported", '[');
        put_words(out, buf_view(&g->scopes));
        buf_char(out, ']');
    }
    json_out_raw(out, "bearer_methods_supported", SPAN("[\"header\"]"));
    json_out_str(out, "resource_name", "Rialto");
    buf_str(out, "}\n");
    http_respond_end(x);
}
