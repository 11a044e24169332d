/* Bearer tokens compared by their hashes, the 401 answer, and the metadata of RFC 9728. Called by
 * front.c for requests, by cmd/token.c for new tokens, and by the commands that check `listen` and
 * `auth` of a configuration (serve, browser, check, doctor). */
#include "hub/gate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/units.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/rpc.h"

#include <stdio.h>
#include <time.h>

/* A machine that slept, or whose clock was set, has to look again before the timer says so. */
enum { LOOK_AGAIN_MS = 60 * 1000 };

struct gate {
    struct loop *loop;
    bool asks;
    struct gate_token *tokens;
    size_t n;
    struct timer expiry; /* set while a token is going to expire */
    void (*ended)(void *arg);
    void *ended_arg;
};

/* --- tokens --- */

static int64_t wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static unsigned char digit(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static bool is_over(const struct gate_token *t, int64_t now)
{
    return t->expires && t->expires <= now;
}

static void tell_ended(struct gate *g)
{
    if (g->ended)
        g->ended(g->ended_arg);
}

/* Ends the principals whose tokens have expired; sets the timer for the next one. */
static bool look_at_clock(struct gate *g)
{
    int64_t now = wall_clock(), wait = INT64_MAX;
    bool any = false;

    for (size_t i = 0; i < g->n; i++) {
        struct gate_token *t = &g->tokens[i];
        if (is_over(t, now) && !t->who->ended) {
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
    struct gate_token t = {.view = from->view ? mem_str(from->view) : NULL, .role = from->role};

    for (size_t k = 0; k < SHA256_N; k++)
        t.hash[k] = (unsigned char)(digit(hex[2 * k]) << 4 | digit(hex[2 * k + 1]));
    if (from->expires)
        (void)units_read_time(span_str(from->expires), &t.expires); /* checked by config/ */
    return t;
}

/* Does the owner get the same by both? Otherwise what it has open must end. */
static bool is_same(const struct gate_token *a, const char *name, const struct gate_token *b)
{
    bool same_view = a->view && b->view ? strcmp(a->view, b->view) == 0 : a->view == b->view;

    return !a->who->ended && strcmp(a->who->name, name) == 0 && same_view && a->role == b->role &&
           memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

/* The principal of the same token before, or a new one. */
static struct principal *principal_for(struct gate *g, const char *name, const struct gate_token *t)
{
    for (size_t i = 0; i < g->n; i++)
        if (is_same(&g->tokens[i], name, t))
            return principal_hold(g->tokens[i].who);
    return principal_new(name);
}

/* A principal that only the old tokens hold on to, or whose calls hold it, has lost its token. */
static bool end_lost(struct gate_token *old, size_t n_old, const struct gate *g)
{
    bool any = false;

    for (size_t i = 0; i < n_old; i++) {
        bool kept = old[i].who->ended;
        for (size_t k = 0; k < g->n && !kept; k++)
            kept = g->tokens[k].who == old[i].who;
        if (!kept) {
            log_info("http", "the token '%s' was revoked or changed", old[i].who->name);
            old[i].who->ended = any = true;
        }
    }
    return any;
}

static void free_tokens(struct gate_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        principal_release(tokens[i].who);
        mem_free(tokens[i].view);
    }
    mem_free(tokens);
}

void gate_apply(struct gate *g, const struct config *c)
{
    struct gate_token *old = g->tokens, *fresh = MEM_ARRAY(struct gate_token, c->tokens.n + 1);
    size_t n_old = g->n;
    bool opened = g->asks;

    for (size_t i = 0; i < c->tokens.n; i++) {
        const struct config_token *from = &c->tokens.items[i];
        fresh[i] = token_of(from);
        fresh[i].who = principal_for(g, from->name, &fresh[i]);
        principal_set_limits(fresh[i].who, &from->limits);
    }
    g->tokens = fresh;
    g->n = c->tokens.n;
    g->asks = c->asks_tokens;
    bool any = end_lost(old, n_old, g);
    any |= look_at_clock(g);
    free_tokens(old, n_old);
    if (any || opened != g->asks)
        tell_ended(g);
}

void gate_on_ended(struct gate *g, void (*ended)(void *arg), void *arg)
{
    g->ended = ended;
    g->ended_arg = arg;
}

struct gate *gate_new(struct loop *loop)
{
    struct gate *g = MEM_NEW(struct gate);

    g->loop = loop;
    g->expiry.fire = on_expiry;
    return g;
}

void gate_free(struct gate *g)
{
    timer_clear(loop_timers(g->loop), &g->expiry);
    free_tokens(g->tokens, g->n);
    mem_free(g);
}

bool gate_asks(const struct gate *g)
{
    return g->asks;
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

static const struct gate_token *find_shown(const struct gate *g, const struct http_request *req)
{
    struct span token = http_bearer(req);
    unsigned char hash[SHA256_N];
    const struct gate_token *found = NULL;

    if (!token.n)
        return NULL;
    sha_256(hash, token);
    for (size_t i = 0; i < g->n; i++)
        if (sha_same(hash, g->tokens[i].hash, sizeof hash))
            found = &g->tokens[i];
    return found;
}

const struct gate_token *gate_find(const struct gate *g, const struct http_request *req)
{
    const struct gate_token *found = find_shown(g, req);

    if (!found || found->who->ended || (found->expires && is_over(found, wall_clock())))
        return NULL;
    return found;
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

static bool is_made_of(struct span text, const char *more)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (!c || !strchr(more, c)))
            return false;
    }
    return text.n > 0;
}

/* "https://host:port" as the client wrote it, since the client compares the metadata with that. */
static void put_origin(struct buf *out, const struct http_exchange *x,
                       const struct http_request *req)
{
    struct span host = http_header(req, "host");

    buf_str(out, http_exchange_is_secure(x) ? "https://" : "http://");
    buf_span(out, is_made_of(host, ".:-_[]") ? host : SPAN("localhost"));
}

/* The protected resource that a path belongs to. */
static struct span resource_of(struct span path)
{
    bool is_one = span_starts(path, SPAN("/mcp")) || span_starts(path, SPAN("/sse"));

    return is_one && is_made_of(path, "/._-") ? path : SPAN("/mcp");
}

static bool speaks_rpc(struct span path)
{
    return span_starts(path, SPAN("/mcp")) || span_is(path, "/sse");
}

void gate_refuse(const struct gate *g, struct http_exchange *x, const struct http_request *req)
{
    bool wrong = http_bearer(req).n > 0, known = find_shown(g, req) != NULL;
    const char *error = known   ? "Unauthorized: this bearer token has expired"
                        : wrong ? "Unauthorized: this bearer token is not known here"
                                : "Unauthorized: a bearer token is needed";
    const char *hint = "send Authorization: Bearer TOKEN; whoever looks after this bridge has it "
                       "from 'rialto token add NAME'";
    struct buf headers = {0}, text = {0};

    log_warn("http", "refused a request from %s: %s", http_exchange_peer(x),
             known   ? "its token has expired"
             : wrong ? "its token is not in auth.tokens"
                     : "it shows no token");
    buf_str(&headers, "WWW-Authenticate: Bearer resource_metadata=\"");
    put_origin(&headers, x, req);
    buf_str(&headers, GATE_METADATA);
    buf_span(&headers, resource_of(req->path));
    buf_printf(&headers, "\"%s\r\n", wrong ? ", error=\"invalid_token\"" : "");
    if (speaks_rpc(req->path)) {
        struct buf *out = http_respond_begin(x, 401, "application/json", buf_view(&headers));
        buf_printf(&text, "%s: %s", error, hint);
        rpc_put_error(out, SPAN_EMPTY, MCP_ERROR_SERVER, buf_view(&text), SPAN_EMPTY);
        http_respond_end(x);
    } else {
        http_refuse_with(x, 401, buf_view(&headers), error, hint);
    }
    buf_fini(&text);
    buf_fini(&headers);
}

void gate_describe(struct http_exchange *x, const struct http_request *req, struct span rest)
{
    struct buf resource = {0};

    put_origin(&resource, x, req);
    buf_span(&resource, resource_of(rest));
    /* No authorization_servers: a person hands the tokens out, and an empty list is not allowed. */
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_str(out, "{\"resource\":");
    json_quote(out, buf_view(&resource));
    buf_str(out, ",\"bearer_methods_supported\":[\"header\"],\"resource_name\":\"Rialto\"}\n");
    http_respond_end(x);
    buf_fini(&resource);
}
