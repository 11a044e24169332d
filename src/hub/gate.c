/* Bearer tokens compared by their hashes, the 401 answer, and the metadata of RFC 9728. Called by
 * front.c for requests, by cmd/config.c for new tokens, and by the commands that check `listen` and
 * `auth` of a configuration (serve, browser, check, doctor). */
#include "hub/gate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/rpc.h"

#include <stdio.h>

struct gate {
    const struct config_token *tokens;
    size_t n;
    unsigned char (*hashes)[SHA256_N];
};

/* --- tokens --- */

static unsigned char digit(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

struct gate *gate_new(const struct config *c)
{
    if (!c->tokens.n)
        return NULL;
    struct gate *g = MEM_NEW(struct gate);
    g->tokens = c->tokens.items;
    g->n = c->tokens.n;
    g->hashes = mem_zalloc(g->n * sizeof *g->hashes);
    for (size_t i = 0; i < g->n; i++) {
        const char *hex = g->tokens[i].hash + strlen("sha256:"); /* checked by config/ */
        for (size_t k = 0; k < SHA256_N; k++)
            g->hashes[i][k] = (unsigned char)(digit(hex[2 * k]) << 4 | digit(hex[2 * k + 1]));
    }
    return g;
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    mem_free(g->hashes);
    mem_free(g);
}

void gate_check(const struct config *c, struct problems *problems)
{
    for (size_t i = 0; !c->tokens.n && !c->anonymous && i < c->listen.n; i++)
        if (c->listen.items[i].open)
            problems_add(problems, PROBLEM_ERROR, (struct place){0}, "listen",
                         "other machines reach %s, and there are no tokens; add auth.tokens "
                         "('rialto config --new-token NAME' makes one), or say that everybody may "
                         "use all servers, auth: {anonymous: true}",
                         c->listen.items[i].address);
}

const struct config_token *gate_find(const struct gate *g, const struct http_request *req)
{
    struct span token = http_bearer(req);
    unsigned char hash[SHA256_N];
    const struct config_token *found = NULL;

    if (!token.n)
        return NULL;
    sha_256(hash, token);
    for (size_t i = 0; i < g->n; i++)
        if (sha_same(hash, g->hashes[i], sizeof hash))
            found = &g->tokens[i];
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

void gate_refuse(struct http_exchange *x, const struct http_request *req)
{
    bool wrong = http_bearer(req).n > 0;
    const char *error = wrong ? "Unauthorized: this bearer token is not known here"
                              : "Unauthorized: a bearer token is needed";
    const char *hint = "send Authorization: Bearer TOKEN; whoever looks after this bridge has it "
                       "from 'rialto config --new-token NAME'";
    struct buf headers = {0}, text = {0};

    log_warn("http", "refused a request from %s: %s", http_exchange_peer(x),
             wrong ? "its token is not in auth.tokens" : "it shows no token");
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
