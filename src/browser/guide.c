/* The table of our own tools, with when they are offered and what they do. Called by browser.c
 * and session.c, which own guides, by open_page.c, and by the core for calls. */
#include "browser/guide.h"

#include "base/mem.h"
#include "browser/grants.h"
#include "browser/open_page.h"
#include "browser/relay.h"
#include "core/forward.h"
#include "wire/json.h"
#include "wire/json_out.h"

struct guide {
    struct provider core;
    struct browser *browser;
    struct browser_session *session; /* NULL: for all sessions */
    unsigned offered;                /* a bit for each row of `tools` */
};

/* --- answers --- */

void guide_say(struct call *call, bool failed, const char *what, struct span about)
{
    BUF_SCOPED text = {0}, result = {0};

    buf_printf(&text, "%s: " SPAN_FMT, what, SPAN_ARG(about));
    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, buf_view(&text));
    buf_str(&result, failed ? "}],\"isError\":true}" : "}]}");
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT,
                                      .body = buf_view(&result),
                                      .is_error = failed,
                                      .text = failed ? buf_view(&text) : SPAN_EMPTY});
}

static void tell(struct call *call, struct span object)
{
    BUF_SCOPED result = {0};

    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, object);
    buf_str(&result, "}]");
    if (call->takes_structured)
        json_out_raw(&result, "structuredContent", object);
    buf_char(&result, '}');
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

static void tell_pages(struct guide *g, struct call *call, const struct request *request,
                       struct span arguments)
{
    BUF_SCOPED pages = {0};

    (void)request, (void)arguments;
    buf_str(&pages, "{\"pages\":");
    browser_put_pages(&pages, g->browser, false);
    buf_char(&pages, '}');
    tell(call, buf_view(&pages));
}

/* {count, NAME: list}, as MCP-B's relay answers. */
static void tell_counted(struct call *call, const char *name, struct span list)
{
    struct json_iter it = json_iter(list);
    BUF_SCOPED object = {0};
    uint64_t n = 0;

    while (json_next(&it))
        n++;
    buf_char(&object, '{');
    json_out_number(&object, "count", n);
    json_out_raw(&object, name, list);
    buf_char(&object, '}');
    tell(call, buf_view(&object));
}

static void tell_sources(struct guide *g, struct call *call, const struct request *request,
                         struct span arguments)
{
    BUF_SCOPED list = {0};

    (void)request, (void)arguments;
    relay_put_sources(&list, g->browser);
    tell_counted(call, "sources", buf_view(&list));
}

static void tell_tools(struct guide *g, struct call *call, const struct request *request,
                       struct span arguments)
{
    BUF_SCOPED list = {0};

    (void)g, (void)request, (void)arguments;
    relay_put_tools(&list, call->view, true);
    tell_counted(call, "tools", buf_view(&list));
}

/* The named tool is called in the caller's own view, like any other call. */
static void call_tool(struct guide *g, struct call *call, const struct request *request,
                      struct span arguments)
{
    struct json_slot name = json_get(arguments, "name"), given = json_get(arguments, "arguments");
    BUF_SCOPED text = {0}, params = {0};
    struct span wanted = name.type == JSON_STRING ? json_text(name.value, &text) : SPAN_EMPTY;
    const struct target *target = view_find(call->view, ITEM_TOOL, wanted);
    struct request inner = *request;

    if (!target || !session_of(target->provider)) {
        guide_say(call, true, "No page has this tool (webmcp_list_tools gives the names)", wanted);
        return;
    }
    if (given.type != JSON_OBJECT && given.type != JSON_NONE) {
        guide_say(call, true, "'arguments' must be an object, for", wanted);
        return;
    }
    inner.name = wanted;
    buf_str(&params, "{\"name\":");
    inner.name_at = (struct cut){params.n, name.value.n};
    buf_span(&params, name.value);
    json_out_raw(&params, "arguments", given.type == JSON_OBJECT ? given.value : SPAN("{}"));
    buf_char(&params, '}');
    inner.params = buf_view(&params);
    inner.meta_at = inner.arguments_at = (struct cut){0, 0};
    forward_open(&g->core, call, call->view, &inner);
}

static void open_page(struct guide *g, struct call *call, const struct request *request,
                      struct span arguments)
{
    (void)request;
    open_page_call(g->browser, call, arguments);
}

/* --- capabilities --- */

