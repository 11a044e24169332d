/* Finding the provider for a request: by public name, resource URI or URI template, and whether a
 * narrowed view lets a URI be read. Called by call_open.c, subscriptions.c,
 * mcp/server/upstream_calls.c and admin/replay.c. */
#include "core/route.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "core/provider.h"

/* Longer URIs and templates never match: the cost is the product of both lengths. */
enum { MAX_MATCHED = 4096 };

/* A piece of a template: a byte that stands for itself, or an expression. */
struct piece {
    size_t next; /* where the next piece starts */
    bool wild;
    bool no_slash; /* an expression that does not expand to '/' */
};

static struct piece piece_at(struct span t, size_t at)
{
    if (t.p[at] == '{') {
        size_t end = at + span_find(span_from(t, at), '}');
        if (end < t.n) {
            bool exploded = t.p[end - 1] == '*';
            bool has_operator = span_find(SPAN("+#/;?&."), t.p[at + 1]) < 7;
            return (struct piece){end + 1, true, !exploded && !has_operator};
        }
    }
    return (struct piece){at + 1, false, false};
}

/* Marks the places that can be reached from marked places when expressions expand to nothing. */
static void skip_empty(struct span t, bool *at)
{
    for (size_t i = 0; i < t.n;) {
        struct piece piece = piece_at(t, i);
        if (at[i] && piece.wild)
            at[piece.next] = true;
        i = piece.next;
    }
}

/* The places in the template that can be reached with one more byte; false if there are none. */
static bool take_byte(struct span t, char byte, const bool *before, bool *after)
{
    bool any = false;

    memset(after, 0, t.n + 1);
    for (size_t i = 0; i < t.n;) {
        struct piece piece = piece_at(t, i);
        if (before[i] && (piece.wild ? !(piece.no_slash && byte == '/') : t.p[i] == byte)) {
            after[piece.wild ? i : piece.next] = true;
            any = true;
        }
        i = piece.next;
    }
    skip_empty(t, after);
    return any;
}

/* All possible matches are followed at once, byte by byte, so that no template takes exponential
 * time. */
bool route_template_matches(struct span t, struct span uri)
{
    bool places[2][MAX_MATCHED + 1];

    if (t.n > MAX_MATCHED || uri.n > MAX_MATCHED)
        return false;
    memset(places[0], 0, t.n + 1);
    places[0][0] = true;
    skip_empty(t, places[0]);
    for (size_t u = 0; u < uri.n; u++)
        if (!take_byte(t, uri.p[u], places[u % 2], places[(u + 1) % 2]))
            return false;
    return places[uri.n % 2][t.n];
}

/* --- what a narrowed view lets through --- */

/* Appends the URI with each %XX decoded. */
static void decode(struct buf *out, struct span uri)
{
    for (size_t i = 0; i < uri.n; i++) {
        bool coded = uri.p[i] == '%' && i + 2 < uri.n && ascii_hex(uri.p[i + 1]) >= 0 &&
                     ascii_hex(uri.p[i + 2]) >= 0;
        int byte = coded ? ascii_hex(uri.p[i + 1]) * 16 + ascii_hex(uri.p[i + 2]) : 0;
        buf_char(out, coded ? (char)byte : uri.p[i]);
        i += coded ? 2 : 0;
    }
}

/* Does the URI have a segment "." or "..", or an empty segment after the authority? Servers differ
 * on how they resolve such a URI. */
static bool is_roundabout(struct span uri)
{
    struct span rest = uri;

    for (size_t part = 0; rest.n; part++) {
        struct span name = span_cut(rest, 0, span_find(rest, '/'));
        bool last = name.n == rest.n;
        if (span_is(name, ".") || span_is(name, "..") || (!name.n && part > 2 && !last))
            return true;
        rest = span_from(rest, name.n + 1);
    }
    return false;
}

/* Independent of how a server decodes URIs: an allowed URI must match as it is written, a denied
 * URI must not pass in another spelling. */
static bool is_denied(const struct filter *f, struct span uri)
{
    BUF_SCOPED plain = {0};

    decode(&plain, uri);
    return !filter_passes(f, uri) || is_roundabout(buf_view(&plain)) ||
           (!f->n_allow && !filter_passes(f, buf_view(&plain)));
}

/* `any`: a template of the provider matches the URI. `shown`: the filter shows such a template. */
static void look_at_templates(const struct filter *f, const struct provider *p, struct span uri,
                              bool *any, bool *shown)
{
    for (size_t i = 0; i < p->catalog->n[ITEM_TEMPLATE]; i++) {
        const struct item *t = &p->catalog->items[ITEM_TEMPLATE][i];
        if (!span_eq(t->name, uri) && !route_template_matches(t->name, uri))
            continue;
        *any = true;
        *shown |= filter_passes_item(f, t);
    }
}

bool route_may_read(const struct view *v, const struct provider *p, struct span uri)
{
    const struct filter *f = v ? view_filter(v, ITEM_RESOURCE) : NULL;
    bool any = false, shown = false;

    if (!f || !p->catalog)
        return true;
    const struct item *listed = catalog_find(p->catalog, ITEM_RESOURCE, uri);
    if (listed)
        return filter_passes_item(f, listed);
    look_at_templates(f, p, uri, &any, &shown);
    if (f->n_allow)
        return shown || !is_denied(f, uri);
    return (shown || !any) && !is_denied(f, uri);
}

