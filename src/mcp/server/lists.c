/* A server's lists: fetched page by page, each item checked and overridden, and the catalog
 * published. Called by handshake.c after the handshake, by notices.c when lists change, by
 * provider.c, context.c and as_tools.c. */
#include "base/log.h"
#include "base/mem.h"
#include "mcp/circle.h"
#include "mcp/legacy.h"
#include "mcp/param_headers.h"
#include "mcp/server/as_tools.h"
#include "mcp/server/context.h"
#include "mcp/server/tool_text.h"
#include "mcp/server/upstream.h"

/* A server that never stops sending cursors must not keep us busy for ever. */
enum { MAX_PAGES = 1000, MAX_ITEMS = 100000 };

static void fetch_next(struct mcp_provider *p);
static void page_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);
static void page_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why);

/* The members of an item that we read. */
enum {
    IN_NAME,
    IN_LABEL, /* `name` of an item that is identified by its URI */
    IN_DESCRIPTION,
    IN_SCHEMA,
    IN_OUTPUT,
    IN_ANNOTATIONS,
    IN_READ_ONLY,
    IN_IDEMPOTENT,
    IN_EXECUTION,
    IN_TASK,
    IN_LOOKALIKE,
    IN_COUNT,
};

/* False when a member occurs twice: agents differ on which of the two they read. */
static bool members_of(enum item_kind kind, struct span raw, struct json_slot in[IN_COUNT])
{
    static const struct json_shape_row hints[] = {{"readOnlyHint", IN_READ_ONLY, NULL},
                                                  {"idempotentHint", IN_IDEMPOTENT, NULL}};
    static const struct json_shape_row tasks[] = {{"taskSupport", IN_TASK, NULL}};
    static const struct json_shape annotations = JSON_SHAPE(hints), execution = JSON_SHAPE(tasks);
    const struct json_shape_row rows[] = {
        {mcp_lists[kind].name_member, IN_NAME, NULL},
        {"name", IN_LABEL, NULL}, /* where IN_NAME is another member */
        {"description", IN_DESCRIPTION, NULL},
        {"inputSchema", IN_SCHEMA, NULL},
        {"outputSchema", IN_OUTPUT, NULL},
        {"annotations", IN_ANNOTATIONS, &annotations},
        {"execution", IN_EXECUTION, &execution},
    };
    const struct json_shape shape = JSON_SHAPE_GUARDED(rows, IN_LOOKALIKE);

    memset(in, 0, IN_COUNT * sizeof *in);
    return json_skim(raw, &shape, in, NULL, NULL) == 0;
}

/* Why a tool cannot be offered at all, or NULL. */
static const char *unfit(struct mcp_provider *p, enum item_kind kind, struct span raw,
                         const struct json_slot in[IN_COUNT])
{
    if (json_string_is(in[IN_TASK].value, SPAN("required")) && !(p->offers & OFFERS_TASKS))
        return "can only be run as a task, and its server has no tasks";
    if (kind == ITEM_TOOL && p->modern && param_headers_possible(raw)) {
        p->param_headers = true;
        if (!param_headers_valid(raw))
            return "has x-mcp-header annotations that break the rules";
    }
    return NULL;
}

/* Lists go out on line-framed links: an item is put on one line once, here. */
static struct span one_line(struct span raw, struct buf *line)
{
    if (!memchr(raw.p, '\n', raw.n) && !memchr(raw.p, '\r', raw.n))
        return raw;
    json_one_line(line, raw);
    return buf_view(line);
}

/*
 * Clients refuse a whole list for one tool whose schema is not that of an object. A schema without
 * a type gets that type; another one is replaced by a schema that allows everything, which has
 * `properties` because some clients want to see them.
 */
static struct span with_schema(struct span raw, const struct json_slot *schema, struct buf *out)
{
    static const char anything[] = "{\"type\":\"object\",\"properties\":{}}";
    struct json_slot type =
        schema->type == JSON_OBJECT ? json_get(schema->value, "type") : (struct json_slot){0};

