/* GET /api/tools: all items of all servers, searched by words, with what they cost and why some are
 * hidden; or one item in full. Called by api.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "hub/graph/lock.h"
#include "hub/graph/tool_list.h"
#include "mcp/search_provider.h"
#include "wire/json.h"
#include "wire/json_out.h"
#include "wire/tokens.h"
#include "wire/webform.h"

enum { SHOWN_MAX = 20000, DESCRIPTION_SHOWN = 300, QUESTION_MAX = 1000 };

static const char *const kind_words[ITEM_KINDS] = {"tool", "resource", "template", "prompt"};

/* One item of a list, listed or hidden. */
struct tools_item {
    enum item_kind kind;
    const char *server;
    struct span name;        /* the public name; of a hidden item its own name */
    const struct item *item; /* NULL: of a tool that the lock holds back only the name is known */
    struct span raw;         /* as agents get it, or would get it */
    const char *by;          /* what hides the item; NULL: it is listed */
    struct span rule;        /* the pattern that hides it, or what the lock found */
    const struct config_strings *allow; /* the patterns, none of which matches */
    const char *view;                   /* the name of the view that hides the item */
};

struct tools_query {
    bool hidden, of_kind;
    enum item_kind kind;
    uint64_t limit, offset;
    struct buf words, server;
    char *view; /* what this view hides is hidden; NULL: no view was asked for */
};

struct tools_found {
    struct tools_item *items;
    size_t n, cap;
};

/* --- what hides an item --- */

static struct span first_match(const struct config_strings *patterns, const struct item *item)
{
    for (size_t i = 0; i < patterns->n; i++) {
        struct span one = span_str(patterns->items[i]);
        if (filter_passes_item(&(struct filter){.allow = &one, .n_allow = 1}, item))
            return one;
    }
    return SPAN_EMPTY;
}

/* By which list of its server's entry is the item hidden? Allow wins, as in core/view.h. */
static void explain(struct tools_item *it, const struct admin *a)
{
    const struct config_server *s = config_server(bridge_config(a->bridge), it->server);

    it->by = "name"; /* another item has its name, or it is not listed for what it is */
    if (!s || it->kind != ITEM_TOOL)
        return;
    struct span denied = first_match(&s->deny, it->item);
    if (s->allow.n && !first_match(&s->allow, it->item).n) {
        it->by = "allow";
        it->allow = &s->allow;
    } else if (!s->allow.n && denied.n) {
        it->by = "deny";
        it->rule = denied;
    }
}

/* --- collecting --- */

static void add(struct tools_found *f, const struct tools_item *it)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->items = mem_resize(f->items, f->cap * sizeof *f->items);
    }
    f->items[f->n++] = *it;
}

static bool is_wanted(const struct tools_query *q, enum item_kind kind, const char *server)
{
    return (!q->of_kind || q->kind == kind) &&
           (!q->server.n || span_is(buf_view(&q->server), server));
}

/* With ?view= the items that the view hides are hidden. */
static void collect_listed(struct tools_found *f, const struct admin *a, const struct sight *s,
                           const struct tools_query *q)
{
    struct view *all = bridge_full_view(a->bridge);
    struct sight asked = sight_by_view(a->hub, q->view);
    const struct target *t;

    for (unsigned kind = 0; kind < ITEM_KINDS; kind++) {
        struct json_iter it = json_iter(view_list(all, kind));
        for (size_t i = 0; (t = view_item(all, kind, i)) && json_next(&it); i++) {
            struct span alias = span_str(t->provider->alias);
            bool seen = sight_shows_item(&asked, alias, kind, t->item);
            if (is_wanted(q, kind, t->provider->alias) && (seen || q->hidden) &&
                sight_shows_item(s, alias, kind, t->item))
                add(f, &(struct tools_item){.kind = kind,
                                            .server = t->provider->alias,
                                            .name = t->public_name,
                                            .item = t->item,
                                            .raw = it.value,
                                            .by = seen ? NULL : "view",
                                            .view = asked.view});
        }
    }
}

/* Does the view of the item's server list the item? */
static bool is_listed(struct view *own, enum item_kind kind, const struct item *item)
{
    const struct target *t = own ? view_find(own, kind, item->name) : NULL;

    return t && t->item == item;
}

