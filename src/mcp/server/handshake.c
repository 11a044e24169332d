/* server/discover and initialize: a server's era, version and capabilities; giving a server up.
 * Called by provider.c when the link opens or closes, by ping.c and circle.c to give a server up,
 * and by lists.c when the first lists are complete. */
#include "base/log.h"
#include "base/mem.h"
#include "core/subscriptions.h"
#include "mcp/circle.h"
#include "mcp/server/upstream.h"
#include "wire/json_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static bool has(struct span object, const char *key)
{
    return json_get(object, key).type == JSON_OBJECT;
}

/* The loop's clock does not advance while a program is started, so it is not used here. */
void handshake_reached(struct mcp_provider *p, enum mcp_phase phase)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    p->phase_at[phase] = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Each era says in its own way that tools can be called as tasks. */
static bool has_tasks(const struct mcp_provider *p, struct span capabilities)
{
    static const char *const ways[2][4] = {{"tasks", "requests", "tools", "call"},
                                           {"extensions", MCP_TASKS, NULL}};
    struct json_slot at = {.type = JSON_OBJECT, .value = capabilities};

    for (size_t i = 0; i < 4 && ways[p->modern][i] && at.type == JSON_OBJECT; i++)
        at = json_get(at.value, ways[p->modern][i]);
    return at.type == JSON_OBJECT;
}

static void learn_capabilities(struct mcp_provider *p, struct span capabilities)
{
    static const struct {
        const char *key;
        unsigned offers;
    } rows[] = {
        {"resources", OFFERS_RESOURCES},
        {"prompts", OFFERS_PROMPTS},
        {"completions", OFFERS_COMPLETION},
        {"logging", OFFERS_LOGGING},
    };

    buf_reset(&p->extra, 0);
    mcp_merge_extras(&p->extra, capabilities, SPAN_EMPTY);
    p->offers = 0;
    p->has_tools = has(capabilities, "tools");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (has(capabilities, rows[i].key))
            p->offers |= rows[i].offers;
    struct json_slot resources = json_get(capabilities, "resources");
    if (resources.type == JSON_OBJECT && json_get(resources.value, "subscribe").type == JSON_TRUE)
        p->offers |= OFFERS_SUBSCRIBE;
    if (has_tasks(p, capabilities))
        p->offers |= OFFERS_TASKS;
}

void handshake_give_up(struct mcp_provider *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->verdict, sizeof p->verdict, fmt, ap);
    va_end(ap);
    p->ops->close(p->link);
}

static void learn_instructions(struct mcp_provider *p, const struct mcp_message *m)
{
    mem_free(p->instructions);
    p->instructions = NULL;
    if (m->slots[SLOT_INSTRUCTIONS].type == JSON_STRING) {
        struct buf text = {0};
        json_unescape(&text, m->slots[SLOT_INSTRUCTIONS].value);
        p->instructions = buf_take(&text);
    }
}

/* `*kept` becomes a copy of the raw object, or NULL if `slot` has none. */
static void keep_object(char **kept, struct json_slot slot)
{
    struct buf copy = {0};

    mem_free(*kept);
    *kept = NULL;
    if (slot.type != JSON_OBJECT)
        return;
    json_one_line(&copy, slot.value);
    *kept = buf_take(&copy);
}

static void learn_info(struct mcp_provider *p, const struct mcp_message *m)
{
    struct json_slot info = m->slots[SLOT_INFO];

    if (info.type == JSON_NONE) /* in the stateless era every result has serverInfo */
        info = json_get(json_get(m->rpc.result, "_meta").value, MCP_META_PREFIX "serverInfo");
    keep_object(&p->info, info);
    keep_object(&p->capabilities, m->slots[SLOT_CAPABILITIES]);
}

/* The handshake is done: from here on the steps are the same in both eras. */
static void get_to_work(struct mcp_provider *p, const struct mcp_message *m, struct span version)
{
    handshake_reached(p, MCP_GREETED);
    snprintf(p->version, sizeof p->version, SPAN_FMT, SPAN_ARG(version));
    learn_capabilities(p, m->slots[SLOT_CAPABILITIES].value);
    learn_instructions(p, m);
    learn_info(p, m);
    circle_greeted(p);
    if (!p->modern)
        upstream_notify(p, "notifications/initialized", SPAN_EMPTY);
    if (p->core.state == PROVIDER_READY) /* it has forgotten these with our session */
        subscriptions_provider_ready(&p->core);
    lists_fetch(p, (1u << ITEM_KINDS) - 1);
}

