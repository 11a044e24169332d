/*
 * The protocol of MCP-B's local relay, which pages with its embed.js speak: JSON objects with a
 * `type` instead of JSON-RPC, on a WebSocket that asks for the subprotocol webmcp.v1. A tab is a
 * session, named by its tabId.
 */
#include "browser/relay.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/pipe.h"
#include "browser/sender.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>

/* --- to the page --- */

static void put_invoke(struct buf *out, uint64_t n, struct span params)
{
    buf_str(out, "{\"type\":\"invoke\",\"callId\":\"btcp-");
    buf_u64(out, n);
    buf_char(out, '"');
    json_out_raw(out, "toolName", json_get(params, "name").value);
    json_out_raw(out, "args", json_get(params, "arguments").value);
    buf_char(out, '}');
}

/* Host and port are those the page connected to: it compares them. */
static void say_hello(const struct browser *b, struct pipe *p, const struct http_request *req)
{
    struct span host = http_header(req, "host");
    size_t colon = host.n;
    BUF_SCOPED text = {0};
    int64_t port = 80;

    while (colon > 0 && host.p[colon - 1] != ':' && host.p[colon - 1] != ']')
        colon--;
    if (colon > 0 && host.p[colon - 1] == ':') {
        if (!json_int(span_from(host, colon), &port))
            port = 0;
        host.n = colon - 1;
    }
    buf_char(&text, '{');
    json_out_str(&text, "type", "server-hello");
    json_out_str(&text, "service", "webmcp-local-relay");
    json_out_number(&text, "version", 1);
    json_out_text(&text, "host", host);
    json_out_str(&text, "instanceId", b->instance);
    buf_printf(&text, ",\"port\":%" PRId64 ",\"label\":\"Rialto\"}", port);
    pipe_send(p, buf_view(&text), false);
}

bool relay_is_wanted(const struct http_request *req)
{
    struct span offered = http_header(req, "sec-websocket-protocol"), item;

    while (http_next_item(&offered, &item))
        if (span_starts(item, SPAN("webmcp")))
            return true;
    return false;
}

void relay_open(struct browser *b, struct http_exchange *x, const struct http_request *req,
                const struct ws_options *options)
{
    static const char *const protocols[] = {"webmcp-discovery.v1", "webmcp.v1", NULL};
    struct pipe *p = pipe_new(b, &dialect_relay, http_header(req, "origin"));

    p->ws = ws_accept(b->loop, x, req, protocols, options, &pipe_ws_events, p);
    if (p->ws)
        say_hello(b, p, req);
    else
        pipe_free(p);
}

/* --- from the page --- */

static void take_hello(struct sender *s, struct span message)
{
    struct json_slot tab = json_get(message, "tabId");
    BUF_SCOPED scratch = {0};
    struct span id = tab.type == JSON_STRING ? json_text(tab.value, &scratch) : SPAN_EMPTY;

    if (s->page || sender_become_page(s, browser_make_session(s->browser, id))) {
        page_introduce(s->page, message);
        buf_str(&s->reply, "{\"type\":\"hello/accepted\"}");
    } else {
        pipe_send(s->pipe,
                  SPAN("{\"type\":\"hello/rejected\",\"reason\":\"no-session\",\"message\":\"tabId "
                       "must be 1 to 128 of letters, digits and . _ : -, and there must not be too "
                       "many tabs\"}"),
                  false);
        pipe_close(s->pipe, 1008, "no session");
    }
}

/* A tool that must be run as a task cannot be called from here, so it is not listed. */
static bool is_task_only(struct span tool, enum json_type type)
{
    struct json_slot execution =
        type == JSON_OBJECT ? json_get(tool, "execution") : (struct json_slot){0};

    return execution.type == JSON_OBJECT &&
           json_string_is(json_get(execution.value, "taskSupport").value, SPAN("required"));
}

static void take_tools(struct sender *s, struct span message)
{
    struct json_slot tools = json_get(message, "tools");
    struct json_iter it = json_iter(tools.value);
    BUF_SCOPED list = {0};
    struct err err;

    if (!s->page || tools.type != JSON_ARRAY)
        return; /* no hello came yet, or this is no list: MCP-B ignores both */
    buf_char(&list, '[');
    while (json_next(&it)) {
        if (is_task_only(it.value, it.type))
            continue;
        buf_str(&list, list.n > 1 ? "," : "");
        buf_span(&list, it.value);
    }
    buf_char(&list, ']');
    if (page_register(s->page, buf_view(&list), &err))
        log_warn("browser", "tools of a page in session %s are not taken: %s", s->page->session->id,
                 err.text);
}

static void take_result(struct sender *s, struct span message)
{
    struct json_slot call = json_get(message, "callId"), result = json_get(message, "result");
    struct page_message m = {0};

    if (call.type == JSON_STRING)
        m.id = call.value;
    if (result.type == JSON_OBJECT)
        m.result = result.value;
    else
        m.error = SPAN("{\"code\":\"EXECUTION_ERROR\",\"message\":\"The page's result is none\"}");
    if (!page_answer(s, &m))
        log_debug("browser", "an answer that nobody waits for was dropped");
}

static void take_pong(struct sender *s, struct span message)
{
    (void)message;
    if (s->page)
        page_lives(s->page, true);
}

static const struct {
    const char *type;
    void (*take)(struct sender *s, struct span message);
} types[] = {
    {"hello", take_hello},   {"tools/list", take_tools}, {"tools/changed", take_tools},
    {"result", take_result}, {"pong", take_pong},
};

/* Other types are ignored, as MCP-B does. */
static bool receive(struct sender *s, struct span text)
{
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return false;
    struct span word = json_get(text, "type").value;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (json_string_is(word, span_str(types[i].type)))
            types[i].take(s, text);
    return true;
}

const struct dialect dialect_relay = {.name = "webmcp",
                                      .answers_ping = true,
                                      .ping = "{\"type\":\"ping\"}",
                                      .put_call = put_invoke,
                                      .receive = receive};