/* What servers offer and agents do not see. Viewers of a view are not told. */
static void collect_hidden(struct tools_found *f, const struct admin *a,
                           const struct tools_query *q)
{
    const struct lock *lock = bridge_lock(a->bridge);

    for (struct provider *p = NULL; (p = bridge_next(a->bridge, p));)
        for (unsigned kind = 0; p->catalog && kind < ITEM_KINDS; kind++)
            for (size_t i = 0; i < p->catalog->n[kind]; i++) {
                const struct item *item = &p->catalog->items[kind][i];
                if (!is_wanted(q, kind, p->alias) || is_listed(bridge_server_view(p), kind, item))
                    continue;
                struct tools_item it = {.kind = kind,
                                        .server = p->alias,
                                        .name = item->name,
                                        .item = item,
                                        .raw = item->raw};
                explain(&it, a);
                add(f, &it);
            }
    for (const struct lock_held *h = NULL; lock_withholds(lock) && (h = lock_next(lock, h));)
        if (is_wanted(q, ITEM_TOOL, h->server))
            add(f, &(struct tools_item){.kind = ITEM_TOOL,
                                        .server = h->server,
                                        .name = span_str(h->tool),
                                        .raw = SPAN("{}"),
                                        .by = "lock",
                                        .rule = h->known ? SPAN("changed") : SPAN("new")});
}

/* --- searching --- */

/* The best hits first, ranked as find_tools ranks. */
static void keep_hits(struct tools_found *f, struct span words)
{
    struct search *index = search_new();
    struct search_hit *hits = mem_alloc((f->n + 1) * sizeof *hits);
    struct tools_item *kept = mem_alloc((f->n + 1) * sizeof *kept);

    for (size_t i = 0; i < f->n; i++)
        search_provider_add(index, f->items[i].name, f->items[i].raw);
    search_finish(index);
    size_t n = search_find(index, span_cut(words, 0, QUESTION_MAX), hits, f->n);
    for (size_t i = 0; i < n; i++)
        kept[i] = f->items[hits[i].document];
    search_free(index);
    mem_free(hits);
    mem_free(f->items);
    f->items = kept;
    f->n = n;
}

/* --- writing --- */

static void put_hidden(struct buf *out, const struct tools_item *it)
{
    BUF_SCOPED where = {0}, rules = {0};

    if (!it->by) {
        json_out_raw(out, "hidden", SPAN("null"));
        return;
    }
    buf_printf(&where, "%s %s", it->view ? "view" : "server", it->view ? it->view : it->server);
    buf_span(&rules, it->rule);
    for (size_t i = 0; it->allow && i < it->allow->n; i++)
        buf_printf(&rules, "%s%s", i ? ", " : "", it->allow->items[i]);
    json_out_open(out, "hidden", '{');
    json_out_str(out, "by", it->by);
    json_out_text_or_null(out, "rule", buf_view(&rules));
    json_out_text(out, "where", buf_view(&where));
    buf_char(out, '}');
}

/* A text of the item, redacted and cut in whole characters; null if there is none. */
static void put_text(struct buf *out, const char *name, struct span raw, const char *key)
{
    BUF_SCOPED scratch = {0}, shown = {0};
    struct json_slot slot = json_get(raw, key);

    if (slot.type != JSON_STRING) {
        json_out_raw(out, name, SPAN("null"));
        return;
    }
    log_redact(&shown, json_text(slot.value, &scratch));
    struct span cut = span_cut(buf_view(&shown), 0, DESCRIPTION_SHOWN);
    while (cut.n < shown.n && cut.n && utf8_tail((unsigned char)shown.p[cut.n]))
        cut.n--;
    json_out_text(out, name, cut);
}

static void put_facts(struct buf *out, const struct tools_item *it, size_t tokens)
{
    unsigned flags = it->item ? it->item->flags : 0;
    struct span own = !it->item ? it->name : it->item->own.n ? it->item->own : it->item->name;

    json_out_str(out, "kind", kind_words[it->kind]);
    json_out_str(out, "server", it->server);
    json_out_redacted(out, "own_name", own);
    json_out_number(out, "tokens", tokens);
    json_out_bool(out, "read_only", flags & ITEM_READ_ONLY);
    json_out_bool(out, "idempotent", flags & ITEM_IDEMPOTENT);
    json_out_bool(out, "task", flags & (ITEM_TASK_MAY | ITEM_TASK_MUST));
    put_hidden(out, it);
}

static size_t tokens_of(const struct tools_item *it)
{
    return it->item && it->kind == ITEM_TOOL ? tokens_of_tool(it->raw) : 0;
}

static void put_brief(struct buf *out, const struct tools_item *it)
{
    json_out_open(out, NULL, '{');
    json_out_redacted(out, "name", it->name);
    put_text(out, "title", it->raw, "title");
    put_text(out, "description", it->raw, "description");
    put_facts(out, it, tokens_of(it));
    buf_char(out, '}');
}

static void put_list(struct buf *out, const struct tools_found *f, const struct tools_query *q)
{
    size_t tokens = 0;

    for (size_t i = 0; i < f->n; i++)
        tokens += f->items[i].by ? 0 : tokens_of(&f->items[i]);
    buf_char(out, '{');
    json_out_number(out, "total", f->n);
    json_out_number(out, "tokens", tokens);
    json_out_open(out, "items", '[');
    for (size_t i = q->offset; i < f->n && i - q->offset < q->limit; i++)
        put_brief(out, &f->items[i]);
    buf_str(out, "]}\n");
}

