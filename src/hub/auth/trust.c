/* The checks of JWT access tokens, and of claims in general. Called by gate.c; introspection.c
 * calls trust_weigh. */
#include "hub/auth/trust.h"

#include "base/mem.h"
#include "base/visible.h"
#include "hub/auth/keyset.h"
#include "wire/json.h"

enum { SKEW_MS = 60 * 1000 };

struct trusted {
    struct trust *all;
    const char *issuer;
    struct config_strings types;
    struct trust_terms terms;
    struct keyset *keys;
};

struct trust {
    struct arena arena; /* of the entries */
    struct buf settings;
    struct passes *passes;
    struct trusted *items;
    size_t n;
    void (*news)(void *arg);
    void *arg;
};

/* --- claims --- */

/* The path of ours that the audience `text` names: `public_url` followed by /mcp, by a path below
 * that, or by /sse. Empty: none of these. */
static struct span own_resource(const char *public_url, struct span text)
{
    struct span base = span_str(public_url);

    if (!public_url || !span_starts(text, base))
        return SPAN_EMPTY;
    struct span path = span_from(text, base.n);
    bool one = span_starts(path, SPAN("/mcp")) && (path.n == 4 || path.p[4] == '/');
    return one || span_is(path, "/sse") ? path : SPAN_EMPTY;
}

/* Is one of the audiences ours? `*path` is then the only path that the token is for; empty: all. */
static bool find_audience(const struct trust_terms *terms, const struct jwt_claims *claims,
                          struct span *path, struct buf *scratch)
{
    struct json_iter it = json_iter(claims->audience);
    bool list = claims->audience.n && json_type_of(claims->audience) == JSON_ARRAY;

    *path = SPAN_EMPTY;
    if (terms->audience && jwt_claims_are_for(claims, span_str(terms->audience)))
        return true;
    if (!list && claims->audience.n && json_type_of(claims->audience) == JSON_STRING)
        *path = own_resource(terms->public_url, json_text(claims->audience, scratch));
    while (list && !path->n && json_next(&it)) {
        scratch->n = 0;
        if (it.type == JSON_STRING)
            *path = own_resource(terms->public_url, json_text(it.value, scratch));
    }
    if (!path->n)
        return false;
    if (span_is(*path, "/mcp"))
        *path = SPAN_EMPTY; /* /mcp is the address of everything */
    return true;
}

/* False: none of the scopes opens anything. */
static bool find_view(const struct config_pairs *views, const struct jwt_claims *claims,
                      const char **view)
{
    *view = NULL;
    if (!views->n || jwt_claims_have_scope(claims, SPAN("mcp")))
        return true;
    for (size_t i = 0; i < views->n; i++) {
        if (jwt_claims_have_scope(claims, span_str(views->items[i].name))) {
            *view = views->items[i].value;
            return true;
        }
    }
    return false;
}

static const char *wrong_time(const struct jwt_claims *c, int64_t now)
{
    if (c->expires == INT64_MIN)
        return "it does not say when it expires";
    if (c->expires * 1000 <= now - SKEW_MS)
        return "it has expired";
    if (c->not_before != INT64_MIN && c->not_before * 1000 > now + SKEW_MS)
        return "it is not valid yet";
    if (c->issued != INT64_MIN && c->issued * 1000 > now + SKEW_MS)
        return "it was issued in the future";
    return NULL;
}

/* Callers are told apart by the visible form of the subject. A subject with other characters is
 * refused, since two callers could look the same. */
static bool is_name(struct span subject)
{
    BUF_SCOPED seen = {0};

    visible_put(&seen, subject, 0);
    return subject.n && subject.n <= 255 && span_eq(subject, buf_view(&seen));
}

enum trust_answer trust_weigh(const struct trust_terms *terms, const struct jwt_claims *claims,
                              struct pass_facts *facts, struct buf *scratch, const char **why)
{
    struct span subject = claims->subject.n ? claims->subject : claims->client;

