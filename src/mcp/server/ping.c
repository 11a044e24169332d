/* Pings to a silent server of the initialize era; a server that does not answer is given up. Called
 * by provider.c when the link is up, and by its timer; hub/graph/server.c sets the interval. */
#include "base/log.h"
#include "mcp/server/upstream.h"

/* How long a server may take to answer a ping. */
enum { PING_LIMIT_MS = 10 * 1000 };

static void set_timer(struct mcp_provider *p, uint64_t wait)
{
    timer_set(router_timers(p->core.router), &p->ping, wait);
}

static void is_alive(struct mcp_provider *p)
{
    p->pinged = NULL;
    set_timer(p, p->ping_interval);
}

static void ping_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)sent, (void)m; /* an error is a sign of life as well */
    is_alive(p);
}

static void ping_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)sent;
    if (status) {
        is_alive(p); /* an HTTP status is an answer as well */
        return;
    }
    p->pinged = NULL;
    handshake_give_up(p, "could not be reached by a ping: %s", why);
}

static void send_ping(struct mcp_provider *p)
{
    p->pinged = upstream_sent_new(p, ping_answered, ping_failed);
    p->pinged_at = router_timers(p->core.router)->now;
    set_timer(p, PING_LIMIT_MS);
    upstream_request(p, p->pinged, "ping", SPAN_EMPTY);
}

/* The ping was not answered within the limit. */
static void no_answer(struct mcp_provider *p)
{
    if (p->heard_at > p->pinged_at) {
        upstream_withdraw(p, p->pinged->id, "timeout"); /* the server sent other messages */
        upstream_sent_free(p, p->pinged);
        is_alive(p);
        return;
    }
    upstream_sent_free(p, p->pinged);
    p->pinged = NULL;
    handshake_give_up(p, "did not answer a ping within %d s", PING_LIMIT_MS / 1000);
}

/* A server at work may be too busy to answer, and its call has a deadline of its own; the stateless
 * era has no ping. */
static bool may_ping(const struct mcp_provider *p)
{
    return p->core.state == PROVIDER_READY && !p->modern && !p->core.n_open;
}

void ping_on_answer(struct timer *t)
{
    struct mcp_provider *p = CONTAINER_OF(t, struct mcp_provider, ping);
    uint64_t quiet = router_timers(p->core.router)->now - p->heard_at;

    if (p->pinged)
        no_answer(p);
    else if (quiet < p->ping_interval)
        set_timer(p, p->ping_interval - quiet);
    else if (may_ping(p))
        send_ping(p);
    else
        set_timer(p, p->ping_interval);
}

void ping_start(struct mcp_provider *p)
{
    p->heard_at = router_timers(p->core.router)->now;
    p->pinged = NULL;
    if (p->ping_interval)
        set_timer(p, p->ping_interval);
}
