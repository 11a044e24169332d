/* Finding a server's authorization server, one address after the other. Called by login.c and
 * signin.c before they ask for a token. */
#include "hub/signin/discovery.h"

#include "base/mem.h"
#include "mcp/protocol.h"
#include "wire/challenge.h"

#include <stdio.h>

enum { CANDIDATES_MAX = 3 };

enum stage { ASK_SERVER, READ_RESOURCE, READ_SERVER };

struct discovery {
    struct loop *loop;
    struct http_client *client;
    const struct signin_settings *settings;
    struct url_parts url; /* the server's */
    struct arena arena;
    struct fetched_document *fetch;
    enum stage stage;
    const char *candidates[CANDIDATES_MAX]; /* addresses to try in this stage */
    size_t n, at;
    bool refused;    /* the server answered 401 */
    bool must_exist; /* the server has named the address itself */
    bool bare;       /* neither metadata of the resource nor a configured issuer */
    const char *held, *issuer;
    char last[512]; /* why the last candidate failed */
    struct discovered found;
    discovery_done_fn *done;
    void *owner;
    struct timer fail_later; /* failures that are known at once */
    struct err err;
};

static void try_next(struct discovery *d);

/* --- the end --- */

static void fail(struct discovery *d, bool passing, const struct err *err)
{
    struct err why = *err;

    d->done(d->owner, NULL, &why, passing); /* may free d */
}

static void succeed(struct discovery *d)
{
    d->done(d->owner, &d->found, NULL, false);
}

/* --- addresses --- */

static const char *keep(struct discovery *d, struct buf *text)
{
    const char *copy = arena_span(&d->arena, buf_view(text)).p;

    buf_fini(text);
    return copy;
}

static void add(struct discovery *d, struct span origin, const char *first, struct span path,
                const char *last)
{
    struct buf url = {0};

    if (path.n && path.p[path.n - 1] == '/')
        path.n--;
    buf_span(&url, origin);
    buf_str(&url, first);
    buf_span(&url, path);
    buf_str(&url, last);
    d->candidates[d->n++] = keep(d, &url);
}

static void enter(struct discovery *d, enum stage stage)
{
    d->stage = stage;
    d->n = d->at = 0;
    d->last[0] = '\0';
}

#define RESOURCE_PATH "/.well-known/oauth-protected-resource"
#define SERVER_PATH   "/.well-known/oauth-authorization-server"
#define OPENID_PATH   "/.well-known/openid-configuration"

/* `named` is the address in the challenge; p == NULL when there is none. */
static void look_for_resource(struct discovery *d, struct span named)
{
    struct url_parts u;

    enter(d, READ_RESOURCE);
    d->must_exist = named.p != NULL;
    if (named.p && url_read(&u, named) && url_is_safe(&u)) {
        d->candidates[d->n++] = arena_span(&d->arena, named).p;
    } else if (named.p) {
        snprintf(d->last, sizeof d->last, "its address '%.100s' cannot be used",
                 arena_span(&d->arena, named).p);
    } else {
        if (d->url.path.n > 1)
            add(d, d->url.origin, RESOURCE_PATH, d->url.path, "");
        add(d, d->url.origin, RESOURCE_PATH, SPAN_EMPTY, "");
    }
    try_next(d);
}

static void look_for_server(struct discovery *d)
{
    struct url_parts u;

    enter(d, READ_SERVER);
    if (!url_read(&u, span_str(d->issuer)) || !url_is_safe(&u)) {
        snprintf(d->last, sizeof d->last, "that is not an https address");
    } else if (u.path.n > 1) {
        add(d, u.origin, SERVER_PATH, u.path, "");
        add(d, u.origin, OPENID_PATH, u.path, "");
        add(d, u.origin, "", u.path, OPENID_PATH);
    } else {
        add(d, u.origin, SERVER_PATH, SPAN_EMPTY, "");
        add(d, u.origin, OPENID_PATH, SPAN_EMPTY, "");
    }
    try_next(d);
}

/* --- without metadata --- */

static const char *endpoint_at(struct discovery *d, const char *path)
{
    struct buf url = {0};

    buf_span(&url, d->url.origin);
    buf_str(&url, path);
    return keep(d, &url);
}