    *why = wrong_time(claims, pass_clock());
    if (*why)
        return TRUST_REFUSES;
    if (!find_audience(terms, claims, &facts->resource, scratch)) {
        *why = "it is for another audience";
        return TRUST_REFUSES;
    }
    if (!is_name(subject)) {
        *why = "it does not say whose it is";
        return TRUST_REFUSES;
    }
    if (claims->is_id) {
        *why = "it is an ID token, and no access token";
        return TRUST_REFUSES;
    }
    if (claims->bound) {
        *why = "it is bound to a key of its owner, and was sent without a proof";
        return TRUST_REFUSES;
    }
    facts->subject = subject;
    facts->expires = claims->expires * 1000 + SKEW_MS;
    return find_view(&terms->views, claims, &facts->view) ? TRUST_PASSES : TRUST_NO_SCOPE;
}

/* --- tokens --- */

static bool takes_type(const struct trusted *t, struct span typ)
{
    /* "application/" may be left out, and case does not count (RFC 7515 4.1.9). */
    if (span_eq_nocase(span_cut(typ, 0, 12), SPAN("application/")))
        typ = span_from(typ, 12);
    for (size_t i = 0; i < t->types.n; i++)
        if (span_eq_nocase(typ, span_str(t->types.items[i])) ||
            (!typ.p && strcmp(t->types.items[i], "JWT") == 0))
            return true;
    return false;
}

static struct trusted *issuer_of(struct trust *t, const struct jwt *j)
{
    for (size_t i = 0; i < t->n; i++)
        if (j->claims.issuer.p && span_is(j->claims.issuer, t->items[i].issuer))
            return &t->items[i];
    return NULL;
}

/* The checks of trust.h from the algorithm to the signature. */
static enum trust_answer check_signature(struct trust *t, const struct jwt *j,
                                         struct trusted **issuer, uint64_t *mark, const char **why)
{
    const struct jws_alg *alg = jws_alg_find(j->alg);
    const struct jws_key *key = NULL;

    *issuer = issuer_of(t, j);
    *why = !alg                           ? "its algorithm is not taken here"
           : !*issuer                     ? "its issuer is not known here"
           : !takes_type(*issuer, j->typ) ? "its type (typ) is not that of an access token"
                                          : NULL;
    if (*why)
        return *issuer ? TRUST_REFUSES : TRUST_NOT_OURS;
    switch (keyset_find((*issuer)->keys, j->kid, alg, j->alg, &key, mark)) {
    case KEYSET_WAIT:
        return TRUST_WAIT;
    case KEYSET_DOWN:
        return TRUST_DOWN;
    case KEYSET_UNKNOWN:
        *why = "it is signed with a key that its issuer does not have";
        return TRUST_REFUSES;
    case KEYSET_FOUND:
        break;
    }
    if (jws_verify(key, alg, j->signed_text, buf_view(&j->signature)))
        return TRUST_PASSES;
    *why = "its signature is wrong";
    return TRUST_REFUSES;
}

static enum trust_answer judge(struct trust *t, struct span token, const struct jwt *j,
                               const struct pass **pass, const char **why)
{
    struct pass_facts facts = {.issuer = j->claims.issuer};
    BUF_SCOPED scratch = {0};
    struct trusted *issuer;
    enum trust_answer answer = check_signature(t, j, &issuer, &facts.mark, why);

    if (answer != TRUST_PASSES)
        return answer;
    facts.judge = issuer;
    answer = trust_weigh(&issuer->terms, &j->claims, &facts, &scratch, why);
    if (answer == TRUST_PASSES)
        *pass = passes_add(t->passes, token, &facts);
    return answer;
}

enum trust_answer trust_judge(struct trust *t, struct span token, const struct pass **pass,
                              const char **why)
{
    struct jwt j;
    struct err err;
    enum trust_answer answer = TRUST_NOT_OURS;

    *why = "it is not of a form that is known here";
    if (jwt_read(&j, token, &err) == 0)
        answer = judge(t, token, &j, pass, why);
    else if (span_starts(token, SPAN("ey")) && span_find(token, '.') < token.n)
        *why = "it is not a JWT that can be read";
    jwt_fini(&j);
    return answer;
}