    if (json_string_is(type.value, SPAN("object")))
        return raw;
    if (schema->type == JSON_NONE) {
        json_insert(out, raw, SPAN("\"inputSchema\":{\"type\":\"object\",\"properties\":{}}"));
        return buf_view(out);
    }
    size_t at = (size_t)(schema->value.p - raw.p);
    buf_span(out, span_cut(raw, 0, at));
    if (schema->type == JSON_OBJECT && type.type == JSON_NONE)
        json_insert(out, schema->value, SPAN("\"type\":\"object\""));
    else
        buf_str(out, anything);
    buf_span(out, span_from(raw, at + schema->value.n));
    return buf_view(out);
}

/* A server of the stateless era decides call by call whether a tool runs as a task. */
static unsigned task_flags(const struct mcp_provider *p, const struct json_slot in[IN_COUNT])
{
    if (!(p->offers & OFFERS_TASKS))
        return 0;
    if (p->modern)
        return in[IN_EXECUTION].type == JSON_NONE ? ITEM_TASK_UNSAID : 0u;
    return (json_string_is(in[IN_TASK].value, SPAN("optional")) ? ITEM_TASK_MAY : 0u) |
           (json_string_is(in[IN_TASK].value, SPAN("required")) ? ITEM_TASK_MUST : 0u);
}

static unsigned flags_of(struct mcp_provider *p, enum item_kind kind,
                         const struct json_slot in[IN_COUNT])
{
    bool gives_any = kind == ITEM_TOOL && !legacy_fits(&in[IN_OUTPUT]);

    p->gives_any |= gives_any;
    return (in[IN_READ_ONLY].type == JSON_TRUE ? ITEM_READ_ONLY : 0u) |
           (in[IN_IDEMPOTENT].type == JSON_TRUE ? ITEM_IDEMPOTENT : 0u) |
           (gives_any ? ITEM_GIVES_ANY : 0u) | (kind == ITEM_TOOL ? task_flags(p, in) : 0u);
}

/* Add the item to the catalog as agents see it; `own` is the server's name for the item, `listed`
 * the object that it lists. */
static void offer(struct mcp_provider *p, enum item_kind kind, struct span own, struct span raw,
                  struct span listed)
{
    struct json_slot in[IN_COUNT];
    BUF_SCOPED name = {0}, label = {0}, whole = {0};

    (void)members_of(kind, raw, in);
    if (kind == ITEM_TOOL) {
        struct span fit = with_schema(raw, &in[IN_SCHEMA], &whole);
        if (fit.p != raw.p)
            log_info(p->alias, "tool '" SPAN_FMT "' has no schema of an object: it gets one",
                     SPAN_ARG(own));
        raw = fit;
        (void)members_of(kind, raw, in);
    }
    if (in[IN_DESCRIPTION].type != JSON_STRING)
        in[IN_DESCRIPTION].type = JSON_NONE;
    json_unescape(&name, in[IN_NAME].value);
    if (in[IN_LABEL].type == JSON_STRING)
        json_unescape(&label, in[IN_LABEL].value);
    catalog_add(p->fetching, kind,
                &(struct item){
                    .name = buf_view(&name),
                    .own = own,
                    .label = buf_view(&label),
                    .raw = raw,
                    .listed = raw.p == listed.p ? SPAN_EMPTY : listed,
                    .name_at = mcp_cut(raw, &in[IN_NAME]),
                    .description_at = mcp_cut(raw, &in[IN_DESCRIPTION]),
                    .flags = flags_of(p, kind, in),
                });
}

/* Must the item be left out? It must if agents could read it in another way than we do. */
static bool leave_out(struct mcp_provider *p, enum item_kind kind, struct span raw,
                      struct json_slot in[IN_COUNT])
{
    BUF_SCOPED why = {0};

