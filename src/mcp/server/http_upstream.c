/* The HTTP link: opening, messages held during the handshake, lost sessions, the older transport.
 * Made by hub/server.c; the provider's files call its link functions, http_*.c report to it. */
#include "mcp/server/http_upstream.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/server/http_link.h"

#include <stdio.h>

enum {
    GOODBYE_MS = 500, /* the server gets so long to hear that we leave */
    FORGETS_MAX = 3,  /* sessions forgotten in a row before we give up */
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

/* Nothing is under way any more and nothing is known of the server. */
static void clear(struct http_upstream *u)
{
    drop_posts(&u->posts);
    drop_posts(&u->held);
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

/* Once per turn of affairs, from the loop: tell what `open` or `close` led to. */
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

static void link_open(void *link)
{
    struct http_upstream *u = link;

    u->client = http_client_new(u->loop);
    u->phase = LINK_OPENING;
    u->answered = u->old_sse = false;
    u->forgets = 0;
    u->refusal[0] = '\0';
    if (u->options.transport == HTTP_TRANSPORT_OLD_SSE)
        http_old_sse_start(u);
    else
        timer_set(loop_timers(u->loop), &u->report, 0);
}

static bool link_fall_back(void *link)
{
    struct http_upstream *u = link;

    if (u->options.transport != HTTP_TRANSPORT_AUTO || u->old_sse)
        return false;
    clear(u);
    u->phase = LINK_OPENING;
    http_old_sse_start(u);
    return true;
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
    mem_free(u);
}

/* --- messages --- */

static struct buf *link_begin(void *link)
{
    struct http_upstream *u = link;

    u->out.n = 0;
    return &u->out;
}

/* What the server must not see before the handshake is over; two requests may overtake each other.
 */
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
    /* One that waits was never seen; in the stateless era a closed stream says it all. */
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
    .describe = link_describe,
};

struct mcp_provider *http_upstream_new(struct loop *loop,
                                       const struct http_upstream_options *options)
{
    struct http_upstream *u = MEM_NEW(struct http_upstream);

    u->loop = loop;
    u->options = *options;
    u->report.fire = report;
    list_init(&u->posts);
    list_init(&u->held);
    u->provider = mcp_provider_new(options->alias, &link_ops, u);
    return u->provider;
}
