#include "core/view.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/provider.h"

#include <stdio.h>

struct member {
    struct provider *provider;
    struct filter filter;
};

/* The merged table of one kind. */
struct table {
    struct target *targets; /* advertised first-to-last, then the silent ones */
    size_t n, n_shown, cap;
    struct map by_name; /* public name -> struct target * */
    struct arena names;
    struct buf json;
    bool stale;
};

struct view {
    char *name;
    char *pattern;
    struct member *members;
    size_t n_members;
    struct table tables[ITEM_KINDS];
};

bool filter_passes(const struct filter *f, struct span name)
{
    for (size_t i = 0; i < f->n_allow; i++)
        if (span_glob(f->allow[i], name))
            return true;
    if (f->n_allow)
        return false;
    for (size_t i = 0; i < f->n_deny; i++)
        if (span_glob(f->deny[i], name))
            return false;
    return true;
}

struct view *view_new(const char *name, const char *pattern)
{
    struct view *v = MEM_NEW(struct view);

    v->name = mem_str(name);
    v->pattern = mem_str(pattern);
    view_touch(v, (1u << ITEM_KINDS) - 1);
    return v;
}

static void table_clear(struct table *t)
{
    map_fini(&t->by_name);
    arena_fini(&t->names);
    t->n = t->n_shown = 0;
}

void view_free(struct view *v)
{
    if (!v)
        return;
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        table_clear(&v->tables[kind]);
        mem_free(v->tables[kind].targets);
        buf_fini(&v->tables[kind].json);
    }
    mem_free(v->members);
    mem_free(v->pattern);
    mem_free(v->name);
    mem_free(v);
}

const char *view_name(const struct view *v)
{
    return v->name;
}

void view_add(struct view *v, struct provider *p, const struct filter *filter)
{
    v->members = mem_resize(v->members, (v->n_members + 1) * sizeof(struct member));
    v->members[v->n_members++] =
        (struct member){p, filter ? *filter : (struct filter){NULL, 0, NULL, 0}};
    view_touch(v, (1u << ITEM_KINDS) - 1);
}

void view_remove(struct view *v, const struct provider *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < v->n_members; i++)
        if (v->members[i].provider != p)
            v->members[kept++] = v->members[i];
    v->n_members = kept;
    view_touch(v, (1u << ITEM_KINDS) - 1);
}

bool view_has(const struct view *v, const struct provider *p)
{
    for (size_t i = 0; i < v->n_members; i++)
        if (v->members[i].provider == p)
            return true;
    return false;
}

struct provider *view_member(const struct view *v, size_t n)
{
    return n < v->n_members ? v->members[n].provider : NULL;
}

static bool plain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
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

/* `name` cut so that "-" and the hash fit into the limit, then both appended. */
static void add_hash(struct buf *name, const struct provider *p, struct span own)
{
    char hash[9];

    name_hash(p, own, hash);
    if (name->n > VIEW_MAX_NAME - 9)
        name->n = VIEW_MAX_NAME - 9;
    buf_char(name, '-');
    buf_str(name, hash);
}

/* Replace {server} and {tool} in the pattern; anything else stands for itself. */
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
    for (size_t i = 0; i < out->n; i++)
        if (!plain_char(out->p[i]))
            out->p[i] = '-';
}

/* URIs are routed as they are; only tools and prompts have names that a pattern applies to. */
static bool is_named(enum item_kind kind)
{
    return kind == ITEM_TOOL || kind == ITEM_PROMPT;
}

static void public_name(struct buf *out, const struct view *v, enum item_kind kind,
                        const struct provider *p, struct span own)
{
    out->n = 0;
    if (!v->pattern || !is_named(kind)) {
        buf_span(out, own);
        return;
    }
    apply_pattern(out, v->pattern, p->alias, own);
    if (out->n > VIEW_MAX_NAME) {
        add_hash(out, p, own);
        log_warn(p->alias, "'" SPAN_FMT "' is too long a name for view %s: offered as " SPAN_FMT,
                 SPAN_ARG(own), v->name, SPAN_ARG(buf_view(out)));
    }
}

