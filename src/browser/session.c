/* A session as a provider: the catalog of the pages' tools, public names of tools, and calls.
 * Called by browser.c, which makes and frees sessions, by the other files of browser/, and by the
 * core for calls. */
#include "browser/session.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/entry.h"
#include "browser/grants.h"
#include "browser/guide.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "browser/result.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* The most bytes of a public name, and of the "_N" in it that is added when names clash. */
enum { PUBLIC_MAX = 64, NUMBER_MAX = 6 };

static struct browser_session *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct browser_session, core);
}

static struct timers *timers_of(const struct browser_session *s)
{
    return loop_timers(s->browser->loop);
}

void session_touch(struct browser_session *s)
{
    s->used_at = loop_now(s->browser->loop);
}

bool session_is_connected(const struct browser_session *s)
{
    LIST_EACH (&s->pages, it)
        if (page_pipe(LIST_ENTRY(it, struct page, node)))
            return true;
    return false;
}

size_t session_tool_count(const struct browser_session *s)
{
    size_t n = 0;

    LIST_EACH (&s->pages, it) {
        const struct page *p = LIST_ENTRY(it, struct page, node);
        n += page_is_here(p) ? p->n_tools : 0;
    }
    return n;
}

size_t session_tool_bytes(const struct browser_session *s)
{
    size_t n = 0;

    LIST_EACH (&s->pages, it)
        n += LIST_ENTRY(it, struct page, node)->text_n;
    return n;
}

void session_put_pages(struct buf *out, const struct browser_session *s, bool whole)
{
    LIST_EACH (&s->pages, it) {
        const struct page *p = LIST_ENTRY(it, struct page, node);
        if (!page_is_here(p))
            continue;
        json_out(out, NULL);
        page_put(out, p, whole);
    }
}

/* --- the catalog --- */

struct span session_lacks(const struct browser_session *s, const struct page *page,
                          const struct tool *tool, struct buf *scratch)
{
    struct json_iter it = json_iter(tool->capabilities);

    while (s->enforces && tool->capabilities.n && json_next(&it)) {
        if (it.type != JSON_STRING)
            continue;
        scratch->n = 0;
        struct span name = json_text(it.value, scratch);
        if (!grants_cover(s, page, name))
            return name;
    }
    return SPAN_EMPTY;
}

static void put_public_name(struct buf *out, struct span name)
{
    for (size_t i = 0; i < name.n && i < PUBLIC_MAX; i++)
        buf_char(out, ascii_is_word(name.p[i], "_-") ? name.p[i] : '_');
}

/* A catalog while it is being built, with the names that are taken. */
struct draft {
    struct catalog *catalog;
    struct map names;
    struct map marked; /* names with a page's name added that were taken too -> last number */
};

/* The first tool of a name keeps the name; for later ones, the name of their page is added. */
static void choose_name(struct draft *d, const struct page *p, const struct tool *tool,
                        struct buf *name)
{
    put_public_name(name, tool->name);
    if (map_get(&d->names, buf_view(name))) {
        size_t most = PUBLIC_MAX - NUMBER_MAX - 1 - strlen(p->name);
        if (name->n > most)
            name->n = most;
        buf_printf(name, "_%s", p->name);
    }
    if (map_get(&d->names, buf_view(name))) {
        size_t stem = name->n;
        uintptr_t n = (uintptr_t)map_get(&d->marked, buf_view(name));
        for (n = n ? n : 1; map_get(&d->names, buf_view(name));) {
            name->n = stem;
            buf_printf(name, "_%u", (unsigned)++n);
        }
        map_put(&d->marked, span_cut(buf_view(name), 0, stem), (void *)n);
    }
    map_put(&d->names, buf_view(name), d);
}

/* The page's title and URL, without the query, which tell agents where a tool belongs. */
static void put_where(struct buf *out, const struct page *p)
{
    if (p->title)
        buf_str(out, p->title);
    if (p->title && p->url)
        buf_str(out, ", ");
    if (p->url)
        buf_span(out, span_cut(span_str(p->url), 0, span_find(span_str(p->url), '?')));
}

static void add_tool(struct browser_session *s, struct draft *d, struct page *p, struct tool *tool)
{
    BUF_SCOPED raw = {0}, name = {0}, where = {0};
    struct item item = {0};

    choose_name(d, p, tool, &name);
    put_where(&where, p);
    entry_put(&raw, tool->raw, buf_view(&name), buf_view(&where), &item);
    item.name = buf_view(&name);
    item.raw = buf_view(&raw);
    if (catalog_add(d->catalog, ITEM_TOOL, &item))
        s->leads[s->n_leads++] = (struct lead){p, tool};
}

/*
 * A page that was reloaded looks like two pages until its old connection is closed: two pages
 * without a key and of one title that offer the same tools, byte for byte. Only the newer is
 * listed.
 */