/* --- the entries --- */

static bool is_gone(void *arg, uint64_t mark)
{
    return !keyset_has(arg, mark);
}

static void on_keys(void *arg)
{
    struct trusted *item = arg;

    passes_end(item->all->passes, item, is_gone, item->keys);
    item->all->news(item->all->arg);
}

struct trust_terms trust_copy_terms(struct arena *a, const struct config *c, const char *audience,
                                    const struct config_pairs *views)
{
    struct trust_terms to = {.public_url = arena_text(a, c->public_url)};
    BUF_SCOPED usual = {0};

    buf_printf(&usual, "%s/mcp", c->public_url ? c->public_url : "");
    to.audience = arena_text(a, audience ? audience : buf_cstr(&usual));
    to.views.n = views->n;
    to.views.items = ARENA_ARRAY(a, struct config_pair, views->n + 1);
    for (size_t i = 0; i < views->n; i++)
        to.views.items[i] = (struct config_pair){arena_text(a, views->items[i].name),
                                                 arena_text(a, views->items[i].value)};
    return to;
}

/* The configuration that an entry comes from need not outlive it. */
static void copy_entry(struct trusted *item, struct arena *a, const struct config *c,
                       const struct config_jwt *from)
{
    item->issuer = arena_text(a, from->issuer);
    item->terms = trust_copy_terms(a, c, from->audience, &from->views);
    item->types.n = from->types.n;
    item->types.items = ARENA_ARRAY(a, const char *, from->types.n + 1);
    for (size_t i = 0; i < from->types.n; i++)
        item->types.items[i] = arena_text(a, from->types.items[i]);
}

/* All settings that trust_judge decides by, to compare two configurations. */
static void put_settings(struct buf *out, const struct config *c)
{
    const struct config_pairs *views;

    buf_printf(out, "%s\n", c->public_url ? c->public_url : "");
    for (size_t i = 0; i < c->jwt.n; i++) {
        const struct config_jwt *e = &c->jwt.items[i];
        views = &e->views;
        buf_printf(out, "%s\n%s\n%s\n", e->issuer, e->jwks, e->audience ? e->audience : "");
        for (size_t k = 0; k < views->n; k++)
            buf_printf(out, "%s\n%s\n", views->items[k].name, views->items[k].value);
        for (size_t k = 0; k < e->types.n; k++)
            buf_printf(out, "%s\n", e->types.items[k]);
        buf_char(out, '\f');
    }
}

bool trust_is_same(const struct trust *t, const struct config *c)
{
    BUF_SCOPED settings = {0};

    put_settings(&settings, c);
    return span_eq(buf_view(&settings), buf_view(&t->settings));
}

struct trust *trust_new(struct loop *l, struct http_client *client, const struct config *c,
                        struct passes *passes, void (*news)(void *arg), void *arg)
{
    struct trust *t = MEM_NEW(struct trust);

    t->passes = passes;
    t->news = news;
    t->arg = arg;
    put_settings(&t->settings, c);
    t->items = MEM_ARRAY(struct trusted, c->jwt.n + 1);
    for (size_t i = 0; i < c->jwt.n; i++) {
        struct trusted *item = &t->items[t->n++];
        item->all = t;
        copy_entry(item, &t->arena, c, &c->jwt.items[i]);
        item->keys = keyset_new(l, client, c->jwt.items[i].jwks, on_keys, item);
    }
    return t;
}

void trust_free(struct trust *t)
{
    for (size_t i = 0; i < t->n; i++) {
        passes_end(t->passes, &t->items[i], NULL, NULL);
        keyset_free(t->items[i].keys);
    }
    mem_free(t->items);
    buf_fini(&t->settings);
    arena_fini(&t->arena);
    mem_free(t);
}