static void append_item(struct table *t, const struct target *target)
{
    const struct item *item = target->item;
    const char *raw = item->raw.p;

    if (t->json.n > 1)
        buf_char(&t->json, ',');
    if (span_eq(target->public_name, item->name)) {
        buf_span(&t->json, item->raw);
        return;
    }
    size_t after = item->name_at.at + item->name_at.n;
    buf_bytes(&t->json, raw, item->name_at.at);
    buf_char(&t->json, '"');
    buf_span(&t->json, target->public_name);
    buf_char(&t->json, '"');
    buf_bytes(&t->json, raw + after, item->raw.n - after);
}

/* One item into the table. A name that is taken is made unique, or for URIs left to the first. */
static void table_add(struct view *v, enum item_kind kind, struct provider *p,
                      const struct item *item, struct buf *scratch)
{
    struct table *t = &v->tables[kind];

    public_name(scratch, v, kind, p, item->name);
    if (map_get(&t->by_name, buf_view(scratch))) {
        if (!is_named(kind)) {
            log_debug(p->alias, SPAN_FMT " is offered by an earlier server too: not listed here",
                      SPAN_ARG(item->name));
            return;
        }
        add_hash(scratch, p, item->name);
        if (map_get(&t->by_name, buf_view(scratch)))
            return; /* the provider lists one name twice: the first one is it */
        log_warn(p->alias, "'" SPAN_FMT "' clashes in view %s: offered as " SPAN_FMT,
                 SPAN_ARG(item->name), v->name, SPAN_ARG(buf_view(scratch)));
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->targets = mem_resize(t->targets, t->cap * sizeof(struct target));
    }
    struct target *target = &t->targets[t->n++];
    *target = (struct target){p, item, arena_span(&t->names, buf_view(scratch))};
    /* Only that the name is taken matters yet; the places are entered once they are final. */
    map_put(&t->by_name, target->public_name, t);
    if (provider_advertised(p))
        append_item(t, target);
}

/* Advertised targets to the front, in order, so that view_item can count them off. */
static void table_settle(struct table *t)
{
    struct target *sorted = MEM_ARRAY(struct target, t->n + 1);
    size_t at = 0;

    for (int shown = 1; shown >= 0; shown--) {
        for (size_t i = 0; i < t->n; i++)
            if (provider_advertised(t->targets[i].provider) == (shown == 1))
                sorted[at++] = t->targets[i];
        if (shown)
            t->n_shown = at;
    }
    mem_free(t->targets);
    t->targets = sorted;
    t->cap = t->n + 1;
    for (size_t i = 0; i < t->n; i++)
        map_put(&t->by_name, t->targets[i].public_name, &t->targets[i]);
}

/* Returns whether the list reads differently now. */
static bool table_rebuild(struct view *v, enum item_kind kind)
{
    struct table *t = &v->tables[kind];
    struct buf before = t->json, scratch = {0};

    table_clear(t);
    t->json = (struct buf){0};
    buf_char(&t->json, '[');
    for (size_t m = 0; m < v->n_members; m++) {
        struct provider *p = v->members[m].provider;
        if (!p->catalog)
            continue;
        for (size_t i = 0; i < p->catalog->n[kind]; i++) {
            const struct item *item = &p->catalog->items[kind][i];
            if (kind != ITEM_TOOL || filter_passes(&v->members[m].filter, item->name))
                table_add(v, kind, p, item, &scratch);
        }
    }
    buf_char(&t->json, ']');
    table_settle(t);
    t->stale = false;
    bool differs = !span_eq(buf_view(&before), buf_view(&t->json));
    buf_fini(&before);
    buf_fini(&scratch);
    return differs;
}

void view_touch(struct view *v, unsigned kinds)
{
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (kinds & (1u << kind))
            v->tables[kind].stale = true;
}

unsigned view_refresh(struct view *v)
{
    unsigned changed = 0;

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (v->tables[kind].stale && table_rebuild(v, (enum item_kind)kind))
            changed |= 1u << kind;
    return changed;
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

    return n < t->n_shown ? &t->targets[n] : NULL;
}

struct span view_list(struct view *v, enum item_kind kind)
{
    return buf_view(&fresh_table(v, kind)->json);
}
