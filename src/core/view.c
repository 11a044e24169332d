/* Members and filters of a view, and the merged tables with public names and list JSON, rebuilt
 * when a catalog has changed. Called by hub/ and browser/ to build views, by route.c and router.c,
 * and by the families and cmd/ to list items. */
#include "core/view.h"

#include "base/ascii.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/provider.h"
#include "core/rules.h"

#include <stdio.h>

struct member {
    struct list in_provider; /* in the provider's `memberships` */
    struct view *view;
    struct provider *provider;
    struct filter filter;
    bool exempt; /* from the narrowing */
};

/* The merged table of one kind. */
struct table {
    struct map by_name;    /* public name, in `arena` -> struct target *, shown or not */
    struct target **shown; /* the listed targets, in order */
    size_t n_shown, cap;
    unsigned flags;     /* of all shown items */
    struct arena arena; /* targets and their names */
    struct buf json;
    uint64_t digest; /* of json */
    bool stale;
};

/* What the pattern puts before and after the names of a server's tools. */
struct name_frame {
    struct span head, tail;
};

/* A table that is being built, and the item that is being added. */
struct build {
    struct view *view;
    enum item_kind kind;
    struct table *table;
    struct map known; /* names in the previous table: their renames are logged already */
    struct provider *provider;
    const struct item *item;
    bool exempt;   /* the member was added by view_add_exempt */
    bool unlisted; /* its items can be called by name, but are not listed */
    struct buf name, label;
    struct name_frame *frames; /* of all servers; filled when the first bare name is checked */
    size_t n_frames;
    bool framed;
};

/* A change of an item's JSON: the bytes at `at` are replaced by around[0], `text`, around[1]. */
struct edit {
    struct cut at;
    const char *around[2];
    struct span text;
};

struct view {
    char *name;
    char *pattern;
    const char *described; /* text before the alias; NULL: descriptions stay as they are */
    struct provider *fallback;
    struct member **members;
    size_t n_members;
    const struct narrowing *narrowing; /* NULL = none */
    struct view *base;                 /* its members are shown as well; NULL = none */
    struct list in_base;               /* in base's `parts` */
    struct list parts;                 /* views whose base is this view */
    struct table tables[ITEM_KINDS];
};

/* The lists are built again at their next use. */
static void touch(struct view *v)
{
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        v->tables[kind].stale = true;
    LIST_EACH (&v->parts, it)
        touch(LIST_ENTRY(it, struct view, in_base));
}

void view_touch(const struct provider *p)
{
    LIST_EACH (&p->memberships, it)
        touch(LIST_ENTRY(it, struct member, in_provider)->view);
}

struct view *view_new(const char *name, const char *pattern)
{
    struct view *v = MEM_NEW(struct view);

    v->name = mem_str(name);
    v->pattern = mem_str(pattern);
    list_init(&v->in_base);
    list_init(&v->parts);
    touch(v);
    return v;
}

static void free_member(struct member *m)
{
    list_remove(&m->in_provider);
    mem_free(m);
}

void view_free(struct view *v)
{
    if (!v)
        return;
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        struct table *t = &v->tables[kind];
        map_fini(&t->by_name);
        mem_free(t->shown);
        arena_fini(&t->arena);
        buf_fini(&t->json);
    }
    list_remove(&v->in_base);
    for (size_t i = 0; i < v->n_members; i++)
        free_member(v->members[i]);
    mem_free(v->members);
    mem_free(v->pattern);
    mem_free(v->name);
    mem_free(v);
}

const char *view_name(const struct view *v)
{
    return v->name;
}

const char *view_pattern(const struct view *v)
{
    return v->pattern;
}

void view_set_described(struct view *v, const char *before)
{
    v->described = before;
    touch(v);
}

void view_set_fallback(struct view *v, struct provider *p)
{
    v->fallback = p;
}

struct provider *view_only(const struct view *v)
{
    if (v->pattern || v->narrowing || v->base || v->n_members != 1)
        return NULL;
    const struct filter *f = &v->members[0]->filter;
    struct provider *p = v->members[0]->provider;
    return f->n_allow || f->n_deny || p->policy.n_approve || rules_concern(p) ? NULL : p;
}

bool view_is_whole(const struct view *v)
{
    for (int kind = 0; v->narrowing && kind < ITEM_KINDS; kind++)
        if (view_filter(v, (enum item_kind)kind))
            return false;
    return true;
}

const struct filter *view_filter(const struct view *v, enum item_kind kind)
{
    const struct filter *f = v->narrowing ? &v->narrowing->filters[kind] : NULL;

    return f && (f->n_allow || f->n_deny) ? f : NULL;
}

