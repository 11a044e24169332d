#include "core/route.h"

#include "base/mem.h"
#include "core/provider.h"

/* One step of a template: a literal byte, or an expression that matches a run of bytes. */
struct step {
    size_t next;   /* where the next step starts */
    bool wild;     /* an expression */
    bool no_slash; /* ... that does not match '/' */
};

static struct step step_at(struct span t, size_t at)
{
    if (t.p[at] == '{') {
        size_t end = at + span_find(span_from(t, at), '}');
        if (end < t.n) {
            char op = t.p[at + 1];
            bool exploded = t.p[end - 1] == '*';
            return (struct step){end + 1, true, !exploded && !strchr("+#/;?&.", op)};
        }
    }
    return (struct step){at + 1, false, false};
}

bool route_template_matches(struct span t, struct span uri)
{
    size_t p = 0, u = 0;
    bool starred = false;
    size_t star_next = 0, star_uri = 0;
    bool star_no_slash = false;

    while (u < uri.n || p < t.n) {
        struct step s = p < t.n ? step_at(t, p) : (struct step){0};
        if (p < t.n && s.wild) {
            starred = true;
            star_next = p = s.next;
            star_uri = u;
            star_no_slash = s.no_slash;
        } else if (p < t.n && u < uri.n && t.p[p] == uri.p[u]) {
            p++;
            u++;
        } else if (starred && star_uri < uri.n && !(star_no_slash && uri.p[star_uri] == '/')) {
            /* The last expression takes one byte more. */
            p = star_next;
            u = ++star_uri;
        } else {
            return false;
        }
    }
    return true;
}

static bool found(struct route *out, const struct target *t)
{
    out->provider = t->provider;
    out->own_name = t->item->name;
    out->repeatable = (t->item->flags & (ITEM_READ_ONLY | ITEM_IDEMPOTENT)) != 0;
    return true;
}

/* Exact uri, then a matching template, then the only provider that has resources at all. */
static bool find_resource(struct view *v, struct span uri, struct route *out)
{
    const struct target *t = view_find(v, ITEM_RESOURCE, uri);

    if (!t)
        t = view_find(v, ITEM_TEMPLATE, uri); /* completion names the template itself */
    if (t)
        return found(out, t);
    out->own_name = uri;
    out->repeatable = true;
    for (size_t i = 0; (t = view_item(v, ITEM_TEMPLATE, i)); i++) {
        if (route_template_matches(t->item->name, uri)) {
            out->provider = t->provider;
            return true;
        }
    }
    struct provider *p;
    size_t candidates = 0;
    for (size_t i = 0; (p = view_member(v, i)); i++) {
        if (p->catalog && p->catalog->n[ITEM_RESOURCE] + p->catalog->n[ITEM_TEMPLATE]) {
            out->provider = p;
            candidates++;
        }
    }
    return candidates == 1;
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
    };
    const struct target *t;

    *out = (struct route){.why = span_str(rules[request->op].unknown)};
    if (!rules[request->op].by_uri) {
        t = view_find(v, rules[request->op].kind, request->name);
        if (t) {
            found(out, t);
            out->repeatable |= request->op != OP_CALL_TOOL;
            return true;
        }
        if (request->op != OP_COMPLETE)
            return false;
    }
    return find_resource(v, request->name, out);
}