static bool is_shadowed(const struct browser_session *s, const struct page *p)
{
    bool later = false;

    LIST_EACH (&s->pages, it) {
        const struct page *other = LIST_ENTRY(it, struct page, node);
        bool same = later && !p->key && !other->key && page_is_here(other) &&
                    other->n_tools == p->n_tools && p->n_tools &&
                    span_eq(span_str(p->title), span_str(other->title));
        for (size_t i = 0; same && i < p->n_tools; i++)
            same = span_eq(p->tools[i].raw, other->tools[i].raw);
        if (same)
            return true;
        later |= other == p;
    }
    return false;
}

/* Stores what the guides' tools depend on, and updates the guides. */
static void set_guided(struct browser_session *s, bool hides, bool offers, bool webmcp)
{
    struct browser *b = s->browser;

    b->n_hiding += (size_t)hides - (size_t)s->hides;
    b->n_offering += (size_t)offers - (size_t)s->offers;
    b->n_webmcp += (size_t)webmcp - (size_t)s->webmcp;
    s->hides = hides;
    s->offers = offers;
    s->webmcp = webmcp;
    if (hides && !s->guide) {
        s->guide = guide_new(b, s);
        view_add(s->view, guide_provider(s->guide), NULL);
    }
    guide_update(s->guide);
    guide_update(b->guide);
}

static void publish(struct browser_session *s)
{
    struct draft draft = {.catalog = provider_draft(&s->core)};
    BUF_SCOPED scratch = {0};
    bool hidden = false, webmcp = false;
    const char *ours;

    /* These names are reserved for the guide: a page's tool of such a name is renamed. */
    for (size_t i = 0; (ours = guide_tool(i)); i++)
        map_put(&draft.names, span_str(ours), &draft);
    timer_clear(timers_of(s), &s->publish);
    s->n_leads = 0;
    s->leads = mem_resize(s->leads, (session_tool_count(s) + 1) * sizeof *s->leads);
    LIST_EACH (&s->pages, it) {
        struct page *p = LIST_ENTRY(it, struct page, node);
        if (!page_is_here(p) || is_shadowed(s, p))
            continue;
        if (!s->core.mark)
            s->core.mark = p->name;
        webmcp |= p->n_tools && p->dialect->has_relay_tools;
        for (size_t i = 0; i < p->n_tools; i++) {
            if (session_lacks(s, p, &p->tools[i], &scratch).n)
                hidden = true;
            else
                add_tool(s, &draft, p, &p->tools[i]);
        }
    }
    map_fini(&draft.names);
    map_fini(&draft.marked);
    catalog_fit(draft.catalog);
    provider_publish(&s->core, draft.catalog);
    set_guided(s, hidden, s->n_leads || hidden, webmcp);
    browser_news(s->browser);
}

static void on_publish(struct timer *t)
{
    publish(CONTAINER_OF(t, struct browser_session, publish));
}

void session_changed(struct browser_session *s)
{
    if (!s->ending)
        publish(s);
}

void session_changed_late(struct browser_session *s)
{
    if (!s->ending && !timer_is_set(&s->publish))
        timer_set(timers_of(s), &s->publish, COALESCE_MS);
}

/* --- calls --- */

static void refuse(struct call *call, const char *code, const char *fmt, struct span what)
{
    BUF_SCOPED text = {0}, body = {0};

    buf_str(&text, fmt);
    buf_span(&text, what);
    result_put_failure(&body, code, buf_view(&text));
    call_done(call, &(struct outcome){
                        .kind = OUTCOME_ERROR, .body = buf_view(&body), .text = buf_view(&text)});
}

/* No tool of this name is listed: the error says if a capability, a page or the tool is missing. */
static void refuse_unknown(struct browser_session *s, struct call *call, struct span name)
{
    BUF_SCOPED scratch = {0};

    LIST_EACH (&s->pages, it) {
        const struct page *p = LIST_ENTRY(it, struct page, node);
        for (size_t i = 0; i < p->n_tools; i++) {
            struct span lacks = session_lacks(s, p, &p->tools[i], &scratch);
            if (!span_eq(p->tools[i].name, name) || (!lacks.n && !p->silent))
                continue;
            if (lacks.n)
                refuse(call, "CAPABILITY_DENIED", "Capability not granted: ", lacks);
            else
                refuse(call, "CONNECTION_ERROR", PAGE_SILENT, SPAN_EMPTY);
            return;
        }
    }
    if (session_is_connected(s))
        refuse(call, "TOOL_NOT_FOUND", "Tool not found: ", name);
    else
        refuse(call, "CONNECTION_ERROR", "No browser client connected to this session", SPAN_EMPTY);
}

static void put_call(struct buf *out, const struct tool *tool, struct span arguments)
{
    buf_char(out, '{');
    json_out_text(out, "name", tool->name);
    json_out_raw(out, "arguments", arguments);
    buf_char(out, '}');
}