    if (!members_of(kind, raw, in))
        buf_str(&why, "a member occurs in it twice");
    else if (in[IN_NAME].type != JSON_STRING)
        buf_printf(&why, "it has no %s", mcp_lists[kind].name_member);
    else if (in[IN_LOOKALIKE].type != JSON_NONE)
        mcp_put_lookalike(&why, in[IN_LOOKALIKE].member);
    bool out = why.n > 0;
    if (out)
        log_warn(p->alias, "something under '%s' is not offered, for %s: " SPAN_FMT,
                 mcp_lists[kind].member, buf_cstr(&why), SPAN_ARG(span_cut(raw, 0, 120)));
    return out;
}

/* The judge may keep the tool to show it to people: it counts as if it were offered. */
static void withhold(struct mcp_provider *p, struct span own, struct span raw)
{
    (void)catalog_count(p->fetching, own.n + raw.n);
    map_put(&p->withheld, own, p);
}

/* Is the tool one that agents may have? If not, its calls are refused. */
static bool is_admitted(struct mcp_provider *p, struct span own, struct span raw)
{
    bool admitted = !p->admits || p->admits(p->judge, p->alias, own, raw);

    if (!admitted)
        withhold(p, own, raw);
    return admitted;
}

void lists_add_item(struct mcp_provider *p, enum item_kind kind, struct span raw)
{
    struct json_slot in[IN_COUNT];
    BUF_SCOPED own = {0}, line = {0}, changed = {0};
    const struct mcp_override *o = NULL;

    if (leave_out(p, kind, raw, in))
        return;
    json_unescape(&own, in[IN_NAME].value);
    if (kind == ITEM_TOOL)
        o = override_find(&p->overrides, buf_view(&own));
    bool withheld = kind == ITEM_TOOL && !is_admitted(p, buf_view(&own), raw);
    const char *why = unfit(p, kind, raw, in);
    if (why)
        log_info(p->alias, "tool '" SPAN_FMT "' %s: not offered", SPAN_ARG(buf_view(&own)), why);
    if (!why && !withheld && !(o && o->hide)) {
        struct span listed = raw = one_line(raw, &line);
        if (o) {
            override_put_tool(&changed, o, raw);
            raw = buf_view(&changed);
        }
        offer(p, kind, buf_view(&own), raw, listed);
    }
}

/* A server that starts has its time limit already. One that runs must not keep a list back for
 * ever: no other one is fetched meanwhile. */
static void limit_page(struct mcp_provider *p, uint64_t id)
{
    p->page_id = id;
    if (p->core.state == PROVIDER_READY && p->core.policy.start_timeout)
        timer_set(router_timers(p->core.router), &p->page, p->core.policy.start_timeout);
}

void lists_on_silence(struct timer *t)
{
    struct mcp_provider *p = CONTAINER_OF(t, struct mcp_provider, page);

    upstream_withdraw(p, p->page_id, "timeout");
    mcp_provider_failed(p, p->page_id, 0, true, "not answered within start_timeout");
}

static void fetch_page(struct mcp_provider *p, enum item_kind kind, struct span cursor)
{
    BUF_SCOPED params = {0};

    if (cursor.n)
        buf_printf(&params, "\"cursor\":" SPAN_FMT, SPAN_ARG(cursor));
    struct sent *sent = upstream_sent_new(p, page_answered, page_failed);
    sent->kind = kind;
    limit_page(p, sent->id);
    upstream_request(p, sent, mcp_lists[kind].method, buf_view(&params));
}

/* Does the server list more than we take? The rest is ignored. */
static bool is_full(const struct mcp_provider *p, enum item_kind kind)
{
    if (p->fetching->n[kind] + p->withheld.n >= MAX_ITEMS)
        p->fetching->cut = true;
    return p->fetching->cut;
}

/* Does the judge, which may have changed, admit a tool that was listed before? How the server lists
 * one that is remembered from an earlier run is not known. */
static bool may_stay(struct mcp_provider *p, const struct item *tool)
{
    struct span listed = tool->listed.n ? tool->listed : tool->raw;

    if (!p->admits || !p->core.remembered)
        return is_admitted(p, tool->own, listed);
    withhold(p, tool->own, listed);
    return false;
}