/* A server of 2025-03-26 may have no metadata at all: its endpoints have fixed names. */
static void assume_endpoints(struct discovery *d)
{
    d->found.as = (struct oauth_server){
        .issuer = d->issuer,
        .authorize = endpoint_at(d, "/authorize"),
        .token = endpoint_at(d, "/token"),
        .registration = endpoint_at(d, "/register"),
        .methods = 1u << OAUTH_NONE | 1u << OAUTH_BASIC | 1u << OAUTH_POST,
        .has_code = true,
        .has_s256 = true,
    };
    succeed(d);
}

/* There is no metadata of the resource. */
static void go_on_without(struct discovery *d)
{
    BUF_SCOPED name = {0}, origin = {0};

    url_put_resource(&name, &d->url);
    d->found.resource = keep(d, &name);
    d->bare = !d->settings->issuer;
    buf_span(&origin, d->url.origin);
    d->issuer = d->settings->issuer ? d->settings->issuer : keep(d, &origin);
    look_for_server(d);
}

/* All addresses of this stage have failed. */
static void exhausted(struct discovery *d)
{
    const char *alias = d->settings->alias;

    if (d->stage == READ_RESOURCE && !d->must_exist && (d->refused || d->settings->issuer)) {
        go_on_without(d);
    } else if (d->stage == READ_SERVER && d->bare) {
        assume_endpoints(d);
    } else if (d->stage == READ_RESOURCE && !d->must_exist) {
        err_set(&d->err, ERR_PROTOCOL, "server '%s' does not ask for a sign-in", alias);
        err_hint(&d->err, "if it should, give servers.%s.auth.issuer", alias);
        fail(d, false, &d->err);
    } else if (d->stage == READ_RESOURCE) {
        err_set(&d->err, ERR_PROTOCOL, "server '%s' names metadata that cannot be read: %s", alias,
                d->last);
        fail(d, false, &d->err);
    } else {
        err_set(
            &d->err, ERR_PROTOCOL,
            "the authorization server '%.150s' of server '%s' has no metadata that can be used: "
            "%s",
            d->issuer, alias, d->last);
        fail(d, false, &d->err);
    }
}

/* --- answers --- */

/* Which of the authorization servers to ask: the configured one, else `held`, else the first. */
static const char *choose(const struct discovery *d, const struct oauth_resource *r)
{
    if (d->settings->issuer)
        return d->settings->issuer;
    for (size_t i = 0; d->held && i < r->n_servers; i++)
        if (strcmp(r->servers[i], d->held) == 0)
            return r->servers[i];
    return r->servers[0];
}

static void take_resource(struct discovery *d, struct span text)
{
    struct oauth_resource r;
    struct err err;

    if (oauth_read_resource(&r, text, &d->arena, &err)) {
        snprintf(d->last, sizeof d->last, "%s", err.text);
        try_next(d);
        return;
    }
    if (!oauth_resource_covers(r.resource, &d->url)) {
        err_set(&d->err, ERR_PROTOCOL,
                "the metadata of server '%s' is for another resource, '%.150s', and not for "
                "'%.150s'",
                d->settings->alias, r.resource, d->settings->url);
        err_hint(&d->err, "tokens for the one could be used at the other: ask who runs the server");
        fail(d, false, &d->err);
        return;
    }
    d->found.resource = r.resource;
    if (!d->found.scopes)
        d->found.scopes = r.scopes;
    d->issuer = choose(d, &r);
    look_for_server(d);
}

static void take_server(struct discovery *d, struct span text)
{
    struct err err;

    int code = oauth_read_server(&d->found.as, text, d->issuer, &d->arena, &err);
    if (!code) {
        succeed(d);
        return;
    }
    snprintf(d->last, sizeof d->last, "%s", err.text);
    try_next(d);
}

/* Not only after a 401: a server may answer the ping without a token, and refuse calls later. */
static void take_challenge(struct discovery *d, const struct document_answer *a)
{
    BUF_SCOPED all = {0}, scratch = {0};
    struct challenge c = {0};

    d->found.reach = (struct reach){
        .everywhere = true, .near = !reach_has_ip(&(struct reach){0}, a->head.ip, d->url.port)};
    d->refused = a->head.status == 401;
    if (d->refused || a->head.status == 403) {
        http_head_put_all(&all, &a->head, "WWW-Authenticate");
        (void)challenge_read(buf_view(&all), &c, &scratch);
    }
    if (oauth_is_scope(c.scope))
        d->found.scopes = arena_span(&d->arena, c.scope).p;
    look_for_resource(d, c.resource_metadata);
}