/* JSON of servers, redacted. It is refused when redacting left no JSON. */
static void respond(struct http_exchange *x, struct span json)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, json);
    if (json_skim(buf_view(&shown), NULL, NULL, NULL, NULL)) {
        http_refuse(x, 409, "this cannot be shown", "a secret in it is more than a text");
        return;
    }
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_span(out, buf_view(&shown));
    buf_char(out, '\n');
    http_respond_end(x);
}

/* The item as agents get it, with what we know of it. */
static void show_one(struct http_exchange *x, const struct tools_item *it)
{
    BUF_SCOPED members = {0}, whole = {0};

    put_facts(&members, it, tokens_of(it));
    if (!it->item)
        json_out_text(&members, "name", it->name);
    json_insert(&whole, it->raw, buf_view(&members));
    respond(x, buf_view(&whole));
}

/* --- requests --- */

static bool read_query(const struct http_request *req, struct tools_query *q)
{
    BUF_SCOPED scratch = {0}, more = {0}, words = {0}, view = {0};
    struct span kind = http_query(req->query, "kind", &scratch);

    *q = (struct tools_query){.hidden = api_has_flag(req, "hidden"), .limit = SHOWN_MAX};
    for (unsigned i = 0; kind.p && i < ITEM_KINDS; i++)
        if (span_is(kind, kind_words[i])) {
            q->kind = i;
            q->of_kind = true;
        }
    buf_span(&q->server, http_query(req->query, "server", &more));
    buf_span(&q->words, http_query(req->query, "q", &words));
    struct span asked = http_query(req->query, "view", &view);
    q->view = asked.p ? mem_span(asked) : NULL;
    return (!kind.p || q->of_kind) && api_read_number(req, "limit", &q->limit) &&
           api_read_number(req, "offset", &q->offset) && q->limit <= SHOWN_MAX;
}

static void collect(struct tools_found *f, const struct admin *a, const struct sight *s,
                    const struct tools_query *q)
{
    collect_listed(f, a, s, q);
    if (q->hidden && !s->narrowed)
        collect_hidden(f, a, q);
    if (q->words.n)
        keep_hits(f, buf_view(&q->words));
}

/* Unescapes a name in the path, which is written like a value of a form. */
static struct span unescape(struct span name, struct buf *scratch)
{
    BUF_SCOPED form = {0};

    buf_str(&form, "name=");
    buf_span(&form, name);
    return webform_get(buf_view(&form), "name", scratch);
}

/* By the public name, or with ?server= by the own name. */
static void find_one(const struct admin *a, struct http_exchange *x, const struct api_path *path,
                     struct tools_query *q)
{
    struct tools_found f = {0};
    BUF_SCOPED scratch = {0};
    struct span name = unescape(path->name, &scratch);
    const struct tools_item *found = NULL;

    q->hidden = true;
    q->kind = q->of_kind ? q->kind : ITEM_TOOL;
    q->of_kind = true;
    collect(&f, a, &path->sight, q);
    for (size_t i = 0; i < f.n && !found; i++)
        if (span_eq(f.items[i].name, name) ||
            (q->server.n && f.items[i].item && span_eq(f.items[i].item->name, name)))
            found = &f.items[i];
    if (found)
        show_one(x, found);
    else
        http_refuse(x, 404, "no such tool", "/api/tools?brief=1 lists them; ?kind= and ?server=");
    mem_free(f.items);
}

static void list_all(const struct admin *a, struct http_exchange *x)
{
    BUF_SCOPED list = {0};

    tool_list_put(&list, a->bridge);
    respond(x, buf_view(&list));
}

static void list_brief(const struct admin *a, struct http_exchange *x, const struct sight *s,
                       const struct tools_query *q)
{
    struct tools_found f = {0};

    collect(&f, a, s, q);
    put_list(http_respond_begin(x, 200, "application/json", SPAN_EMPTY), &f, q);
    http_respond_end(x);
    mem_free(f.items);
}

void tools_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path)
{
    struct tools_query q = {0};

    if (path->verb.n)
        api_no_such_path(x);
    else if (!admin_wants_get(x, req))
        ;
    else if (!read_query(req, &q))
        http_refuse(x, 400, "bad query",
                    "brief=1 with q, server, hidden=1, view, kind (tool, resource, template, "
                    "prompt), limit and offset");
    else if (q.view && !hub_narrowing(a->hub, q.view))
        http_refuse(x, 404, "no such view", "'views' of the configuration has them");
    else if (path->name.n)
        find_one(a, x, path, &q);
    else if (api_has_flag(req, "brief"))
        list_brief(a, x, &path->sight, &q);
    else if (path->sight.narrowed)
        admin_refuse_view(x);
    else
        list_all(a, x);
    buf_fini(&q.words);
    buf_fini(&q.server);
    mem_free(q.view);
}