/* --- where a request goes --- */

/* The URI after the prefix that names the provider (VIEW_URI_FMT); empty if there is no prefix. */
static struct span behind_alias(const struct provider *p, struct span uri)
{
    BUF_SCOPED lead = {0};

    buf_printf(&lead, VIEW_URI_FMT, p->alias);
    return span_starts(uri, buf_view(&lead)) ? span_from(uri, lead.n) : SPAN_EMPTY;
}

/* Does the template keep its own name in the view, or does another provider's have that name? */
static bool keeps_name(struct view *v, const struct provider *p, const struct item *t)
{
    const struct target *target = view_find(v, ITEM_TEMPLATE, t->name);

    return target && target->provider == p;
}

/* The provider of the first template in the order of the view that matches and is shown; `own`
 * becomes the URI as that provider knows it. Providers that are down count: as with tools, routing
 * does not depend on which provider is up. */
static struct provider *template_owner(struct view *v, struct span uri, struct span *own)
{
    const struct filter *f = view_filter(v, ITEM_TEMPLATE);
    struct provider *p;

    for (size_t m = 0; (p = view_member(v, m)); m++)
        for (size_t i = 0; p->catalog && i < p->catalog->n[ITEM_TEMPLATE]; i++) {
            const struct item *t = &p->catalog->items[ITEM_TEMPLATE][i];
            if (f && !filter_passes_item(f, t))
                continue;
            *own = keeps_name(v, p, t) ? uri : behind_alias(p, uri);
            if (own->n && route_template_matches(t->name, *own))
                return p;
        }
    *own = uri;
    return NULL;
}

/* The only provider of the view that has resources at all. */
static struct provider *resource_owner(const struct view *v)
{
    struct provider *p, *only = NULL;

    for (size_t m = 0; (p = view_member(v, m)); m++) {
        if (!p->catalog || !(p->catalog->n[ITEM_RESOURCE] + p->catalog->n[ITEM_TEMPLATE]))
            continue;
        if (only)
            return NULL;
        only = p;
    }
    return only;
}

/* Exact uri, then a matching template, then the only provider that has resources at all. */
static bool find_resource(struct view *v, struct span uri, struct route *out)
{
    const struct target *t = view_find(v, ITEM_RESOURCE, uri);

    if (!t)
        t = view_find(v, ITEM_TEMPLATE, uri); /* completion names the template itself */
    out->repeatable = true;
    out->own_name = t ? t->item->own : uri;
    out->provider = t ? t->provider : template_owner(v, uri, &out->own_name);
    if (!out->provider)
        out->provider = resource_owner(v);
    return out->provider && (t || route_may_read(v, out->provider, out->own_name));
}

/*
 * A method that names no tool, prompt or resource goes to the only provider of the view, unless
 * the view hides some tools: an unknown method could do what the hidden tools do.
 */
static bool find_only(const struct view *v, struct span method, struct route *out)
{
    struct provider *only = view_only(v);

    if (!only || !only->takes_any)
        return false;
    out->provider = only;
    out->own_name = method;
    return true;
}

bool route_find(struct view *v, const struct request *request, struct route *out)
{
    static const struct {
        enum item_kind kind;
        bool by_uri;
        const char *unknown;
    } rules[OP_COUNT] = {
        [OP_CALL_TOOL] = {ITEM_TOOL, false, "unknown tool"},
        [OP_GET_PROMPT] = {ITEM_PROMPT, false, "unknown prompt"},
        [OP_READ_RESOURCE] = {ITEM_RESOURCE, true, "resource not found"},
        [OP_COMPLETE] = {ITEM_PROMPT, false, "unknown prompt or resource template"},
        [OP_SUBSCRIBE] = {ITEM_RESOURCE, true, "resource not found"},
        [OP_UNSUBSCRIBE] = {ITEM_RESOURCE, true, "resource not found"},
        [OP_OTHER] = {ITEM_TOOL, false, "unknown method"},
        [OP_TELL] = {ITEM_TOOL, false, "unknown method"},
    };
    const struct target *t;

    *out = (struct route){.why = span_str(rules[request->op].unknown)};
    if (!rules[request->op].unknown) {
        out->why = SPAN("not an operation of one server");
        return false;
    }
    if (request->op == OP_OTHER || request->op == OP_TELL)
        return find_only(v, request->name, out);
    if (rules[request->op].by_uri)
        return find_resource(v, request->name, out);
    t = view_find(v, rules[request->op].kind, request->name);
    if (!t && request->op == OP_CALL_TOOL && (out->provider = view_answerer(v, request->name))) {
        out->own_name = request->name;
        return true;
    }
    if (!t && request->op == OP_CALL_TOOL && view_fallback(v)) {
        out->provider = view_fallback(v);
        out->own_name = request->name;
        return true;
    }
    if (!t) /* a prompt that the view hides or renames must not pass as a resource */
        return request->op == OP_COMPLETE && find_resource(v, request->name, out) &&
               !catalog_find(out->provider->catalog, ITEM_PROMPT, request->name);
    out->provider = t->provider;
    out->own_name = t->item->own;
    /* Only tools have side effects; all other operations can be repeated. */
    out->repeatable =
        request->op != OP_CALL_TOOL || (t->item->flags & (ITEM_READ_ONLY | ITEM_IDEMPOTENT)) != 0;
    return true;
}
