/* One remote server as a provider: asking the bridge for details, building the catalog, going up
 * and down, choosing an alias. Called by proxy.c, remote_calls.c and the core. */
#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "rockbot/proxy_parts.h"

#include <stdio.h>

static struct remote *of_provider(struct provider *p)
{
    return CONTAINER_OF(p, struct remote, core);
}

static struct timers *timers_of(const struct remote *r)
{
    return loop_timers(r->proxy->loop);
}

/* --- the catalog --- */

static void stop_asking(struct remote *r)
{
    if (r->asking)
        remote_request_drop(r->asking);
    r->asking = NULL;
    catalog_free(r->fetching);
    r->fetching = NULL;
}

static void replace_text(char **text, struct span with)
{
    mem_free(*text);
    *text = with.n ? mem_span(with) : NULL;
}

static void publish(struct remote *r)
{
    struct catalog *fresh = r->fetching;

    r->fetching = NULL;
    fresh->offers = (fresh->n[ITEM_PROMPT] ? (unsigned)OFFERS_PROMPTS : 0) |
                    (r->has_resources ? (unsigned)OFFERS_RESOURCES : 0);
    catalog_fit(fresh);
    provider_publish(&r->core, fresh);
    provider_up(&r->core);
    if (r->stale)
        remote_ask(r);
}

/* A server that is up keeps its catalog, unless the request timed out: then no bridge is there any
 * more. */
static void asking_failed(struct remote_request *q, enum failure why, bool retryable,
                          const char *text)
{
    struct remote *r = q->remote;
    char reason[200];

    (void)retryable;
    r->asking = NULL;
    stop_asking(r);
    replace_text(&r->known, SPAN_EMPTY);
    if (r->core.state == PROVIDER_READY && why != FAIL_TIMEOUT) {
        log_warn(r->alias, "still offers what it did: %s", text);
        if (r->stale)
            remote_ask(r);
        return;
    }
    snprintf(reason, sizeof reason, "%s", text);
    remote_lost(r, reason);
}

static void fail_asking(struct remote_request *q, struct span why)
{
    char text[200];

    snprintf(text, sizeof text, SPAN_FMT, SPAN_ARG(span_cut(why, 0, sizeof text - 1)));
    asking_failed(q, FAIL_PROTOCOL, false, text);
}

static void add_each(struct catalog *c, struct span list, enum item_kind kind)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        if (kind == ITEM_TOOL)
            remote_add_tool(c, it.value);
        else if (kind == ITEM_PROMPT)
            remote_add_prompt(c, it.value);
        else
            remote_add_resource(c, it.value, kind);
    }
}

static void resources_answered(struct remote_request *q, enum rockbot_record type, struct span body)
{
    struct remote *r = q->remote;
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct err err;

    r->asking = NULL;
    if (rockbot_read(type, body, in, &err) < 0) {
        fail_asking(q, span_str(err.text));
        return;
    }
    /* A server whose resources cannot be listed still has its tools. */
    add_each(r->fetching, in[RESOURCES_LIST].value, ITEM_RESOURCE);
    add_each(r->fetching, in[RESOURCES_TEMPLATES].value, ITEM_TEMPLATE);
    publish(r);
}

static const struct remote_request_kind list_resources = {.request = ROCKBOT_LIST_RESOURCES,
                                                          .response = ROCKBOT_RESOURCES,
                                                          .answered = resources_answered,
                                                          .failed = asking_failed};

static void ask(struct remote *r, const struct remote_request_kind *kind)
{
    struct message m = {0};
    BUF_SCOPED body = {0};

    rockbot_put(&body, kind->request, &(struct span){r->name, strlen(r->name)});
    r->asking = remote_request_send(r, kind, NULL, buf_view(&body), &m, MANAGE_WAIT_MS);
}

static void details_answered(struct remote_request *q, enum rockbot_record type, struct span body)
{
    struct remote *r = q->remote;
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    BUF_SCOPED scratch = {0};
    int64_t resources = 0;
    struct err err;

    r->asking = NULL;
    if (rockbot_read(type, body, in, &err) < 0) {
        fail_asking(q, span_str(err.text));
        return;
    }
    if (in[DETAILS_ERROR].type == JSON_STRING) {
        fail_asking(q, rockbot_text(&in[DETAILS_ERROR], &scratch));
        return;
    }
    add_each(r->fetching, in[DETAILS_TOOLS].value, ITEM_TOOL);
    add_each(r->fetching, in[DETAILS_PROMPTS].value, ITEM_PROMPT);
    catalog_set_instructions(r->fetching, rockbot_text(&in[DETAILS_INSTRUCTIONS], &scratch));
    if (json_int(in[DETAILS_N_RESOURCES].value, &resources))
        r->has_resources |= resources > 0;
    if (r->has_resources)
        ask(r, &list_resources);
    else
        publish(r);
}

static const struct remote_request_kind get_details = {.request = ROCKBOT_GET_DETAILS,
                                                       .response = ROCKBOT_DETAILS,
                                                       .answered = details_answered,
                                                       .failed = asking_failed};

void remote_ask(struct remote *r)
{
    r->stale = r->asking != NULL;
    if (r->asking)
        return;
    replace_text(&r->known, span_str(r->announced));
    r->fetching = provider_draft(&r->core);
    ask(r, &get_details);
}

void remote_indexed(struct remote *r, struct span fingerprint, bool has_resources)
{
    r->indexed = true;
    r->has_resources = has_resources;
    replace_text(&r->announced, fingerprint);
    if (r->core.state != PROVIDER_READY && !r->asking)
        provider_want(&r->core);
    else if (!r->known || !fingerprint.n || !span_is(fingerprint, r->known))
        remote_ask(r); /* again if a request is under way: its answer may be older */
}