/* Copy all items except the tools that we made, which are made again. */
static void copy_listed(struct mcp_provider *p, enum item_kind kind, bool judged)
{
    const struct catalog *from = p->core.catalog;

    for (size_t i = 0; from && i < from->n[kind]; i++) {
        const struct item *item = &from->items[kind][i];
        if (!(item->flags & ITEM_MADE) && (judged || kind != ITEM_TOOL || may_stay(p, item)))
            catalog_add(p->fetching, kind, item);
    }
}

static void end_list(struct mcp_provider *p, enum item_kind kind)
{
    p->kinds_left &= ~(1u << kind);
    fetch_next(p);
}

/* The new list could not be fetched: keep the old one. The reason to ask for a new one may have
 * been that the judge has changed. */
static void keep_list(struct mcp_provider *p, enum item_kind kind)
{
    if (!p->fetching->n[kind])
        copy_listed(p, kind, false);
    end_list(p, kind);
}

static void page_refused(struct mcp_provider *p, enum item_kind kind, struct span error)
{
    /* Many servers claim a capability and then do not know the method. */
    bool unknown = rpc_error_of(error).code == RPC_METHOD_NOT_FOUND;

    log_line(unknown ? LOG_DEBUG : LOG_WARN, p->alias, "%s: " SPAN_FMT, mcp_lists[kind].method,
             SPAN_ARG(span_cut(error, 0, 200)));
    if (unknown)
        end_list(p, kind);
    else
        keep_list(p, kind);
}

static void page_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    enum item_kind kind = sent->kind;
    const struct json_slot *items = &m->slots[SLOT_ITEMS + kind];
    const struct json_slot *next = &m->slots[SLOT_NEXT_CURSOR];

    timer_clear(router_timers(p->core.router), &p->page);
    if (m->rpc.kind == RPC_ERROR) {
        page_refused(p, kind, m->rpc.error);
        return;
    }
    if (circle_found(p, m->rpc.result))
        return;
    struct json_iter it = json_iter(items->value);
    while (items->type == JSON_ARRAY && json_next(&it) && !is_full(p, kind))
        if (it.type == JSON_OBJECT)
            lists_add_item(p, kind, it.value);
    if (next->type == JSON_STRING && ++p->pages >= MAX_PAGES)
        p->fetching->cut = true;
    if (next->type == JSON_STRING && !is_full(p, kind))
        fetch_page(p, kind, next->value);
    else
        end_list(p, kind);
}

static void page_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    timer_clear(router_timers(p->core.router), &p->page);
    log_warn(p->alias, "%s: %s (%d)", mcp_lists[sent->kind].method, why, status);
    keep_list(p, sent->kind);
}

/* Does the server claim to have this list at all? */
static bool claims(const struct mcp_provider *p, enum item_kind kind)
{
    static const unsigned needs[ITEM_KINDS] = {
        [ITEM_RESOURCE] = OFFERS_RESOURCES,
        [ITEM_TEMPLATE] = OFFERS_RESOURCES,
        [ITEM_PROMPT] = OFFERS_PROMPTS,
    };

    return kind == ITEM_TOOL ? p->has_tools : (p->offers & needs[kind]) != 0;
}

/* The server's own instructions, and the text of the prompts and resources that the configuration
 * names. */
static void set_instructions(struct mcp_provider *p, struct catalog *c)
{
    BUF_SCOPED text = {0};

    if (p->instructions)
        buf_str(&text, p->instructions);
    if (text.n && context_text(p).n)
        buf_str(&text, "\n\n");
    buf_span(&text, context_text(p));
    if (text.n)
        catalog_set_instructions(c, buf_view(&text));
}