const struct lead *session_lead(const struct browser_session *s, struct span name)
{
    const struct item *tools = s->core.catalog->items[ITEM_TOOL];

    for (size_t i = 0; i < s->n_leads; i++)
        if (span_eq(tools[i].name, name))
            return &s->leads[i];
    return NULL;
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct browser_session *s = of_peer(self);
    struct json_slot given = json_get(request->params, "arguments");
    struct span arguments = given.type == JSON_OBJECT ? given.value : SPAN("{}");
    BUF_SCOPED params = {0};

    session_touch(s);
    if (request->op != OP_CALL_TOOL) {
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
        return;
    }
    if (span_is(request->name, GUIDE_META)) {
        grants_open(s, call, arguments);
        return;
    }
    const struct lead *lead = session_lead(s, request->name);
    if (!lead) {
        refuse_unknown(s, call, request->name);
        return;
    }
    if (!lead->page || !page_is_here(lead->page)) {
        refuse(call, "CONNECTION_ERROR", "The page of this tool is not connected", SPAN_EMPTY);
        return;
    }
    /* A grant for one call may have been used since the list was made. */
    struct span lacks = session_lacks(s, lead->page, lead->tool, &params);
    if (lacks.n) {
        refuse(call, "CAPABILITY_DENIED", "Capability not granted: ", lacks);
        return;
    }
    params.n = 0;
    put_call(&params, lead->tool, arguments);
    struct page_request *r = page_request_call(lead->page, buf_view(&params),
                                               page_timeout(request->params, lead->tool->timeout));
    r->call = call;
    call->provider_data = r;
    grants_use_once(s, lead->page, lead->tool);
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

void session_cancel(struct call *call)
{
    struct page_request *r = call->provider_data;

    if (!r)
        return;
    r->call = NULL;
    if (r->kind == PAGE_REQUEST_CONSENT)
        return; /* the question stays open: the user's answer still counts */
    page_request_call_off(r);
    page_request_free(r);
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};

struct browser_session *session_of(struct provider *p)
{
    return p->peer.verbs == &verbs ? CONTAINER_OF(p, struct browser_session, core) : NULL;
}

/* --- life --- */

static void start(struct provider *p)
{
    publish(CONTAINER_OF(p, struct browser_session, core));
    provider_up(p);
}

static void stop(struct provider *p)
{
    provider_lost(p, "the session is over");
}

static const struct provider_ops life = {.start = start, .stop = stop};

struct browser_session *session_new(struct browser *b, struct span id)
{
    struct browser_session *s = MEM_NEW(struct browser_session);

    s->browser = b;
    s->id = mem_span(id);
    s->enforces = b->options.strict;
    s->created_at = browser_wall_ms();
    s->publish.fire = on_publish;
    list_init(&s->pages);
    list_init(&s->agents);
    list_init(&s->grants);
    session_touch(s);
    provider_init(&s->core, &verbs, &life, s->id);
    s->core.bare_names = s->core.built_in = s->core.tells_later = true;
    s->core.told_as = BROWSER_TOLD_AS;
    s->core.policy.timeout = s->core.policy.start_timeout =
        0; /* requests have their own deadlines */
    s->view = view_new(s->id, NULL);
    router_add_provider(b->router, &s->core);
    view_add(s->view, &s->core, NULL);
    view_set_fallback(s->view, &s->core);
    provider_want(&s->core);
    return s;
}

void session_hang_up(const struct browser_session *s, uint16_t code, const char *why)
{
    LIST_EACH (&s->pages, it) {
        LIST_EACH (&LIST_ENTRY(it, struct page, node)->pipes, at)
            pipe_close(LIST_ENTRY(at, struct pipe, in_owner), code, why);
    }
    LIST_EACH (&s->agents, it) {
        const struct agent *a = LIST_ENTRY(it, struct agent, node);
        if (a->pipe)
            pipe_close(a->pipe, code, why);
    }
}

void session_free(struct browser_session *s)
{
    s->ending = true;
    set_guided(s, false, false, false);
    LIST_EACH_SAFE (&s->agents, it)
        agent_join(LIST_ENTRY(it, struct agent, node), NULL);
    for (struct page *first; (first = LIST_FIRST(&s->pages, struct page, node));)
        page_free(first);
    provider_unwant(&s->core);
    guide_free(s->guide);
    timer_clear(timers_of(s), &s->publish);
    router_remove_provider(s->browser->router, &s->core);
    stats_add(&s->browser->past,
              &s->core.stats); /* counters must not go down when a session ends */
    view_free(s->view);
    provider_fini(&s->core);
    mem_free(s->leads);
    LIST_EACH_SAFE (&s->grants, it)
        grants_drop(LIST_ENTRY(it, struct grant, node));
    mem_free(s->id);
    mem_free(s);
}
