/* The HTTP link: opening and closing, messages held during the handshake, lost sessions, and the
 * ways to a server that are tried in turn. Made by hub/graph/server.c; the provider's files call
 * the link functions, and http_post.c, http_listen.c and http_old_sse.c report to the link. */
#include "mcp/server/http_upstream.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/server/http_link.h"

#include <stdio.h>

enum {
    GOODBYE_MS = 500, /* how long the DELETE that ends the session may take */
    FORGETS_MAX = 3,  /* sessions that the server may forget in a row before we give up */
};

/* --- life --- */

static void drop_posts(struct list *posts)
{
    struct server_post *p;

    while ((p = LIST_FIRST(posts, struct server_post, node)))
        http_post_drop(p);
}

static void forget_session(struct http_upstream *u)
{
    mem_free(u->session);
    u->session = NULL;
    u->epoch++;
}

/* Drop all messages and streams, and forget the session. */
static void clear(struct http_upstream *u)
{
    drop_posts(&u->posts);
    drop_posts(&u->held);
    drop_posts(&u->unsent);
    list_remove(&u->token_wait.node);
    http_listen_stop(u);
    timer_clear(loop_timers(u->loop), &u->report);
    forget_session(u);
    mem_free(u->endpoint);
    u->endpoint = NULL;
}

static void shut(struct http_upstream *u)
{
    clear(u);
    http_client_free(u->client);
    u->client = NULL;
    u->phase = LINK_DOWN;
}

void http_upstream_lost(struct http_upstream *u, const char *why)
{
    if (u->phase == LINK_DOWN || u->phase == LINK_CLOSING)
        return;
    snprintf(u->why, sizeof u->why, "%s", why);
    shut(u);
    mcp_provider_closed(u->provider, u->why);
}

/* Called from the loop after `open` or `close`: tell the provider that the link is up or closed. */
static void report(struct timer *t)
{
    struct http_upstream *u = CONTAINER_OF(t, struct http_upstream, report);

    if (u->phase == LINK_OPENING) {
        u->phase = LINK_FRESH;
        mcp_provider_connected(u->provider);
    } else {
        shut(u);
        mcp_provider_closed(u->provider, "closed");
    }
}

/* --- ways to the server --- */

/* Tried in this order; the next `open` begins with the way that worked. Ways that have a path are
 * for configured addresses that have none: users may know only the host. */
static const struct way {
    const char *path; /* NULL: the address as configured */
    bool old_sse;
} ways[] = {{NULL, false}, {NULL, true}, {"/mcp", false}, {"/sse", true}};
enum { WAYS_WITH_PATH = 2 };

static bool fits(const struct http_upstream *u, const struct way *w)
{
    return u->options.transport == HTTP_TRANSPORT_AUTO ||
           w->old_sse == (u->options.transport == HTTP_TRANSPORT_OLD_SSE);
}

static size_t first_way(const struct http_upstream *u)
{
    return u->options.transport == HTTP_TRANSPORT_OLD_SSE;
}

static bool has_no_path(const char *url)
{
    const char *host = strstr(url, "://");
    const char *end = host ? strpbrk(host + 3, "/?#") : url;

    return !end || strcmp(end, "/") == 0;
}

static void take_way(struct http_upstream *u)
{
    const struct way *w = &ways[u->way];
    char *found = w->path ? http_url_resolve(u->options.url, span_str(w->path)) : NULL;

    mem_free(u->url);
    u->url = found ? found : mem_str(u->options.url);
    u->phase = LINK_OPENING;
    u->old_sse = w->old_sse;
    if (w->old_sse)
        http_old_sse_start(u);
    else
        timer_set(loop_timers(u->loop), &u->report, 0);
}

/* With a token, calls are kept, to be sent again after another sign-in (core/provider.h). */
static void note_token(struct http_upstream *u)
{
    struct http_signer *signer = u->options.signer;
    uint64_t number;

    mcp_provider_core(u->provider)->signed_in = signer && signer->token(signer, &number);
}

static void link_open(void *link)
{
    struct http_upstream *u = link;

    note_token(u);
    u->client = http_client_new(u->loop);
    u->answered = false;
    u->forgets = 0;
    u->tried = 0;
    u->refusal[0] = '\0';
    take_way(u);
}

bool http_upstream_turn(struct http_upstream *u)
{
    size_t n = u->pathless ? COUNT_OF(ways) : WAYS_WITH_PATH;

    while (++u->tried < n) {
        u->way = (u->way + 1) % n;
        if (!fits(u, &ways[u->way]))
            continue;
        clear(u);
        take_way(u);
        return true;
    }
    u->way = first_way(u);
    return false;
}

static bool link_fall_back(void *link)
{
    return http_upstream_turn(link);
}

/* --- tokens --- */

bool http_upstream_may_send(struct http_upstream *u)
{
    struct http_signer *signer = u->options.signer;

    return !signer || u->phase == LINK_CLOSING || signer->ready(signer, &u->token_wait);
}