/* Has a tool changed, in what a person approves, since it was listed before? */
static bool has_changed(const struct item *before, const struct item *now)
{
    BUF_SCOPED was = {0}, is = {0};

    if (span_eq(before->raw, now->raw))
        return false;
    tool_text_put(&was, before->raw);
    tool_text_put(&is, now->raw);
    return !span_eq(buf_view(&was), buf_view(&is));
}

/* Log which tools have changed since they were listed, and which new or changed tools have
 * invisible characters in their description. */
static void tell_alterations(const struct mcp_provider *p, const struct catalog *before,
                             const struct catalog *now)
{
    struct map known = {0};

    for (size_t i = 0; before && i < before->n[ITEM_TOOL]; i++)
        map_put(&known, before->items[ITEM_TOOL][i].name, &before->items[ITEM_TOOL][i]);
    for (size_t i = 0; i < now->n[ITEM_TOOL]; i++) {
        const struct item *tool = &now->items[ITEM_TOOL][i];
        const struct item *old = map_get(&known, tool->name);
        bool changed = old && has_changed(old, tool);
        if (changed)
            log_warn(p->alias, "the tool '" SPAN_FMT "' has changed since it was listed",
                     SPAN_ARG(tool->name));
        if ((changed || !old) && tool_text_hides(tool->raw))
            log_warn(p->alias,
                     "the description of the tool '" SPAN_FMT
                     "' has characters that nobody sees: models read them",
                     SPAN_ARG(tool->name));
    }
    map_fini(&known);
}

static void finish(struct mcp_provider *p)
{
    struct catalog *fresh = p->fetching;
    unsigned stale = p->kinds_stale, asked = p->kinds_asked;
    bool starting = p->core.state == PROVIDER_STARTING;

    as_tools_make(p);
    p->fetching = NULL;
    p->kinds_stale = 0;
    p->kinds_asked = stale ? asked : 0;
    fresh->changed = p->kinds_said & ~stale;
    p->kinds_said &= stale;
    fresh->offers = p->offers;
    catalog_set_declares(fresh, buf_view(&p->extra));
    set_instructions(p, fresh);
    if (asked & (1u << ITEM_TOOL))
        tell_alterations(p, p->core.catalog, fresh);
    provider_publish(&p->core, fresh);
    if (p->on_lists)
        p->on_lists(p->lists_arg);
    if (starting) {
        handshake_reached(p, MCP_LISTED);
        provider_up(&p->core);
        if (p->modern)
            upstream_listen(p);
    }
    if (stale)
        lists_fetch(p, stale);
    else if (asked & (1u << ITEM_PROMPT | 1u << ITEM_RESOURCE))
        context_refresh(p);
}

/* One list after the other: many servers cannot answer two requests at once. */
static void fetch_next(struct mcp_provider *p)
{
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        if (!(p->kinds_left & (1u << kind)))
            continue;
        if (claims(p, (enum item_kind)kind)) {
            fetch_page(p, (enum item_kind)kind, SPAN_EMPTY);
            return;
        }
        p->kinds_left &= ~(1u << kind);
    }
    finish(p);
}

void lists_fetch(struct mcp_provider *p, unsigned kinds)
{
    if (p->fetching) {
        /* Many notifications in a row cost one more fetch, not one each. */
        p->kinds_stale |= kinds;
        return;
    }
    p->fetching = provider_draft(&p->core);
    p->kinds_asked |= kinds;
    p->kinds_left = kinds;
    p->pages = 0;
    if (kinds & (1u << ITEM_TOOL))
        map_fini(&p->withheld);
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (!(kinds & (1u << kind)))
            copy_listed(p, (enum item_kind)kind, true);
    fetch_next(p);
}

void lists_changed(struct mcp_provider *p, unsigned kinds)
{
    p->kinds_said |= kinds;
    lists_fetch(p, kinds);
}

void lists_abort(struct mcp_provider *p)
{
    timer_clear(router_timers(p->core.router), &p->page);
    catalog_free(p->fetching);
    p->fetching = NULL;
    p->kinds_left = p->kinds_stale = p->kinds_asked = p->kinds_said = 0;
}
