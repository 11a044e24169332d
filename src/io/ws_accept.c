/* The server's side of the WebSocket handshake, and whether a request asks for one. Called by
 * mcp/agent/, browser/ and hub/web_pages.c; hub/hub.c, cmd/browser.c and admin/dashboard.c only
 * ask. */
#include "io/ws_conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"

#define VERSION "13"

/* Does one of the headers of this name (there may be several) list the word? */
static bool header_lists(const struct http_request *req, const char *name, struct span word)
{
    struct span wanted = span_str(name);

    for (size_t i = 0; http_header(req, name).p && i < req->n_headers; i++) {
        struct span list = req->headers[i].value, item;
        if (!span_eq_nocase(req->headers[i].name, wanted))
            continue;
        while (http_next_item(&list, &item))
            if (span_eq_nocase(item, word))
                return true;
    }
    return false;
}

bool ws_is_wanted(const struct http_request *req)
{
    return header_lists(req, "upgrade", SPAN("websocket"));
}

static void refuse(struct http_exchange *x, int status, const char *error, const char *hint)
{
    struct span headers = status == 426 ? SPAN("Sec-WebSocket-Version: " VERSION "\r\n"
                                               "Upgrade: websocket\r\nConnection: Upgrade\r\n")
                                        : SPAN_EMPTY;

    log_debug("ws", "%s: refused: %s", http_exchange_peer(x), error);
    http_refuse_with(x, status, headers, error, hint);
}

/* The index in `protocols` of the chosen one; -1: the client offered none; -2: only others. */
static int choose(const struct http_request *req, const char *const *protocols)
{
    if (!protocols || !http_header(req, "sec-websocket-protocol").p)
        return -1;
    for (int i = 0; protocols[i]; i++)
        if (header_lists(req, "sec-websocket-protocol", span_str(protocols[i])))
            return i;
    return -2;
}

static void refuse_protocol(struct http_exchange *x, const char *const *protocols)
{
    BUF_SCOPED hint = {0};

    buf_str(&hint, "offer no subprotocol, or one of:");
    for (size_t i = 0; protocols[i]; i++) {
        buf_char(&hint, ' ');
        buf_str(&hint, protocols[i]);
    }
    refuse(x, 400, "none of the offered WebSocket subprotocols is spoken here", buf_cstr(&hint));
}

/* Is the request a valid handshake? If not, it has been refused. */
static bool is_handshake(struct http_exchange *x, const struct http_request *req)
{
    if (!span_is(req->method, "GET") || !req->upgrade || !ws_is_wanted(req)) {
        refuse(x, 426, "this address takes WebSocket connections",
               "send GET with Upgrade: websocket and Connection: Upgrade, over HTTP/1.1");
        return false;
    }
    if (!span_is(http_header(req, "sec-websocket-version"), VERSION)) {
        refuse(x, 426, "unknown WebSocket version", "Sec-WebSocket-Version must be " VERSION);
        return false;
    }
    if (!ws_key_is_valid(http_header(req, "sec-websocket-key"))) {
        refuse(x, 400, "no valid Sec-WebSocket-Key", "send 16 random bytes in base64");
        return false;
    }
    return true;
}

struct ws *ws_accept(struct loop *l, struct http_exchange *x, const struct http_request *req,
                     const char *const *protocols, const struct ws_options *options,
                     const struct ws_events *on, void *owner)
{
    char accept[29];
    BUF_SCOPED headers = {0};
    struct span early;

    if (!is_handshake(x, req))
        return NULL;
    int chosen = choose(req, protocols);
    if (chosen == -2) {
        refuse_protocol(x, protocols);
        return NULL;
    }
    struct ws *w = ws_new(l, WS_SERVER, options, on, owner);
    ws_key_answer(http_header(req, "sec-websocket-key"), accept);
    buf_str(&headers, "Upgrade: websocket\r\nConnection: Upgrade\r\n");
    http_put_header(&headers, "Sec-WebSocket-Accept", span_str(accept));
    if (chosen >= 0)
        http_put_header(&headers, "Sec-WebSocket-Protocol", span_str(protocols[chosen]));
    w->stream = http_upgrade(x, buf_view(&headers), &early);
    stream_rebind(w->stream, &ws_stream_events, w);
    ws_open(w, early);
    return w;
}