/* There is a token now, or it could not be fetched: send what waited. */
static void on_token(struct http_signer_wait *w)
{
    struct http_upstream *u = CONTAINER_OF(w, struct http_upstream, token_wait);
    struct list waiting;
    struct server_post *p;

    list_init(&waiting);
    while ((p = LIST_FIRST(&u->unsent, struct server_post, node))) {
        list_remove(&p->node);
        list_append(&waiting, &p->node);
    }
    while ((p = LIST_FIRST(&waiting, struct server_post, node)))
        http_post_send(p);
    if (u->listening && u->listening->unsigned_yet)
        http_listen_go_on(u);
}

void http_upstream_lock(struct http_upstream *u, const char *why)
{
    mcp_provider_locked(u->provider);
    http_upstream_lost(u, why);
}

/* --- the end of a session --- */

static void on_goodbye_head(void *owner, const struct http_head *head)
{
    (void)owner, (void)head;
}

static void on_goodbye_chunk(void *owner, struct span chunk)
{
    (void)owner, (void)chunk;
}

static void on_goodbye_done(void *owner, int code, const char *why, bool delivered)
{
    struct http_upstream *u = owner;

    (void)code, (void)why, (void)delivered;
    timer_set(loop_timers(u->loop), &u->report, 0);
}

static const struct http_fetch_events goodbye_events = {on_goodbye_head, on_goodbye_chunk,
                                                        on_goodbye_done};

static void link_close(void *link)
{
    struct http_upstream *u = link;
    uint64_t wait = 0;

    if (u->phase == LINK_DOWN || u->phase == LINK_CLOSING)
        return;
    u->phase = LINK_CLOSING;
    if (u->session) {
        wait = GOODBYE_MS;
        http_request_start(
            u,
            &(struct request_spec){.method = "DELETE", .version = u->version, .with_session = true},
            &goodbye_events, u);
    }
    clear(u);
    timer_set(loop_timers(u->loop), &u->report, wait);
}

static void link_free(void *link)
{
    struct http_upstream *u = link;

    clear(u);
    http_client_free(u->client);
    idmap_fini(&u->by_id);
    buf_fini(&u->out);
    mem_free(u->url);
    mem_free(u);
}

/* --- messages --- */

static struct buf *link_begin(void *link)
{
    struct http_upstream *u = link;

    u->out.n = 0;
    return &u->out;
}

/* Must the message wait for the end of the handshake? HTTP requests may overtake each other. */
static bool must_wait(const struct http_upstream *u, const struct server_post *p)
{
    if (p->modern || p->initialize || p->initialized || u->phase == LINK_READY)
        return false;
    return p->kind == RPC_REQUEST || p->kind == RPC_NOTIFICATION;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct http_upstream *u = link;

    if (u->phase == LINK_DOWN || u->phase == LINK_OPENING || u->phase == LINK_CLOSING)
        return;
    if (!parcel->modern)
        snprintf(u->version, sizeof u->version, "%s", parcel->version ? parcel->version : "");
    struct server_post *p = http_post_new(u, parcel);
    if (p->initialize)
        u->phase = LINK_GREETING;
    if (must_wait(u, p))
        list_append(&u->held, &p->node);
    else
        http_post_send(p);
}

static bool link_forget(void *link, uint64_t id)
{
    struct http_upstream *u = link;
    struct server_post *p = idmap_get(&u->by_id, id);
    bool waits = p && !p->fetch && !p->resuming && !timer_is_set(&p->timer);
    /* The server never saw a request that waits here, and in the stateless era closing the stream
     * cancels: neither needs a notification. */
    bool known = waits || (p && p->modern && !u->old_sse);

    if (p)
        http_post_drop(p);
    return known;
}

void http_upstream_ready(struct http_upstream *u)
{
    struct server_post *p;

    u->phase = LINK_READY;
    while (u->phase == LINK_READY && (p = LIST_FIRST(&u->held, struct server_post, node)))
        http_post_send(p);
    if (u->phase == LINK_READY && !u->old_sse)
        http_listen_start(u);
}

void http_upstream_forgotten(struct http_upstream *u)
{
    if (u->phase != LINK_READY)
        return;
    if (++u->forgets > FORGETS_MAX) {
        http_upstream_lost(u, "forgets our session as soon as it has given one");
        return;
    }
    forget_session(u);
    http_listen_stop(u);
    u->phase = LINK_GREETING;
    mcp_provider_greet_again(u->provider);
}

static void link_describe(const void *link, struct provider_facts *facts)
{
    const struct http_upstream *u = link;

    facts->transport = u->old_sse ? "sse" : "streamable-http";
}

static const struct mcp_link_ops link_ops = {
    .open = link_open,
    .begin = link_begin,
    .end = link_end,
    .forget = link_forget,
    .fall_back = link_fall_back,
    .close = link_close,
    .free = link_free,
    .reports_failures = true,
    .outlived = true,
    .describe = link_describe,
};

struct mcp_provider *http_upstream_new(struct loop *loop,
                                       const struct http_upstream_options *options)
{
    struct http_upstream *u = MEM_NEW(struct http_upstream);

    u->loop = loop;
    u->options = *options;
    u->pathless = has_no_path(options->url);
    u->way = first_way(u);
    u->report.fire = report;
    list_init(&u->posts);
    list_init(&u->held);
    list_init(&u->unsent);
    list_init(&u->token_wait.node);
    u->token_wait.fire = on_token;
    u->provider = mcp_provider_new(options->alias, &link_ops, u);
    return u->provider;
}