/* --- the initialize era --- */

static void discover(struct mcp_provider *p);

/* Try server/discover once more. False if that was done before, or must not be done. */
static bool try_modern(struct mcp_provider *p)
{
    bool may = p->wanted_era == MCP_ERA_AUTO || p->wanted_era == MCP_ERA_LEGACY_FIRST;

    p->legacy_until = 0;
    if (!may || p->probed_again)
        return false;
    p->probed_again = true;
    discover(p);
    return true;
}

/*
 * The server is not of the initialize era. It may be of the stateless era, and only have taken
 * longer to start than we wait for an answer to server/discover.
 */
static void refused_initialize(struct mcp_provider *p, struct span error)
{
    if (!try_modern(p))
        handshake_give_up(p, "refused initialize: " SPAN_FMT, SPAN_ARG(span_cut(error, 0, 100)));
}

static void initialize_answered(struct mcp_provider *p, struct sent *sent,
                                const struct mcp_message *m)
{
    BUF_SCOPED scratch = {0};

    (void)sent;
    if (m->rpc.kind == RPC_ERROR) {
        refused_initialize(p, m->rpc.error);
        return;
    }
    struct span version = m->slots[SLOT_VERSION].type == JSON_STRING
                              ? json_text(m->slots[SLOT_VERSION].value, &scratch)
                              : SPAN_EMPTY;
    if (mcp_is_legacy_version(version))
        get_to_work(p, m, version);
    else
        handshake_give_up(p, "speaks protocol version '" SPAN_FMT "', which is not known here",
                          SPAN_ARG(span_cut(version, 0, 40)));
}

static void initialize_failed(struct mcp_provider *p, struct sent *sent, int status,
                              const char *why)
{
    (void)sent;
    bool other_way = status == 400 || status == 404 || status == 405;
    if (other_way && p->wanted_era == MCP_ERA_LEGACY_FIRST && try_modern(p))
        return;
    if (other_way && p->ops->fall_back && p->ops->fall_back(p->link))
        return;
    p->core.locked = status == 401;
    handshake_give_up(p, "%s", why);
}

static void initialize(struct mcp_provider *p)
{
    BUF_SCOPED members = {0};

    p->modern = false;
    p->version[0] = '\0';
    buf_str(&members, "\"protocolVersion\":\"" MCP_NEWEST_LEGACY "\",\"capabilities\":");
    upstream_put_capabilities(&members, p->declares, SPAN(UPSTREAM_DECLARES));
    buf_str(&members, ",\"clientInfo\":{\"name\":\"rialto\",\"version\":\"" RIALTO_VERSION "\"}");
    upstream_request(p, upstream_sent_new(p, initialize_answered, initialize_failed), "initialize",
                     buf_view(&members));
}

/* --- the stateless era --- */

/*
 * We assume that a server that is silent for this long does not know server/discover. The verdict
 * "legacy" is kept for a day only: a server that was upgraded since still answers initialize, so
 * nothing else would show that it has to be probed again.
 */
enum { SILENCE_MS = 3000, VERDICT_MS = 24 * 3600 * 1000 };

/* The server is not of the stateless era, or speaks no version of that era that we know. */
static void try_legacy(struct mcp_provider *p, const char *why)
{
    timer_clear(router_timers(p->core.router), &p->probe);
    if (p->wanted_era == MCP_ERA_MODERN) {
        handshake_give_up(p, "does not speak " MCP_MODERN ": %s", why);
        return;
    }
    p->legacy_until = router_timers(p->core.router)->now + VERDICT_MS;
    initialize(p);
}

static bool lists_modern(struct json_slot versions)
{
    struct json_iter it = json_iter(versions.value);

    while (versions.type == JSON_ARRAY && json_next(&it))
        if (json_string_is(it.value, SPAN(MCP_MODERN)))
            return true;
    return false;
}

static void discover_answered(struct mcp_provider *p, struct sent *sent,
                              const struct mcp_message *m)
{
    (void)sent;
    timer_clear(router_timers(p->core.router), &p->probe);
    if (m->rpc.kind == RPC_RESULT && lists_modern(m->slots[SLOT_SUPPORTED])) {
        p->knows_modern = true;
        get_to_work(p, m, SPAN(MCP_MODERN));
        return;
    }
    struct rpc_error error =
        m->rpc.kind == RPC_ERROR ? rpc_error_of(m->rpc.error) : (struct rpc_error){0};
    bool again = error.code == MCP_ERROR_VERSION && error.data.n &&
                 lists_modern(json_get(error.data, "supported")) && !p->probed_again;
    if (again) {
        p->probed_again = true;
        discover(p);
    } else {
        try_legacy(p, "it refused server/discover");
    }
}