struct provider *view_fallback(const struct view *v)
{
    return v->fallback;
}

void view_add(struct view *v, struct provider *p, const struct filter *filter)
{
    struct member *m = MEM_NEW(struct member);

    m->view = v;
    m->provider = p;
    if (filter)
        m->filter = *filter;
    list_append(&p->memberships, &m->in_provider);
    v->members = mem_resize(v->members, (v->n_members + 1) * sizeof(struct member *));
    v->members[v->n_members++] = m;
    touch(v);
}

void view_add_exempt(struct view *v, struct provider *p)
{
    view_add(v, p, NULL);
    v->members[v->n_members - 1]->exempt = true;
}

void view_narrow(struct view *v, struct view *base, const struct narrowing *narrowing)
{
    v->narrowing = narrowing;
    v->base = base;
    list_remove(&v->in_base);
    if (base)
        list_append(&base->parts, &v->in_base);
    touch(v);
}

/* --- members: the view's own, then those of the base --- */

static bool admits(const struct view *v, const struct member *m)
{
    const struct narrowing *n = v->narrowing;

    if (!n || !n->n_providers || m->exempt)
        return true;
    for (size_t i = 0; i < n->n_providers; i++)
        if (span_is(n->providers[i], m->provider->alias))
            return true;
    return false;
}

/* The next member from *at on; advances *at. NULL at the end. */
static const struct member *next_member(const struct view *v, size_t *at)
{
    size_t more = v->base ? v->base->n_members : 0;

    while (*at < v->n_members + more) {
        size_t i = (*at)++;
        const struct member *m =
            i < v->n_members ? v->members[i] : v->base->members[i - v->n_members];
        if (admits(v, m))
            return m;
    }
    return NULL;
}

static enum view_tools tools_of(const struct view *v)
{
    return v->narrowing ? v->narrowing->tools : VIEW_TOOLS_LISTED;
}

static bool shows(const struct view *v, const struct member *m, enum item_kind kind,
                  const struct item *item)
{
    const struct filter *f = m->exempt ? NULL : view_filter(v, kind);
    const struct filter *prompts = m->exempt ? NULL : view_filter(v, ITEM_PROMPT);

    if (kind != ITEM_TOOL)
        return !f || filter_passes_item(f, item);
    if (!m->exempt && tools_of(v) == VIEW_TOOLS_HIDDEN)
        return false;
    /* A tool made from a prompt is hidden with that prompt. */
    return filter_passes(&m->filter, item->own) && (!f || filter_passes(f, item->own)) &&
           (!prompts || !item->label.n || filter_passes(prompts, item->label));
}

void view_remove(struct view *v, const struct provider *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < v->n_members; i++)
        if (v->members[i]->provider == p)
            free_member(v->members[i]);
        else
            v->members[kept++] = v->members[i];
    v->n_members = kept;
    if (v->fallback == p)
        v->fallback = NULL;
    touch(v);
}

void view_remove_everywhere(struct provider *p)
{
    for (struct member *m; (m = LIST_FIRST(&p->memberships, struct member, in_provider));)
        view_remove(m->view, p);
}

bool view_has(const struct view *v, const struct provider *p)
{
    const struct member *m;

    for (size_t at = 0; (m = next_member(v, &at));)
        if (m->provider == p)
            return true;
    return false;
}

unsigned view_kinds(const struct view *v, const struct provider *p)
{
    const struct member *m;

    for (size_t at = 0; (m = next_member(v, &at));)
        if (m->provider == p)
            return ((1u << ITEM_KINDS) - 1) &
                   ~(tools_of(v) == VIEW_TOOLS_LISTED || m->exempt ? 0u : 1u << ITEM_TOOL);
    return 0;
}

struct provider *view_member(const struct view *v, size_t n)
{
    const struct member *m = NULL;

    if (!v->narrowing && !v->base) /* the usual case, fast: callers iterate over all members */
        return n < v->n_members ? v->members[n]->provider : NULL;
    for (size_t at = 0; (m = next_member(v, &at)) && n > 0;)
        n--;
    return m ? m->provider : NULL;
}

/* Eight hex digits that depend on provider and own name only (FNV-1a: stable across runs). */
static void name_hash(const struct provider *p, struct span own, char out[9])
{
    uint64_t h = 0xcbf29ce484222325u;
    const struct span parts[] = {span_str(p->alias), SPAN("/"), own};

    for (size_t part = 0; part < COUNT_OF(parts); part++)
        for (size_t i = 0; i < parts[part].n; i++)
            h = (h ^ (unsigned char)parts[part].p[i]) * 0x100000001b3u;
    snprintf(out, 9, "%08x", (unsigned)(h ^ (h >> 32)));
}

