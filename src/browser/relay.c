/*
 * The protocol of MCP-B's local relay, which pages with its embed.js speak: JSON objects with a
 * `type` instead of JSON-RPC, on a WebSocket that asks for the subprotocol webmcp.v1. A tab is a
 * session, named by its tabId. Other relays ask for webmcp-relay.v1 and are agents. Called by
 * routes.c, by guide.c for the answers of webmcp_* tools, and through the dialects' functions.
 */
#include "browser/relay.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "browser/sender.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>

#define PEER_PROTOCOL "webmcp-relay.v1"

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

/* The page compares host and port with those that it connected to. */
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

static bool offers(const struct http_request *req, const char *start)
{
    struct span offered = http_header(req, "sec-websocket-protocol"), item;

    while (http_next_item(&offered, &item))
        if (span_starts(item, span_str(start)))
            return true;
    return false;
}

bool relay_is_wanted(const struct http_request *req)
{
    return offers(req, "webmcp");
}

/* A client with an Origin header is a web page, which may not call tools: it is no relay peer. */
struct pipe *relay_open(struct browser *b, struct http_exchange *x, const struct http_request *req,
                        const struct ws_options *options)
{
    static const char *const protocols[] = {PEER_PROTOCOL, "webmcp-discovery.v1", "webmcp.v1",
                                            NULL};
    struct span origin = http_header(req, "origin");
    bool is_peer = !origin.n && offers(req, PEER_PROTOCOL);
    struct pipe *p = pipe_new(b, is_peer ? &dialect_relay_peer : &dialect_relay, origin);

    p->ws = ws_accept(b->loop, x, req, is_peer ? protocols : protocols + 1, options,
                      &pipe_ws_events, p);
    if (!p->ws) {
        pipe_free(p);
        return NULL;
    }
    say_hello(b, p, req);
    return p;
}

/* --- sources and tools, as MCP-B describes them --- */

static bool is_source(const struct page *p)
{
    return page_is_here(p) && p->n_tools;
}

static void put_source(struct buf *out, const struct page *p)
{
    /* The times in a source are wall-clock times: this is the wall-clock time of loop time 0. */
    uint64_t began = browser_wall_ms() - loop_now(p->session->browser->loop);

    json_out_open(out, NULL, '{');
    json_out_str(out, "sourceId", p->name);
    json_out_str(out, "tabId", p->session->id);
    if (p->origin)
        json_out_str(out, "origin", p->origin);
    if (p->url)
        json_out_str(out, "url", p->url);
    if (p->title)
        json_out_str(out, "title", p->title);
    json_out_number(out, "connectedAt", began + p->came_at);
    json_out_number(out, "lastSeenAt", began + p->heard_at);
    json_out_number(out, "toolCount", p->n_tools);
    buf_char(out, '}');
}

void relay_put_sources(struct buf *out, const struct browser *b)
{
    size_t at = 0;
    void *value;

    buf_char(out, '[');
    while (map_next(&b->sessions, &at, NULL, &value)) {
        const struct browser_session *s = value;
        LIST_EACH (&s->pages, it)
            if (is_source(LIST_ENTRY(it, struct page, node)))
                put_source(out, LIST_ENTRY(it, struct page, node));
    }
    buf_char(out, ']');
}

/* The page and tool of an item in a view; NULL: it is not a tool of a connected page. */
static const struct lead *lead_of(const struct target *t)
{
    const struct browser_session *s = session_of(t->provider);
    const struct lead *lead = s ? session_lead(s, t->item->name) : NULL;

    return lead && lead->page && is_source(lead->page) ? lead : NULL;
}

void relay_put_tools(struct buf *out, struct view *v, bool sourced)
{
    struct json_iter it = json_iter(view_list(v, ITEM_TOOL));
    const struct target *t;

    buf_char(out, '[');
    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)) && json_next(&it); i++) {
        const struct lead *lead = lead_of(t);
        if (!lead)
            continue;
        json_out_raw(out, NULL, it.value);
        if (!sourced)
            continue;
        out->n--; /* the closing brace: more members follow */
        json_out_text(out, "originalName", lead->tool->name);
        json_out_open(out, "sources", '[');
        put_source(out, lead->page);
        buf_str(out, "]}");
    }
    buf_char(out, ']');
}

