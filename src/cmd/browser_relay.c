/* Carries lines of standard input and output over a WebSocket to a running bridge. Called by
 * cmd/browser.c, which opens its own bridge when none is running. */
#include "cmd/browser_relay.h"

#include "admin/control.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/ws.h"
#include "wire/lines.h"
#include "wire/rpc.h"

#include <errno.h>

/* DRAIN_MS: how long to wait for pending answers once the host program has closed its end. */
enum { CONNECT_MS = 2000, DRAIN_MS = 1500, FINISH_MS = 2000, NOBODY = 1 };

struct browser_relay {
    struct loop *loop;
    const struct config *config;
    struct ws *ws;
    struct stream *stdio; /* NULL before the bridge has answered, and once closed */
    struct lines lines;
    size_t pending; /* requests of the host program without an answer */
    struct timer drain;
    bool opened, ended;
    int code;
};

/* Is the text a request, or, with `answer`, the answer to one? */
static bool is_kind(struct span text, bool answer)
{
    struct rpc_message m;

    if (rpc_skim(text, NULL, NULL, NULL, 0, &m))
        return false;
    return answer ? m.kind == RPC_RESULT || m.kind == RPC_ERROR : m.kind == RPC_REQUEST;
}

static void on_line(void *owner, struct span line)
{
    struct browser_relay *r = owner;

    if (!r->ws)
        return;
    ws_send(r->ws, WS_TEXT, line);
    r->pending += is_kind(line, false);
}

/* A message that is too long is not sent, because the bridge would close the WebSocket. The host
 * program gets the error that it would get from a bridge on a pipe. */
static void on_too_long(void *owner, struct span head)
{
    struct browser_relay *r = owner;
    BUF_SCOPED text = {0};

    (void)head;
    buf_printf(&text, "Message of more than %zu bytes (limits.message)", r->config->limits.message);
    if (r->stdio) {
        rpc_put_error(stream_out(r->stdio), SPAN_EMPTY, RPC_INVALID_REQUEST, buf_view(&text),
                      SPAN_EMPTY);
        buf_char(stream_out(r->stdio), '\n');
        stream_wrote(r->stdio);
    }
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct browser_relay *r = owner;

    lines_feed(&r->lines, chunk, &line_events, r);
}

static void on_eof(void *owner)
{
    struct browser_relay *r = owner;

    r->ended = true;
    lines_end(&r->lines, &line_events, r);
    timer_set(loop_timers(r->loop), &r->drain, r->pending ? DRAIN_MS : 0);
}

static void on_drained(struct timer *t)
{
    struct browser_relay *r = CONTAINER_OF(t, struct browser_relay, drain);

    if (r->ws)
        ws_close(r->ws, 1000, "the host program is done");
}

static void on_stdio_closed(void *owner, const char *reason)
{
    struct browser_relay *r = owner;

    (void)reason;
    r->stdio = NULL;
    r->ended = true;
    if (r->ws)
        ws_close(r->ws, 1000, "the host program is gone");
    else
        loop_stop(r->loop);
}

static const struct stream_events stdio_events = {
    .data = on_data, .eof = on_eof, .closed = on_stdio_closed};

static void on_opened(void *owner)
{
    struct browser_relay *r = owner;

    r->opened = true;
    log_info("browser", "attached to the bridge that is running");
    r->stdio = stream_stdio(r->loop);
    stream_start(r->stdio, &stdio_events, r);
}

static void on_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct browser_relay *r = owner;

    if (op != WS_TEXT || !r->stdio)
        return;
    stream_write(r->stdio, payload);
    stream_write(r->stdio, SPAN("\n"));
    if (r->pending && is_kind(payload, true) && --r->pending == 0 && r->ended)
        timer_set(loop_timers(r->loop), &r->drain, 0);
}

static void on_closed(void *owner, uint16_t code, const char *reason)
{
    struct browser_relay *r = owner;

    r->ws = NULL;
    timer_clear(loop_timers(r->loop), &r->drain);
    if (!r->opened) {
        r->code = NOBODY;
    } else if (!r->ended) {
        log_error("browser", "the bridge left: %u %s", code, reason);
        r->code = -ECONNRESET;
    }
    if (r->stdio)
        stream_finish(r->stdio, "done", FINISH_MS);
    else
        loop_stop(r->loop);
}

static const struct ws_events events = {
    .opened = on_opened, .message = on_message, .closed = on_closed};

int browser_relay(const char *address, const char *session, const struct config *c)
{
    static const char *const protocols[] = {"mcp", NULL};
    const struct ws_options options = {.max_message = c->limits.message, .ping_every = WS_PING_MS};
    struct browser_relay r = {.loop = loop_new(), .config = c, .drain.fire = on_drained};
    BUF_SCOPED url = {0};
    struct err err;
    /* The control socket needs no token and no certificate, and accepts any Host. */
    bool guarded = c->asks_tokens || c->listen.items[0].tls_cert || c->listen.items[0].open;
    char *socket = guarded ? control_find(c->control, c->file) : NULL;
    BUF_SCOPED there = {0};

    if (socket) {
        buf_printf(&there, "unix:%s", socket);
        address = "localhost";
    }
    buf_printf(&url, "ws://%s%s/mcp?session=%s&wait=1", address[0] == ':' ? "127.0.0.1" : "",
               address, session ? session : "*");
    lines_init(&r.lines, c->limits.message);
    r.ws = ws_connect(r.loop,
                      &(struct ws_target){.url = buf_cstr(&url),
                                          .address = socket ? buf_cstr(&there) : NULL,
                                          .protocols = protocols,
                                          .timeout = CONNECT_MS},
                      &options, &events, &r, &err);
    mem_free(socket);
    r.code = r.ws ? 0 : NOBODY;
    if (r.ws)
        loop_run(r.loop);
    lines_fini(&r.lines);
    loop_free(r.loop);
    return r.code;
}
