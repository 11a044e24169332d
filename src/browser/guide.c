/* Lists and answers list_pages and __btcp_request_capabilities. Called by browser.c and session.c,
 * which own guides, and by the core for calls. */
#include "browser/guide.h"

#include "base/mem.h"
#include "browser/grants.h"
#include "wire/json.h"
#include "wire/json_out.h"

struct guide {
    struct provider core;
    struct browser *browser;
    struct browser_session *session; /* NULL: all */
    bool lists, asks;                /* which of the tools are offered now */
};

static const char meta_raw[] =
    "{\"name\":\"" GUIDE_META "\",\"description\":\"Ask the user of the web page for "
    "capabilities that its hidden tools need, such as dom:write. Tells which were granted, "
    "which denied, and which the user has not decided on.\",\"inputSchema\":{\"type\":"
    "\"object\",\"properties\":{\"capabilities\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"string\"}}},\"required\":[\"capabilities\"]}}";

static const char pages_raw[] =
    "{\"name\":\"" GUIDE_PAGES "\",\"description\":\"Lists the web pages whose tools can be "
    "called, with title, address and session of each.\",\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{}},\"annotations\":{\"readOnlyHint\":true}}";

static void add(struct catalog *c, struct span name, const char *raw, unsigned flags)
{
    catalog_add(
        c, ITEM_TOOL,
        &(struct item){
            .name = name, .raw = span_str(raw), .name_at = {8, name.n + 2}, .flags = flags});
}

static void publish(struct guide *g)
{
    struct catalog *c = provider_draft(&g->core);

    if (g->lists)
        add(c, SPAN(GUIDE_PAGES), pages_raw, ITEM_READ_ONLY);
    if (g->asks)
        add(c, SPAN(GUIDE_META), meta_raw, 0);
    catalog_fit(c);
    provider_publish(&g->core, c);
}

void guide_update(struct guide *g)
{
    if (!g)
        return;
    bool lists = !g->session && g->browser->n_offering;
    bool asks = g->session ? g->session->hides : g->browser->n_hiding > 0;
    if (lists == g->lists && asks == g->asks)
        return;
    g->lists = lists;
    g->asks = asks;
    publish(g);
}

/* --- calls --- */

static void tell_pages(const struct guide *g, struct call *call)
{
    BUF_SCOPED pages = {0}, result = {0};

    buf_str(&pages, "{\"pages\":");
    browser_put_pages(&pages, g->browser);
    buf_char(&pages, '}');
    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, buf_view(&pages));
    buf_str(&result, "}]");
    if (call->takes_structured)
        json_out_raw(&result, "structuredContent", buf_view(&pages));
    buf_char(&result, '}');
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

/* Is any of these what a hidden tool of the session waits for? */
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

/* The session that hides tools for want of just this, or else any that hides some. */
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

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct guide *g = CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct guide, core);
    struct json_slot given = json_get(request->params, "arguments");
    struct span arguments = given.type == JSON_OBJECT ? given.value : SPAN("{}");

    if (request->op != OP_CALL_TOOL) {
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
        return;
    }
    struct browser_session *s = session_for(g, arguments);
    if (span_is(request->name, GUIDE_PAGES))
        tell_pages(g, call);
    else if (s)
        grants_open(s, call, arguments);
    else
        call_done(call, &(struct outcome){.kind = OUTCOME_ERROR,
                                          .body = SPAN("{\"code\":-32603,\"message\":\"No page "
                                                       "hides a tool any more\"}"),
                                          .text = SPAN("No page hides a tool any more")});
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    (void)self, (void)call, (void)key, (void)outcome;
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    (void)self, (void)why;
    session_cancel(call);
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};

/* --- life --- */

static void start(struct provider *p)
{
    publish(CONTAINER_OF(p, struct guide, core));
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
    struct guide *g = MEM_NEW(struct guide);

    g->browser = b;
    g->session = s;
    provider_init(&g->core, &verbs, &life, s ? s->id : "pages");
    g->core.bare_names = g->core.built_in = g->core.tells_later = true;
    g->core.told_as = BROWSER_TOLD_AS;
    g->core.policy.timeout = g->core.policy.start_timeout =
        0; /* errands have their own deadlines */
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