/* Is a tool of the session hidden because it lacks one of these capabilities? */
static bool is_waiting_for(const struct browser_session *s, struct span wanted)
{
    BUF_SCOPED scratch = {0};

    LIST_EACH (&s->pages, it) {
        const struct page *p = LIST_ENTRY(it, struct page, node);
        for (size_t i = 0; i < p->n_tools; i++) {
            struct span lacks = session_lacks(s, p, &p->tools[i], &scratch);
            struct json_iter names = json_iter(wanted);
            while (lacks.n && json_next(&names))
                if (names.type == JSON_STRING && json_string_is(names.value, lacks))
                    return true;
        }
    }
    return false;
}

/* A session that hides a tool for lack of a wanted capability, or else any that hides tools. */
static struct browser_session *session_for(const struct guide *g, struct span arguments)
{
    struct json_slot wanted = json_get(arguments, "capabilities");
    struct browser_session *found = g->session;
    size_t at = 0;
    void *value;

    while (!g->session && map_next(&g->browser->sessions, &at, NULL, &value)) {
        struct browser_session *s = value;
        if (!s->hides)
            continue;
        if (!found)
            found = s;
        if (wanted.type == JSON_ARRAY && is_waiting_for(s, wanted.value))
            return s;
    }
    return found;
}

static void ask_capabilities(struct guide *g, struct call *call, const struct request *request,
                             struct span arguments)
{
    struct browser_session *s = session_for(g, arguments);

    (void)request;
    if (s)
        grants_open(s, call, arguments);
    else
        call_done(call, &(struct outcome){.kind = OUTCOME_ERROR,
                                          .body = SPAN("{\"code\":-32603,\"message\":\"No page "
                                                       "hides a tool any more\"}"),
                                          .text = SPAN("No page hides a tool any more")});
}

/* --- the tools --- */

static bool has_pages(const struct guide *g)
{
    return !g->session && g->browser->n_offering;
}

static bool has_hidden(const struct guide *g)
{
    return g->session ? g->session->hides : g->browser->n_hiding > 0;
}

static bool has_webmcp(const struct guide *g)
{
    return !g->session && (g->browser->options.webmcp || g->browser->n_webmcp);
}

static void cancel_forward(struct call *call)
{
    forward_cancel(NULL, call, FAIL_CANCELLED);
}

#define OPEN_PAGE "webmcp_open_page"

static const struct guide_tool {
    const char *name;
    const char *members; /* of the list entry, as JSON, without the name */
    bool (*is_offered)(const struct guide *g);
    void (*run)(struct guide *g, struct call *call, const struct request *request,
                struct span arguments);
    void (*cancel)(struct call *call); /* NULL: the call ends inside `run` */
    unsigned flags;
} tools[] = {
    {"list_pages",
     "\"description\":\"Lists the web pages whose tools can be called, with title, address and "
     "session of each.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}},"
     "\"annotations\":{\"readOnlyHint\":true}",
     has_pages, tell_pages, NULL, ITEM_READ_ONLY},
    {GUIDE_META,
     "\"description\":\"Ask the user of the web page for capabilities that its hidden tools need, "
     "such as dom:write. Tells which were granted, which denied, and which the user has not "
     "decided on.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"capabilities\":{"
     "\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"capabilities\"]}",
     has_hidden, ask_capabilities, session_cancel, 0},
    {"webmcp_list_sources",
     "\"description\":\"Lists the web pages that offer tools, with what is known of each.\","
     "\"inputSchema\":{\"type\":\"object\",\"properties\":{}},\"annotations\":{"
     "\"readOnlyHint\":true,\"idempotentHint\":true}",
     has_webmcp, tell_sources, NULL, ITEM_READ_ONLY},
    {"webmcp_list_tools",
     "\"description\":\"Lists the tools of web pages, with input schema and page of each. Call one "
     "with webmcp_call_tool.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}},"
     "\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}",
     has_webmcp, tell_tools, NULL, ITEM_READ_ONLY},
    {"webmcp_call_tool",
     "\"description\":\"Calls a tool of a web page by the name that webmcp_list_tools gives. The "
     "result is the tool's own.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":"
     "{\"type\":\"string\"},\"arguments\":{\"type\":\"object\",\"description\":\"What the tool's "
     "inputSchema asks for\"}},\"required\":[\"name\"]}",
     has_webmcp, call_tool, cancel_forward, 0},
    {OPEN_PAGE,
     "\"description\":\"Opens an address in the user's browser once an operator has approved that, "
     "or reloads a connected page of the same site.\",\"inputSchema\":{\"type\":\"object\","
     "\"properties\":{\"url\":{\"type\":\"string\",\"description\":\"http:// or https://\"},"
     "\"refresh\":{\"type\":\"boolean\",\"description\":\"Reload the connected page of this site "
     "instead of opening another\"}},\"required\":[\"url\"]}",
     has_webmcp, open_page, open_page_cancel, 0},
};

