/* Asking an issuer about tokens, and asking again while they are in use. Called by gate.c. */
#include "hub/auth/introspection.h"

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/secret.h"
#include "io/document.h"
#include "wire/json.h"
#include "wire/webform.h"

enum {
    ANSWER_MAX = 64 * 1024,
    ASK_MS = 10 * 1000,
    KEEP_MS = 60 * 1000,
    AGAIN_MS = 45 * 1000, /* after a good answer, while the token is in use */
    REFUSED_MS = 10 * 1000,
    DOWN_MS = 2 * 1000,
    RECENT = 256,
    ASKED_MAX = 200, /* at once */
    TOKEN_MAX = 8 * 1024,
};

/* A token that the issuer is being asked about, or has said to be valid. */
struct inquiry {
    struct list node;
    struct introspection *all;
    struct fetched_document *fetch; /* NULL: answered */
    struct timer again;
    uint64_t mark;
    size_t token_n;
    char token[];
};

/* A token that was not found valid a moment ago. */
struct refused_token {
    unsigned char hash[SHA256_N];
    uint64_t until;
    enum trust_answer answer;
    const char *why;
};

struct introspection {
    struct loop *loop;
    struct http_client *client;
    struct passes *passes;
    struct arena arena;
    struct buf settings, authorization;
    const char *url, *issuer;
    struct trust_terms terms;
    struct list inquiries;
    size_t asked;
    struct refused_token recent[RECENT];
    size_t next;
    void (*news)(void *arg);
    void *arg;
};

static struct span token_of(const struct inquiry *q)
{
    return span_of(q->token, q->token_n);
}

/* --- answers --- */

static void forget(struct inquiry *q)
{
    timer_clear(loop_timers(q->all->loop), &q->again);
    if (q->fetch) {
        document_cancel(q->fetch);
        q->all->asked--;
    }
    list_remove(&q->node);
    explicit_bzero(q->token, q->token_n);
    mem_free(q);
}

static bool is_mark(void *arg, uint64_t mark)
{
    return *(const uint64_t *)arg == mark;
}

/* The token is not valid, or that cannot be known now: remember this for a while. */
static void refuse(struct inquiry *q, enum trust_answer answer, const char *why)
{
    struct introspection *i = q->all;
    struct refused_token *r = &i->recent[i->next++ % RECENT];

    sha_256(r->hash, token_of(q));
    r->until = loop_now(i->loop) + (answer == TRUST_DOWN ? DOWN_MS : REFUSED_MS);
    r->answer = answer;
    r->why = why;
    if (answer != TRUST_DOWN)
        passes_end(i->passes, i, is_mark, &q->mark);
    forget(q);
}

static void admit(struct inquiry *q, struct pass_facts *facts)
{
    struct introspection *i = q->all;
    int64_t latest = pass_clock() + KEEP_MS;

    if (facts->expires > latest)
        facts->expires = latest;
    facts->judge = i;
    facts->mark = q->mark;
    passes_add(i->passes, token_of(q), facts);
    timer_set(loop_timers(i->loop), &q->again, AGAIN_MS);
}

static void weigh(struct inquiry *q, struct span body)
{
    struct introspection *i = q->all;
    struct pass_facts facts = {0};
    struct jwt_claims claims;
    BUF_SCOPED scratch = {0};
    struct err err;
    const char *why = "its issuer says that it is not valid";
    enum trust_answer answer = TRUST_REFUSES;

    if (jwt_claims_read(&claims, body, &err)) {
        log_warn("auth", "the answer of %s is not valid: %s", i->url, err.text);
        answer = TRUST_DOWN;
    } else if (claims.active) {
        /* Some issuers send no expiry time: then the answer holds as long as we keep it. */
        if (claims.expires == INT64_MIN)
            claims.expires = pass_clock() / 1000 + KEEP_MS / 1000;
        facts.issuer = claims.issuer.n ? claims.issuer : span_str(i->issuer ? i->issuer : i->url);
        answer = trust_weigh(&i->terms, &claims, &facts, &scratch, &why);
        if (i->issuer && claims.issuer.n && !span_is(claims.issuer, i->issuer)) {
            why = "it is of another issuer";
            answer = TRUST_REFUSES;
        }
    }
    if (answer == TRUST_PASSES)
        admit(q, &facts);
    else
        refuse(q, answer, why);
    buf_fini(&claims.own);
}

static void on_answer(void *owner, const struct document_answer *a)
{
    struct inquiry *q = owner;
    struct introspection *i = q->all;

    q->fetch = NULL;
    i->asked--;
    if (a->code == 0 && a->head.status == 200) {
        weigh(q, a->body);
    } else {
        if (a->code)
            log_warn("auth", "cannot ask %s about a token: %s", i->url, a->why);
        else
            log_warn("auth", "cannot ask %s about a token: the answer is HTTP %d", i->url,
                     a->head.status);
        refuse(q, TRUST_DOWN, "its issuer did not answer");
    }
    i->news(i->arg);
}

/* --- questions --- */