static void put_source_map(struct buf *out, struct view *v)
{
    const struct target *t;

    json_out_open(out, "toolSourceMap", '{');
    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++) {
        const struct lead *lead = lead_of(t);
        BUF_SCOPED name = {0};
        if (!lead)
            continue;
        buf_span(&name, t->public_name);
        json_out_open(out, buf_cstr(&name), '[');
        json_out_str(out, NULL, lead->page->name);
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

static void put_all(struct buf *out, const char *type, struct browser *b)
{
    buf_char(out, '{');
    json_out_str(out, "type", type);
    json_out(out, "tools");
    relay_put_tools(out, b->all, false);
    json_out(out, "sources");
    relay_put_sources(out, b);
    put_source_map(out, b->all);
    buf_char(out, '}');
}

/* --- relay peers --- */

static void put_changed(struct buf *out, struct browser *b)
{
    put_all(out, "relay/tools-changed", b);
}

/* Every failure is sent as a result with isError: the protocol has no error messages. */
static void put_result(struct buf *out, struct span id, const struct outcome *outcome)
{
    struct json_slot said =
        outcome->kind == OUTCOME_ERROR ? json_get(outcome->body, "message") : (struct json_slot){0};

    buf_char(out, '{');
    json_out_str(out, "type", "relay/result");
    json_out_raw(out, "callId", id);
    if (outcome->kind == OUTCOME_RESULT) {
        json_out_raw(out, "result", outcome->body);
    } else {
        buf_str(out, ",\"result\":{\"content\":[{\"type\":\"text\"");
        if (said.type == JSON_STRING)
            json_out_raw(out, "text", said.value);
        else
            json_out_text(out, "text", outcome->text);
        buf_str(out, "}],\"isError\":true}");
    }
    buf_char(out, '}');
}

static void take_peer_hello(struct sender *s, struct span message)
{
    (void)message;
    if (!s->agent)
        s->agent = agent_new(s->browser, s->pipe);
    agent_watch(s->agent);
}

static void tell_tools(struct sender *s, struct span message)
{
    (void)message;
    put_all(&s->reply, "relay/tools", s->browser);
}

static void take_peer_call(struct sender *s, struct span message)
{
    struct json_slot id = json_get(message, "callId"), name = json_get(message, "toolName");
    struct json_slot args = json_get(message, "args");
    BUF_SCOPED params = {0};

    if (!s->agent || id.type != JSON_STRING || name.type != JSON_STRING)
        return; /* no hello came yet, or this is no call: MCP-B ignores both */
    buf_char(&params, '{');
    json_out_raw(&params, "name", name.value);
    json_out_raw(&params, "arguments", args.type == JSON_OBJECT ? args.value : SPAN("{}"));
    buf_char(&params, '}');
    agent_call(s->agent, s->browser->all, id.value, buf_view(&params));
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
    if (!page_request_answer(s, &m))
        log_debug("browser", "an answer that nobody waits for was dropped");
}

static void take_pong(struct sender *s, struct span message)
{
    (void)message;
    if (s->page)
        page_request_lives(s->page, true);
}

struct message_type {
    const char *type;
    void (*take)(struct sender *s, struct span message);
};

/* Other types are ignored, as MCP-B does. */
static bool take(struct sender *s, struct span text, const struct message_type *types, size_t n)
{
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return false;
    struct span word = json_get(text, "type").value;
    for (size_t i = 0; i < n; i++)
        if (json_string_is(word, span_str(types[i].type)))
            types[i].take(s, text);
    return true;
}

static bool receive(struct sender *s, struct span text)
{
    static const struct message_type types[] = {
        {"hello", take_hello},   {"tools/list", take_tools}, {"tools/changed", take_tools},
        {"result", take_result}, {"pong", take_pong},
    };

    return take(s, text, types, COUNT_OF(types));
}

static bool receive_from_peer(struct sender *s, struct span text)
{
    static const struct message_type types[] = {
        {"relay/hello", take_peer_hello},
        {"relay/list-tools", tell_tools},
        {"relay/invoke", take_peer_call},
    };

    return take(s, text, types, COUNT_OF(types));
}

const struct dialect dialect_relay = {.name = "webmcp",
                                      .answers_ping = true,
                                      .has_relay_tools = true,
                                      .ping = "{\"type\":\"ping\"}",
                                      .reload = "{\"type\":\"reload\"}",
                                      .put_call = put_invoke,
                                      .receive = receive};
const struct dialect dialect_relay_peer = {.name = "webmcp-relay",
                                           .receive = receive_from_peer,
                                           .put_changed = put_changed,
                                           .put_result = put_result};
