/* The link to a server by WebSocket: connecting, a text frame for each message, closing. Made by
 * hub/graph/server.c; the provider calls its link functions. */
#include "mcp/server/ws_upstream.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/ws.h"

#include <stdio.h>

enum { GOODBYE_MS = 500 }; /* how long the server may take to close as well */

struct ws_upstream {
    struct loop *loop;
    struct ws_upstream_options options;
    struct mcp_provider *provider;
    struct ws *ws; /* NULL when down */
    bool open;
    struct buf discard; /* takes messages that are sent while there is no connection */
    struct timer timer; /* reports a start that failed at once; ends the wait for the close */
    char why[256];
};

static void on_opened(void *owner)
{
    struct ws_upstream *u = owner;

    u->open = true;
    mcp_provider_connected(u->provider);
}

static void on_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct ws_upstream *u = owner;

    if (op == WS_TEXT)
        mcp_provider_receive(u->provider, payload, 0);
    else
        log_debug(u->options.alias, "sent a binary frame: left out");
}

static void on_closed(void *owner, uint16_t code, const char *reason)
{
    struct ws_upstream *u = owner;
    bool locked = ws_refused_with(u->ws) == 401;

    if (locked)
        snprintf(u->why, sizeof u->why, "needs authorization, to be given in 'headers' (HTTP 401)");
    else if (code == 1006)
        snprintf(u->why, sizeof u->why, "%s", reason);
    else
        snprintf(u->why, sizeof u->why, "closed the connection (%u%s%s)", code, *reason ? " " : "",
                 reason);
    timer_clear(loop_timers(u->loop), &u->timer);
    u->ws = NULL;
    u->open = false;
    if (locked)
        mcp_provider_locked(u->provider);
    mcp_provider_closed(u->provider, u->why);
}

static const struct ws_events events = {on_opened, on_message, on_closed};

static void on_timer(struct timer *t)
{
    struct ws_upstream *u = CONTAINER_OF(t, struct ws_upstream, timer);

    if (u->ws)
        ws_abort(u->ws, "closed");
    else
        mcp_provider_closed(u->provider, u->why);
}

static void link_open(void *link)
{
    static const char *const protocols[] = {"mcp", NULL};
    struct ws_upstream *u = link;
    BUF_SCOPED headers = {0};
    struct err err;

    for (const char *const *line = u->options.headers; line && *line; line++)
        buf_printf(&headers, "%s\r\n", *line);
    u->ws = ws_connect(u->loop,
                       &(struct ws_target){.url = u->options.url,
                                           .ca = u->options.ca,
                                           .reach = u->options.reach,
                                           .protocols = protocols,
                                           .headers = buf_view(&headers)},
                       &(struct ws_options){.max_message = u->options.max_message,
                                            .queue_limit = u->options.max_message + STREAM_LIMIT,
                                            .ping_every = WS_PING_MS},
                       &events, u, &err);
    if (!u->ws) {
        snprintf(u->why, sizeof u->why, "%.250s", err.text);
        timer_set(loop_timers(u->loop), &u->timer, 0);
    }
}

static struct buf *link_begin(void *link)
{
    struct ws_upstream *u = link;

    if (u->open)
        return ws_begin(u->ws);
    u->discard.n = 0;
    return &u->discard;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct ws_upstream *u = link;

    (void)parcel;
    if (u->open)
        ws_end(u->ws, WS_TEXT);
}

static void link_close(void *link)
{
    struct ws_upstream *u = link;

    if (!u->ws)
        return; /* the failure is about to be reported */
    u->open = false;
    ws_close(u->ws, 1000, "closed");
    timer_set(loop_timers(u->loop), &u->timer, GOODBYE_MS);
}

static void link_free(void *link)
{
    struct ws_upstream *u = link;

    timer_clear(loop_timers(u->loop), &u->timer);
    buf_fini(&u->discard);
    mem_free(u);
}

static void link_describe(const void *link, struct provider_facts *facts)
{
    (void)link;
    facts->transport = "ws";
}

static const struct mcp_link_ops link_ops = {
    .open = link_open,
    .begin = link_begin,
    .end = link_end,
    .close = link_close,
    .free = link_free,
    .outlived = true,
    .describe = link_describe,
};

struct mcp_provider *ws_upstream_new(struct loop *loop, const struct ws_upstream_options *options)
{
    struct ws_upstream *u = MEM_NEW(struct ws_upstream);

    u->loop = loop;
    u->options = *options;
    u->timer.fire = on_timer;
    u->provider = mcp_provider_new(options->alias, &link_ops, u);
    return u->provider;
}