const char *guide_tool(size_t n)
{
    return n < COUNT_OF(tools) ? tools[n].name : NULL;
}

static const struct guide_tool *tool_of(struct span name)
{
    for (size_t i = 0; i < COUNT_OF(tools); i++)
        if (span_is(name, tools[i].name))
            return &tools[i];
    return NULL;
}

static void publish(struct guide *g)
{
    struct catalog *c = provider_draft(&g->core);

    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        struct span name = span_str(tools[i].name);
        BUF_SCOPED raw = {0};
        if (!(g->offered & 1u << i))
            continue;
        buf_printf(&raw, "{\"name\":\"%s\",%s}", tools[i].name, tools[i].members);
        catalog_add(c, ITEM_TOOL,
                    &(struct item){.name = name,
                                   .raw = buf_view(&raw),
                                   .name_at = {strlen("{\"name\":"), name.n + 2},
                                   .flags = tools[i].flags});
    }
    catalog_fit(c);
    provider_publish(&g->core, c);
}

static unsigned offered_now(const struct guide *g)
{
    unsigned bits = 0;

    for (size_t i = 0; i < COUNT_OF(tools); i++)
        bits |= tools[i].is_offered(g) ? 1u << i : 0;
    return bits;
}

void guide_update(struct guide *g)
{
    if (!g || offered_now(g) == g->offered)
        return;
    g->offered = offered_now(g);
    publish(g);
}

/* --- verbs --- */

static struct guide *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct guide, core);
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct json_slot given = json_get(request->params, "arguments");
    const struct guide_tool *tool = request->op == OP_CALL_TOOL ? tool_of(request->name) : NULL;

    if (tool)
        tool->run(of_peer(self), call, request,
                  given.type == JSON_OBJECT ? given.value : SPAN("{}"));
    else
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    const struct guide_tool *tool = tool_of(span_of(call->name, call->name_n));

    (void)self, (void)why;
    if (tool && tool->cancel)
        tool->cancel(call);
}

/* The end of a call that was forwarded. */
static void on_done(struct peer *self, struct call *inner, const struct outcome *outcome)
{
    BUF_SCOPED name = {0};
    struct call *outer = forward_end(inner, &name);

    (void)self;
    if (outer)
        call_done(outer, outcome);
}

static const struct peer_verbs verbs = {.open = on_open,
                                        .answer = forward_answer,
                                        .cancel = on_cancel,
                                        .event = forward_event,
                                        .ask = forward_ask,
                                        .done = on_done};

/* --- life --- */

static void start(struct provider *p)
{
    struct guide *g = CONTAINER_OF(p, struct guide, core);

    g->offered = offered_now(g);
    publish(g);
    provider_up(p);
}

static void stop(struct provider *p)
{
    provider_lost(p, "the session is over");
}

static const struct provider_ops life = {.start = start, .stop = stop};

struct provider *guide_provider(struct guide *g)
{
    return &g->core;
}

struct guide *guide_new(struct browser *b, struct browser_session *s)
{
    static const struct span approve[] = {{OPEN_PAGE, sizeof OPEN_PAGE - 1}};
    struct guide *g = MEM_NEW(struct guide);

    g->browser = b;
    g->session = s;
    provider_init(&g->core, &verbs, &life, s ? s->id : "pages");
    g->core.bare_names = g->core.built_in = g->core.tells_later = true;
    g->core.told_as = BROWSER_TOLD_AS;
    g->core.policy.timeout = g->core.policy.start_timeout =
        0; /* requests have their own deadlines */
    g->core.policy.approve = approve;
    g->core.policy.n_approve = COUNT_OF(approve);
    router_add_provider(b->router, &g->core);
    provider_want(&g->core);
    return g;
}

void guide_free(struct guide *g)
{
    if (!g)
        return;
    provider_unwant(&g->core);
    router_remove_provider(g->browser->router, &g->core);
    provider_fini(&g->core);
    mem_free(g);
}