static void discover_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)sent;
    timer_clear(router_timers(p->core.router), &p->probe);
    p->core.locked = status == 401;
    /* No connection, or no permission: neither says anything about the server's era. */
    if (status == 0 || status == 401 || status == 403)
        handshake_give_up(p, "%s", why);
    else
        try_legacy(p, why);
}

/*
 * A late answer to server/discover: the server is of the stateless era, and was only slow to start,
 * as with npx and uvx. By now it was sent initialize. If it has not answered that, it is started
 * again, this time without the limit of SILENCE_MS.
 */
static void late_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    (void)sent;
    if (m->rpc.kind != RPC_RESULT || !lists_modern(m->slots[SLOT_SUPPORTED]))
        return;
    bool greeted = p->phase_at[MCP_GREETED] != 0;
    p->knows_modern = true;
    p->legacy_until = 0;
    if (greeted)
        return; /* the next start begins with server/discover */
    handshake_reached(p, MCP_GREETED);
    handshake_give_up(p, "answered server/discover late: it is started again");
}

static void late_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)p, (void)sent, (void)status, (void)why;
}

void handshake_on_silence(struct timer *t)
{
    struct mcp_provider *p = CONTAINER_OF(t, struct mcp_provider, probe);

    log_info(p->alias,
             "does not answer server/discover: trying initialize (`era: legacy` in its "
             "entry saves the %d s of waiting)",
             SILENCE_MS / 1000);
    LIST_EACH (&p->all_sent, it) { /* only server/discover is there */
        struct sent *sent = LIST_ENTRY(it, struct sent, node);
        sent->answered = late_answered;
        sent->failed = late_failed;
    }
    try_legacy(p, "it did not answer server/discover");
}

/* Some servers exit when the first message is not initialize: do not probe such a server again. */
void handshake_ended(struct mcp_provider *p)
{
    struct timers *timers = router_timers(p->core.router);

    if (timer_is_set(&p->probe) && p->wanted_era == MCP_ERA_AUTO)
        p->legacy_until = timers->now + VERDICT_MS;
    timer_clear(timers, &p->probe);
}

static void discover(struct mcp_provider *p)
{
    p->modern = true;
    snprintf(p->version, sizeof p->version, "%s", MCP_MODERN);
    /* A server known to be of this era may take as long as any server that starts. */
    bool known = p->wanted_era == MCP_ERA_MODERN || p->knows_modern;
    if (!p->ops->reports_failures && !known)
        timer_set(router_timers(p->core.router), &p->probe, SILENCE_MS);
    upstream_request(p, upstream_sent_new(p, discover_answered, discover_failed), "server/discover",
                     SPAN_EMPTY);
}

/* On a plain provider, client and server do the handshake themselves. */
static void stand_aside(struct mcp_provider *p)
{
    provider_publish(&p->core, catalog_new());
    provider_up(&p->core);
}

static void begin(struct mcp_provider *p, bool legacy)
{
    p->probed_again = false;
    if (legacy)
        initialize(p);
    else
        discover(p);
}

void handshake_start(struct mcp_provider *p)
{
    bool legacy =
        p->wanted_era == MCP_ERA_LEGACY ||
        (p->wanted_era == MCP_ERA_LEGACY_FIRST && !p->knows_modern) ||
        (p->wanted_era == MCP_ERA_AUTO && p->legacy_until > router_timers(p->core.router)->now);

    if (p->plain)
        stand_aside(p);
    else
        begin(p, legacy);
}

void handshake_put(const struct mcp_provider *p, struct buf *note)
{
    uint64_t now = router_timers(p->core.router)->now;

    json_out_number(note, "legacy_ms", p->legacy_until > now ? p->legacy_until - now : 0);
}

void handshake_resume(struct mcp_provider *p, bool modern, struct span note)
{
    bool either = p->wanted_era == MCP_ERA_AUTO || p->wanted_era == MCP_ERA_LEGACY_FIRST;
    uint64_t left = json_count(note, "legacy_ms");

    if (left)
        p->legacy_until = router_timers(p->core.router)->now + left;
    begin(p, either ? !modern : p->wanted_era == MCP_ERA_LEGACY);
}