static void ask(struct inquiry *q)
{
    struct introspection *i = q->all;
    const char *headers[] = {"Content-Type: application/x-www-form-urlencoded",
                             "Accept: application/json",
                             i->authorization.n ? buf_cstr(&i->authorization) : NULL, NULL};
    struct buf body = {0};

    webform_put(&body, "token", token_of(q));
    webform_put(&body, "token_type_hint", SPAN("access_token"));
    i->asked++;
    q->fetch = document_fetch(
        i->loop, i->client,
        &(struct document_spec){
            .fetch = {.method = "POST", .url = i->url, .headers = headers, .body = &body},
            .max = ANSWER_MAX,
            .timeout = ASK_MS},
        on_answer, q);
}

/* Ask again if the token is still in use. */
static void on_again(struct timer *t)
{
    struct inquiry *q = CONTAINER_OF(t, struct inquiry, again);
    const struct pass *p = passes_find(q->all->passes, token_of(q));

    if (p && pass_is_in_use(p) && q->all->asked < ASKED_MAX)
        ask(q);
    else
        forget(q);
}

static void start(struct introspection *i, struct span token)
{
    struct inquiry *q = mem_zalloc(sizeof *q + token.n);

    q->all = i;
    q->token_n = token.n;
    memcpy(q->token, token.p, token.n);
    q->mark = id_random_u64();
    q->again.fire = on_again;
    list_append(&i->inquiries, &q->node);
    ask(q);
}

static struct inquiry *find_inquiry(struct introspection *i, struct span token)
{
    LIST_EACH (&i->inquiries, it) {
        struct inquiry *q = LIST_ENTRY(it, struct inquiry, node);
        if (span_eq(token_of(q), token))
            return q;
    }
    return NULL;
}

enum trust_answer introspection_judge(struct introspection *i, struct span token,
                                      const struct pass **pass, const char **why)
{
    unsigned char hash[SHA256_N];
    uint64_t now = loop_now(i->loop);

    (void)pass; /* a token with a pass does not come here */
    *why = "it is longer than any token";
    if (token.n > TOKEN_MAX)
        return TRUST_REFUSES;
    sha_256(hash, token);
    for (size_t k = 0; k < RECENT; k++) {
        const struct refused_token *r = &i->recent[k];
        if (r->until > now && memcmp(r->hash, hash, sizeof hash) == 0) {
            *why = r->why;
            return r->answer;
        }
    }
    struct inquiry *q = find_inquiry(i, token);
    if (q && q->fetch)
        return TRUST_WAIT;
    if (i->asked >= ASKED_MAX)
        return TRUST_DOWN;
    if (q)
        ask(q); /* the pass is over, and the token is used again */
    else
        start(i, token);
    return TRUST_WAIT;
}

/* --- life --- */

static void put_settings(struct buf *out, const struct config *c)
{
    const char *texts[] = {c->public_url,
                           c->introspection.url,
                           c->introspection.issuer,
                           c->introspection.client_id,
                           c->introspection.client_secret,
                           c->introspection.audience};

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        buf_printf(out, "%s\n", texts[i] ? texts[i] : "");
    for (size_t i = 0; i < c->introspection.views.n; i++)
        buf_printf(out, "%s\n%s\n", c->introspection.views.items[i].name,
                   c->introspection.views.items[i].value);
}

bool introspection_is_same(const struct introspection *i, const struct config *c)
{
    BUF_SCOPED settings = {0};

    put_settings(&settings, c);
    return span_eq(buf_view(&settings), buf_view(&i->settings));
}

/* "Authorization: Basic ...", with both texts form-encoded first (RFC 6749 2.3.1). */
static void put_authorization(struct introspection *i, const struct config *c)
{
    struct secrets *secrets = secrets_new(c);
    BUF_SCOPED secret = {0}, both = {0}, missing = {0};

    if (c->introspection.client_secret)
        secrets_fill(secrets, c->introspection.client_secret, &secret, &missing);
    secrets_free(secrets);
    if (missing.n)
        log_error("auth", "auth.introspection.client_secret: %s is not set", buf_cstr(&missing));
    log_add_secret(buf_view(&secret));
    if (!c->introspection.client_id)
        return;
    webform_put_text(&both, span_str(c->introspection.client_id));
    buf_char(&both, ':');
    webform_put_text(&both, buf_view(&secret));
    buf_str(&i->authorization, "Authorization: Basic ");
    base64_put(&i->authorization, buf_view(&both));
    log_add_secret(buf_view(&both));
}

struct introspection *introspection_new(struct loop *l, struct http_client *client,
                                        const struct config *c, struct passes *passes,
                                        void (*news)(void *arg), void *arg)
{
    struct introspection *i = MEM_NEW(struct introspection);

    i->loop = l;
    i->client = client;
    i->passes = passes;
    i->news = news;
    i->arg = arg;
    list_init(&i->inquiries);
    put_settings(&i->settings, c);
    put_authorization(i, c);
    i->url = arena_text(&i->arena, c->introspection.url);
    i->issuer = arena_text(&i->arena, c->introspection.issuer);
    i->terms = trust_copy_terms(&i->arena, c, c->introspection.audience, &c->introspection.views);
    return i;
}

void introspection_free(struct introspection *i)
{
    passes_end(i->passes, i, NULL, NULL);
    LIST_EACH_SAFE (&i->inquiries, it)
        forget(LIST_ENTRY(it, struct inquiry, node));
    if (i->authorization.n)
        explicit_bzero(i->authorization.p, i->authorization.n);
    buf_fini(&i->authorization);
    buf_fini(&i->settings);
    arena_fini(&i->arena);
    mem_free(i);
}