static void make_plain(struct buf *name)
{
    for (size_t i = 0; i < name->n; i++)
        if (!ascii_is_word(name->p[i], "_-"))
            name->p[i] = '-';
}

/* The name is cut so that "-" and the hash fit into the limit, then both are appended. */
static void rename_item(struct build *b, const char *why)
{
    struct span own = b->item->name;
    char hash[9];

    name_hash(b->provider, own, hash);
    if (b->name.n > VIEW_MAX_NAME - 9)
        b->name.n = VIEW_MAX_NAME - 9;
    buf_char(&b->name, '-');
    buf_str(&b->name, hash);
    /* Logged once, not at every rebuild: a server that comes and goes must not fill the log. */
    if (!map_get(&b->known, buf_view(&b->name)))
        log_warn(b->provider->alias, "'" SPAN_FMT "' %s in view %s: offered as " SPAN_FMT,
                 SPAN_ARG(own), why, b->view->name, SPAN_ARG(buf_view(&b->name)));
}

/* Renames the item with the provider's mark, which people can read, instead of a hash. */
static void mark_item(struct build *b)
{
    size_t n = strlen(b->provider->mark) + 1;

    if (b->name.n + n > VIEW_MAX_NAME && n < VIEW_MAX_NAME)
        b->name.n = VIEW_MAX_NAME - n;
    buf_char(&b->name, '-');
    buf_str(&b->name, b->provider->mark);
}

/* Replace {server} and {tool} in the pattern; anything else is copied. */
static void apply_pattern(struct buf *out, const char *pattern, const char *alias, struct span own)
{
    for (const char *p = pattern; *p;) {
        if (strncmp(p, "{server}", 8) == 0) {
            buf_str(out, alias);
            p += 8;
        } else if (strncmp(p, "{tool}", 6) == 0) {
            buf_span(out, own);
            p += 6;
        } else {
            buf_char(out, *p++);
        }
    }
}

/* URIs are routed as they are; only tools and prompts have names that a pattern applies to. */
static bool is_named(enum item_kind kind)
{
    return kind == ITEM_TOOL || kind == ITEM_PROMPT;
}

/* The target that has the name already, or NULL. */
static const struct target *name_owner(const struct build *b)
{
    return map_get(&b->table->by_name, buf_view(&b->name));
}

static bool is_this_item(const struct target *t, const struct build *b)
{
    return t->provider == b->provider && span_eq(t->item->name, b->item->name);
}

/* The character as it appears in a public name, in lower case. */
static char fold(char c)
{
    return ascii_is_word(c, "_-") ? ascii_to_lower(c) : '-';
}

static bool looks_alike(struct span a, struct span b)
{
    for (size_t i = 0; a.n == b.n && i < a.n; i++)
        if (fold(a.p[i]) != fold(b.p[i]))
            return false;
    return a.n == b.n;
}

static bool has_frame(struct span name, const struct name_frame *f)
{
    return name.n >= f->head.n + f->tail.n && looks_alike(span_cut(name, 0, f->head.n), f->head) &&
           looks_alike(span_from(name, name.n - f->tail.n), f->tail);
}

struct provider *view_answerer(const struct view *v, struct span name)
{
    static const struct span tool = {"\n", 1};
    const struct member *m;

    for (size_t at = 0; (m = next_member(v, &at));) {
        BUF_SCOPED text = {0};
        if (!provider_needs_sign_in(m->provider) && !m->provider->refuses)
            continue;
        apply_pattern(&text, v->pattern ? v->pattern : "{tool}", m->provider->alias, tool);
        size_t head = span_find(buf_view(&text), tool.p[0]);
        struct name_frame f = {span_cut(buf_view(&text), 0, head),
                               span_from(buf_view(&text), head + 1)};
        if (has_frame(name, &f))
            return m->provider->refuses ? m->provider : m->provider->sign_in;
    }
    return NULL;
}

/* Collects the frames of all servers, also of those that are down or have listed nothing yet. */
static void find_frames(struct build *b)
{
    static const struct span tool = {"\n", 1};
    BUF_SCOPED text = {0};
    const struct member *m;

    b->framed = true;
    for (size_t at = 0; (m = next_member(b->view, &at));) {
        text.n = 0;
        apply_pattern(&text, b->view->pattern, m->provider->alias, tool);
        if (m->provider->bare_names || text.n == tool.n)
            continue;
        struct span kept = arena_span(&b->table->arena, buf_view(&text));
        size_t head = span_find(kept, tool.p[0]);
        b->frames = mem_resize(b->frames, (b->n_frames + 1) * sizeof(struct name_frame));
        /* A name that is too long is cut and gets a hash: at least this much of the head stays. */
        b->frames[b->n_frames++] = (struct name_frame){
            span_cut(span_cut(kept, 0, head), 0, VIEW_MAX_NAME - 9), span_from(kept, head + 1)};
    }
}