/* Keeps the server's tools that are neither listed again nor removed. */
static void keep_others(struct remote *r, const struct catalog *before, struct span removed)
{
    struct catalog *now = r->fetching;
    struct map changed = {0};
    BUF_SCOPED text = {0};

    for (size_t i = 0; i < now->n[ITEM_TOOL]; i++)
        map_put(&changed, now->items[ITEM_TOOL][i].name, now);
    for (struct json_iter it = json_iter(removed); json_next(&it);) {
        text.n = 0;
        if (it.type == JSON_STRING)
            map_put(&changed, json_text(it.value, &text), now);
    }
    for (size_t i = 0; i < before->n[ITEM_TOOL] && now->n[ITEM_TOOL] < REMOTE_ITEMS_MAX; i++)
        if (!map_get(&changed, before->items[ITEM_TOOL][i].name))
            catalog_add(now, ITEM_TOOL, &before->items[ITEM_TOOL][i]);
    map_fini(&changed);
}

bool remote_tools(struct remote *r, struct span tools, struct span removed)
{
    const struct catalog *before = r->core.catalog;

    if (r->indexed)
        return true; /* the index has more details */
    stop_asking(r);
    r->fetching = provider_draft(&r->core);
    add_each(r->fetching, tools, ITEM_TOOL);
    if (before)
        keep_others(r, before, removed);
    bool any = r->fetching->n[ITEM_TOOL] > 0;
    publish(r);
    if (any && r->core.state != PROVIDER_READY)
        provider_want(&r->core);
    return any;
}

/* --- start and stop --- */

static void on_late(struct timer *t)
{
    struct remote *r = CONTAINER_OF(t, struct remote, late);

    provider_lost(&r->core, r->proxy->away[0] ? r->proxy->away : "the bus is not connected");
}

static void start(struct provider *p)
{
    struct remote *r = of_provider(p);

    if (!r->proxy->is_up)
        timer_set(timers_of(r), &r->late, 0);
    else if (r->indexed)
        remote_ask(r);
    else
        provider_up(p);
}

/* Drops timers and requests, before the router is told that the provider is lost. */
static void let_go(struct remote *r)
{
    timer_clear(timers_of(r), &r->late);
    stop_asking(r);
    while (!list_empty(&r->requests)) {
        struct remote_request *q = LIST_FIRST(&r->requests, struct remote_request, node);
        if (q->call)
            q->call->provider_data = NULL;
        remote_request_drop(q);
    }
}

void remote_lost(struct remote *r, const char *why)
{
    let_go(r);
    if (r->core.state == PROVIDER_STARTING || r->core.state == PROVIDER_READY)
        provider_lost(&r->core, why);
}

static void stop(struct provider *p)
{
    let_go(of_provider(p));
    provider_lost(p, "not wanted any more");
}

static void describe(const struct provider *p, struct provider_facts *facts)
{
    (void)p;
    facts->transport = "bus";
}

static const struct provider_ops life = {.start = start, .stop = stop, .describe = describe};

/* --- the alias --- */

/* Eight hex digits of the name (FNV-1a): the same in every run. */
static void put_hash(struct buf *out, struct span name)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.p[i]) * 0x100000001b3u;
    buf_printf(out, "-%08x", (unsigned)(h ^ (h >> 32)));
}

/* The bridge's name of the server; the agent's name, or else a hash, is added if another server has
 * that name. */
static char *choose_alias(const struct bus_proxy *x, struct span name)
{
    struct buf alias = {0};

    for (size_t i = 0; i < name.n && i < ALIAS_MAX; i++)
        buf_char(&alias, ascii_is_word(name.p[i], "_-.") ? name.p[i] : '-');
    size_t stem = alias.n;
    if (router_provider(x->host->router, buf_view(&alias)))
        buf_printf(&alias, "-%s", x->options.agent);
    if (router_provider(x->host->router, buf_view(&alias))) {
        alias.n = stem;
        put_hash(&alias, name);
    }
    if (!span_eq(buf_view(&alias), name))
        log_info("bus", "server '" SPAN_FMT "' on the bus is called '%s' here",
                 SPAN_ARG(span_cut(name, 0, 200)), buf_cstr(&alias));
    return buf_take(&alias);
}

struct remote *remote_new(struct bus_proxy *x, struct span name)
{
    struct remote *r = MEM_NEW(struct remote);

    r->proxy = x;
    r->name = mem_span(name);
    r->alias = choose_alias(x, name);
    r->late.fire = on_late;
    list_init(&r->requests);
    provider_init(&r->core, &remote_verbs, &life, r->alias);
    r->core.policy.timeout = x->options.timeout + x->options.margin;
    r->core.policy.start_timeout = 0; /* the requests at the start have time limits of their own */
    r->core.policy.backoff_first = 2000;
    router_add_provider(x->host->router, &r->core);
    x->host->admit(x->host->arg, &r->core);
    return r;
}

void remote_rename(struct remote *r)
{
    struct router *router = r->proxy->host->router;
    char *before = r->alias;

    r->alias = choose_alias(r->proxy, span_str(r->name));
    r->core.alias = r->alias;
    mem_free(before);
    router_provider_changed(router, &r->core);
    router_tell_changes(router, &r->core);
}

void remote_free(struct remote *r)
{
    struct bus_proxy *x = r->proxy;

    router_withdraw_provider(x->host->router, &r->core);
    provider_unwant(&r->core);
    router_remove_provider(x->host->router, &r->core);
    provider_fini(&r->core);
    mem_free(r->announced);
    mem_free(r->known);
    mem_free(r->alias);
    mem_free(r->name);
    mem_free(r->worker);
    mem_free(r);
}