static void on_answer(void *owner, const struct document_answer *a)
{
    struct discovery *d = owner;
    int status = a->head.status;

    d->fetch = NULL;
    if (d->stage == ASK_SERVER && status && status < 500) {
        take_challenge(d, a); /* the head is enough */
    } else if (a->code || (status >= 500 && status != 502)) {
        /* This does not say whether the document exists: trying again later may help. */
        if (a->code)
            err_set(&d->err, a->code, "server '%s': %s cannot be read: %s", d->settings->alias,
                    d->stage == ASK_SERVER ? d->settings->url : d->candidates[d->at - 1], a->why);
        else
            err_set(&d->err, ERR_PROTOCOL, "server '%s': HTTP %d from %s", d->settings->alias,
                    status, d->stage == ASK_SERVER ? d->settings->url : d->candidates[d->at - 1]);
        fail(d, true, &d->err);
    } else if (status != 200) {
        if (!d->last[0]) /* a reason found in a document says more than a status */
            snprintf(d->last, sizeof d->last, "HTTP %d", status);
        try_next(d);
    } else if (d->stage == READ_RESOURCE) {
        take_resource(d, a->body);
    } else {
        take_server(d, a->body);
    }
}

/* --- requests --- */

static void try_next(struct discovery *d)
{
    static const char *const headers[] = {"Accept: application/json",
                                          "MCP-Protocol-Version: " MCP_MODERN, NULL};

    if (d->at == d->n) {
        exhausted(d);
        return;
    }
    struct document_spec spec = {
        .fetch = {.method = "GET",
                  .url = d->candidates[d->at++],
                  .headers = headers,
                  .ca = d->settings->ca,
                  .reach = &d->found.reach},
        .max = OAUTH_DOCUMENT_MAX,
        .timeout = DISCOVERY_TIMEOUT_MS,
    };
    d->fetch = document_fetch(d->loop, d->client, &spec, on_answer, d);
}

/* Any request will do: servers look for a token first. */
static void ask_server(struct discovery *d)
{
    static const char *const ours[] = {"Content-Type: application/json",
                                       "Accept: application/json, text/event-stream",
                                       "MCP-Protocol-Version: " MCP_NEWEST_LEGACY};
    static const struct reach anywhere = {.everywhere = true, .near = true};
    struct buf body = {0};
    size_t n = 0;

    while (d->settings->headers && d->settings->headers[n])
        n++;
    const char **headers = ARENA_ARRAY(&d->arena, const char *, n + COUNT_OF(ours) + 1);
    for (size_t i = 0; i < n; i++)
        headers[i] = d->settings->headers[i];
    memcpy(headers + n, ours, sizeof ours);
    buf_str(&body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    struct document_spec spec = {
        .fetch = {.method = "POST",
                  .url = d->settings->url,
                  .headers = headers,
                  .body = &body,
                  .ca = d->settings->ca,
                  .reach = &anywhere},
        .max = OAUTH_DOCUMENT_MAX,
        .timeout = DISCOVERY_TIMEOUT_MS,
    };
    d->fetch = document_fetch(d->loop, d->client, &spec, on_answer, d);
}

static void on_fail_later(struct timer *t)
{
    struct discovery *d = CONTAINER_OF(t, struct discovery, fail_later);

    fail(d, false, &d->err);
}

struct discovery *discovery_start(struct loop *loop, struct http_client *client,
                                  const struct signin_settings *settings, const char *held,
                                  discovery_done_fn *done, void *owner)
{
    struct discovery *d = MEM_NEW(struct discovery);

    d->loop = loop;
    d->client = client;
    d->settings = settings;
    d->held = held ? arena_span(&d->arena, span_str(held)).p : NULL;
    d->done = done;
    d->owner = owner;
    d->fail_later.fire = on_fail_later;
    if (url_read(&d->url, span_str(settings->url)) && url_is_safe(&d->url)) {
        ask_server(d);
        return d;
    }
    err_set(&d->err, ERR_CONFIG, "nobody can sign in to server '%s': its url is not https",
            settings->alias);
    timer_set(loop_timers(loop), &d->fail_later, 0);
    return d;
}

void discovery_free(struct discovery *d)
{
    if (!d)
        return;
    if (d->fetch)
        document_cancel(d->fetch);
    timer_clear(loop_timers(d->loop), &d->fail_later);
    arena_fini(&d->arena);
    mem_free(d);
}