/*
 * A name that is not subject to the pattern must not look as if the pattern had made it for a
 * server: the provider that offers the name could be taken for that server. Such a head and tail
 * are removed, repeatedly if the name has several.
 */
static void take_frames_off(struct build *b)
{
    bool taken = false;

    if (!b->framed)
        find_frames(b);
    for (size_t i = 0; i < b->n_frames;) {
        const struct name_frame *f = &b->frames[i++];
        if (!has_frame(buf_view(&b->name), f))
            continue;
        b->name.n -= f->tail.n;
        buf_drop(&b->name, f->head.n);
        taken = true;
        i = 0;
    }
    if (taken) {
        make_plain(&b->name);
        rename_item(b, "looks like a tool of a server");
    }
}

/* Two providers have the same URI: the later provider's gets its alias in front (VIEW_URI_FMT). */
static bool lead_to_provider(struct build *b)
{
    b->name.n = 0;
    buf_printf(&b->name, VIEW_URI_FMT, b->provider->alias);
    buf_span(&b->name, b->item->name);
    const struct target *owner = name_owner(b);
    if (!map_get(&b->known, buf_view(&b->name)))
        log_info(b->provider->alias,
                 "'" SPAN_FMT "' is another server's, too: %s view %s as " SPAN_FMT,
                 SPAN_ARG(b->item->name), owner ? "left out of" : "offered in", b->view->name,
                 SPAN_ARG(buf_view(&b->name)));
    return !owner;
}

/* Chooses the item's public name; false when the item gets none and is left out. */
static bool name_item(struct build *b)
{
    const struct view *v = b->view;

    b->name.n = 0;
    if (!v->pattern || !is_named(b->kind)) {
        buf_span(&b->name, b->item->name);
    } else if (b->provider->bare_names) {
        buf_span(&b->name, b->item->name);
        if (!b->exempt)
            take_frames_off(b);
    } else {
        apply_pattern(&b->name, v->pattern, b->provider->alias, b->item->name);
        make_plain(&b->name);
        if (b->name.n > VIEW_MAX_NAME)
            rename_item(b, "is too long a name");
    }

    const struct target *owner = name_owner(b);
    /* If a provider lists a name twice, the first item keeps it. */
    if (owner && is_this_item(owner, b))
        return false;
    if (owner && !is_named(b->kind))
        return lead_to_provider(b);
    if (owner && b->provider->mark) {
        make_plain(&b->name);
        mark_item(b);
        owner = name_owner(b);
    }
    if (owner) {
        make_plain(
            &b->name); /* a name that is changed anyway need not keep the provider's spelling */
        rename_item(b, "clashes");
        owner = name_owner(b);
    }
    if (owner && !is_this_item(owner, b))
        log_warn(b->provider->alias, "'" SPAN_FMT "' is left out of view %s: no name is free",
                 SPAN_ARG(b->item->name), v->name);
    return !owner;
}

/* A tool made for all resources also names, in its description, resources that this view hides. */
static bool tells_hidden(const struct build *b, const struct item *item)
{
    return b->kind == ITEM_TOOL && (item->flags & ITEM_MADE) && !item->label.n &&
           (view_filter(b->view, ITEM_RESOURCE) || view_filter(b->view, ITEM_TEMPLATE));
}

/* An alias needs no escapes. An item without a description gets one as its first member. */
static struct edit alias_edit(struct build *b, struct cut description)
{
    b->label.n = 0;
    buf_printf(&b->label, "%s%s]", b->view->described, b->provider->alias);
    return description.n
               ? (struct edit){{description.at + 1, 0}, {"", " "}, buf_view(&b->label)}
               : (struct edit){{1, 0}, {"\"description\":\"", "\","}, buf_view(&b->label)};
}

