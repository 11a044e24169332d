/* Writes the tools of all servers, and what they cost in each view. Called by admin/tools.c,
 * cmd/tools.c and cmd/candidates.c. */
#include "hub/graph/tool_list.h"

#include "base/mem.h"
#include "hub/graph/narrowings.h"
#include "wire/json_out.h"
#include "wire/tokens.h"

/* A view of the configuration and the sum over the tools that it leaves. */
struct view_sum {
    const char *name;
    const struct narrowing *narrowing;
    size_t tools, tokens;
};

static bool leaves(const struct narrowing *n, const struct target *t)
{
    bool named = !n->n_providers;

    for (size_t i = 0; !named && i < n->n_providers; i++)
        named = span_is(n->providers[i], t->provider->alias);
    return named && filter_passes_item(&n->filters[ITEM_TOOL], t->item);
}

static void put_tool(struct buf *out, const struct target *t, struct span tool, size_t tokens)
{
    BUF_SCOPED members = {0};

    json_out_str(&members, "server", t->provider->alias);
    json_out_text(&members, "own_name", t->item->name);
    json_out_number(&members, "tokens", tokens);
    json_out(out, NULL);
    json_insert(out, tool, buf_view(&members));
}

static void put_sum(struct buf *out, const struct view_sum *s)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "name", s->name);
    json_out_number(out, "tools", s->tools);
    json_out_number(out, "tokens", s->tokens);
    buf_char(out, '}');
}

void tool_list_put(struct buf *out, const struct bridge *b)
{
    const struct config *c = bridge_config(b);
    struct narrowings *narrowings = narrowings_new(c);
    struct view_sum *sums = mem_zalloc((c->views.n + 1) * sizeof *sums);
    struct view *all = bridge_full_view(b);
    struct json_iter it = json_iter(view_list(all, ITEM_TOOL));
    const struct target *t;
    size_t sum = 0;

    for (size_t i = 0; i < c->views.n; i++) {
        sums[i].name = c->views.items[i].name;
        sums[i].narrowing = narrowings_find(narrowings, sums[i].name);
    }
    json_out_open(out, NULL, '{');
    json_out_open(out, "tools", '[');
    for (size_t n = 0; (t = view_item(all, ITEM_TOOL, n)) && json_next(&it); n++) {
        size_t tokens = tokens_of_tool(it.value);
        put_tool(out, t, it.value, tokens);
        sum += tokens;
        for (size_t i = 0; i < c->views.n; i++) {
            bool left = leaves(sums[i].narrowing, t);
            sums[i].tools += left;
            sums[i].tokens += left ? tokens : 0;
        }
    }
    buf_char(out, ']');
    json_out_number(out, "tokens", sum);
    json_out_open(out, "views", '[');
    for (size_t i = 0; i < c->views.n; i++)
        put_sum(out, &sums[i]);
    buf_str(out, "]}");
    mem_free(sums);
    narrowings_free(narrowings);
}