/* The edits for the public name, and for the description with the server's alias before it. */
static size_t edits_of(struct build *b, const struct target *target, struct edit edits[2])
{
    const struct item *item = target->item;
    struct cut description = item->description_at;
    size_t n = 0;

    if (!is_named(b->kind) && target->public_name.n > item->name.n) /* keep escapes in the rest */
        edits[n++] =
            (struct edit){{item->name_at.at + 1, 0},
                          {"", ""},
                          span_cut(target->public_name, 0, target->public_name.n - item->name.n)};
    else if (!span_eq(target->public_name, item->name))
        edits[n++] = (struct edit){item->name_at, {"\"", "\""}, target->public_name};
    if (tells_hidden(b, item))
        edits[n++] = (struct edit){description, {"\"", "\""}, SPAN("Read a resource")};
    else if (!b->view->described || b->kind != ITEM_TOOL || b->provider->built_in)
        return n;
    else
        edits[n++] = alias_edit(b, description);
    if (n == 2 && edits[1].at.at < edits[0].at.at) {
        struct edit first = edits[1];
        edits[1] = edits[0];
        edits[0] = first;
    }
    return n;
}

static void append_item(struct build *b, const struct target *target)
{
    struct buf *json = &b->table->json;
    struct span raw = target->item->raw;
    struct edit edits[2];
    size_t at = 0, n = edits_of(b, target, edits);

    if (json->n > 1)
        buf_char(json, ',');
    for (size_t i = 0; i < n; i++) {
        buf_span(json, span_cut(raw, at, edits[i].at.at - at));
        buf_str(json, edits[i].around[0]);
        buf_span(json, edits[i].text);
        buf_str(json, edits[i].around[1]);
        at = edits[i].at.at + edits[i].at.n;
    }
    buf_span(json, span_from(raw, at));
}

static void show_target(struct build *b, struct target *target)
{
    struct table *t = b->table;

    if (t->n_shown == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->shown = mem_resize(t->shown, t->cap * sizeof(struct target *));
    }
    t->shown[t->n_shown++] = target;
    t->flags |= target->item->flags;
    append_item(b, target);
}

static void add_item(struct build *b)
{
    struct table *t = b->table;

    if (!name_item(b))
        return;
    struct target *target = ARENA_NEW(&t->arena, struct target);
    *target = (struct target){b->provider, b->item, arena_span(&t->arena, buf_view(&b->name))};
    map_put(&t->by_name, target->public_name, target);
    if (provider_advertised(b->provider) && !b->unlisted)
        show_target(b, target);
}

/* The items of a provider; `m` NULL: no filter applies to them. */
static void add_items(struct build *b, struct provider *p, const struct member *m)
{
    const struct catalog *c = p->catalog;

    b->provider = p;
    b->unlisted =
        m && !m->exempt && b->kind == ITEM_TOOL && tools_of(b->view) == VIEW_TOOLS_UNLISTED;
    for (size_t i = 0; c && i < c->n[b->kind]; i++) {
        b->item = &c->items[b->kind][i];
        if (!m || shows(b->view, m, b->kind, b->item))
            add_item(b);
    }
}

static void table_rebuild(struct view *v, enum item_kind kind)
{
    struct table *t = &v->tables[kind], before = *t;
    struct build b = {.view = v, .kind = kind, .table = t, .known = before.by_name};

    *t = (struct table){.shown = before.shown, .cap = before.cap, .json = before.json};
    t->by_name.borrows = true;
    map_reserve(&t->by_name, b.known.n); /* about as many as before */
    t->json.n = 0;
    buf_char(&t->json, '[');
    const struct member *m;
    for (size_t at = 0; (m = next_member(v, &at));) {
        b.exempt = m->exempt;
        add_items(&b, m->provider, m);
        if (provider_needs_sign_in(m->provider))
            add_items(&b, m->provider->sign_in, NULL);
    }
    buf_char(&t->json, ']');
    t->digest = map_hash(buf_view(&t->json));
    map_fini(&b.known);
    arena_fini(&before.arena); /* had the names in `known` */
    buf_fini(&b.name);
    buf_fini(&b.label);
    mem_free(b.frames);
}

static struct table *fresh_table(struct view *v, enum item_kind kind)
{
    if (v->tables[kind].stale)
        table_rebuild(v, kind);
    return &v->tables[kind];
}

const struct target *view_find(struct view *v, enum item_kind kind, struct span name)
{
    return map_get(&fresh_table(v, kind)->by_name, name);
}

const struct target *view_item(struct view *v, enum item_kind kind, size_t n)
{
    struct table *t = fresh_table(v, kind);

    return n < t->n_shown ? t->shown[n] : NULL;
}

struct span view_list(struct view *v, enum item_kind kind)
{
    return buf_view(&fresh_table(v, kind)->json);
}

unsigned view_flags(struct view *v, enum item_kind kind)
{
    return fresh_table(v, kind)->flags;
}

uint64_t view_digest(struct view *v, enum item_kind kind)
{
    return fresh_table(v, kind)->digest;
}
