/* The JSON of /status and of single servers, and times written as text. Called by admin.c,
 * servers.c and news.c; metrics.c takes the sums over instances from here, most other files the
 * times. */
#include "admin/inside.h"
#include "config/problems.h"
#include "hub/graph/lock.h"
#include "wire/json_out.h"

#include <time.h>
#include <unistd.h>

enum { CLOCK_SET_MS = 1000 }; /* less: the two clocks were read one after the other */

void status_mind_clock(struct admin *a)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t epoch = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 -
                     router_timers(a->router)->now;
    if (epoch - a->epoch + CLOCK_SET_MS > 2 * CLOCK_SET_MS)
        a->epoch = epoch;
}

uint64_t status_unix(const struct admin *a, uint64_t at)
{
    return a->epoch + at;
}

void status_put_time(struct buf *out, const char *name, const struct admin *a, uint64_t at)
{
    time_t when = (time_t)(status_unix(a, at) / 1000);
    struct tm parts;
    char text[32];

    gmtime_r(&when, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    json_out_str(out, name, text);
}

void status_put_stamp(struct buf *out, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char text[32];

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    buf_printf(out, "%s.%03uZ", text, (unsigned)(ms % 1000));
}

struct stats status_stats(const struct admin *a, const struct provider *p)
{
    struct stats sum = {0};

    for (struct provider *i = NULL; (i = router_next_provider(a->router, i));)
        if (span_is(span_str(i->alias), p->alias))
            stats_add(&sum, &i->stats);
    return sum;
}

static size_t count_instances(const struct admin *a, const struct provider *p)
{
    size_t n = 0;

    for (struct provider *i = NULL; (i = router_next_provider(a->router, i));)
        n += span_is(span_str(i->alias), p->alias) && i->state == PROVIDER_READY;
    return n;
}

static size_t count_items(struct view *v, enum item_kind kind)
{
    size_t n = 0;

    while (v && view_item(v, kind, n))
        n++;
    return n;
}

static void put_text(struct buf *out, const char *name, const char *text)
{
    json_out_redacted(out, name, span_str(text));
}

/* The last failure and its time; a server that is failing now shows the present reason. */
static void put_last_error(struct buf *out, const struct admin *a, const struct provider *p)
{
    const struct account *account = accounts_find(a, p->alias);

    put_text(out, "last_error", p->why ? p->why : account->error);
    if (account->error[0])
        status_put_time(out, "last_error_at", a, account->error_at);
    else
        put_text(out, "last_error_at", NULL);
}

/* Since when the server has failed, and when it is tried again. A server that was stopped by hand
 * is not failing, and is not tried. */
static void put_failing(struct buf *out, const struct admin *a, const struct provider *p)
{
    uint64_t next = provider_next_try(p);

    if (p->failing_since && health_of(p) != SERVER_STOPPED)
        status_put_time(out, "failing_since", a, p->failing_since);
    else
        put_text(out, "failing_since", NULL);
    if (next)
        json_out_number(out, "next_try_ms", next);
    else
        put_text(out, "next_try_ms", NULL);
    health_put_lacks(out, a, p->alias);
}

/* How many calls took less than 1, 2, 4, ... ms, each counted in one bucket; empty buckets at the
 * end are left out. */
static void put_durations(struct buf *out, const struct stats *stats)
{
    int n = STATS_BUCKETS;

    while (n > 0 && !stats->latency[n - 1])
        n--;
    json_out_open(out, "durations", '[');
    for (int i = 0; i < n; i++)
        json_out_number(out, NULL, stats->latency[i]);
    buf_char(out, ']');
}

/* null for a server without a sandbox. */
static void put_sandbox(struct buf *out, const struct provider_facts *facts)
{
    if (!facts->sandbox) {
        put_text(out, "sandbox", NULL);
        return;
    }
    json_out_open(out, "sandbox", '{');
    json_out_str(out, "level", facts->sandbox);
    if (facts->refused.n) {
        json_out_redacted(out, "refused", facts->refused);
        json_out_redacted(out, "remedy", facts->remedy);
    }
    buf_char(out, '}');
}

void status_put_server(struct buf *out, const struct admin *a, const struct provider *p)
{
    static const struct {
        const char *name;
        enum item_kind kind;
    } kinds[] = {{"tools", ITEM_TOOL},
                 {"resources", ITEM_RESOURCE},
                 {"resource_templates", ITEM_TEMPLATE},
                 {"prompts", ITEM_PROMPT}};
    struct view *view = bridge_server_view(p);
    struct provider_facts facts = provider_describe(p);
    struct stats stats = status_stats(a, p);
    uint64_t failed = 0;

    for (int i = 0; i < FAIL_COUNT; i++)
        failed += stats.failed[i];
    buf_char(out, '{');
    json_out_str(out, "name", p->alias);
    json_out_str(out, "state", health_word(health_of(p)));
    if (health_of(p) == SERVER_NEEDS_SIGN_IN) {
        BUF_SCOPED hint = {0};
        buf_printf(&hint, "rialto login %s", p->alias);
        json_out_text(out, "hint", buf_view(&hint));
    }
    json_out_str(out, "phase", provider_state_name(p->state));
    status_put_time(out, "since", a, p->since);
    put_text(out, "transport", facts.transport);
    put_text(out, "protocol", facts.version);
    if (facts.pid)
        json_out_number(out, "pid", (uint64_t)facts.pid);
    else
        put_text(out, "pid", NULL);
    put_sandbox(out, &facts);
    json_out_number(out, "instances", count_instances(a, p));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        json_out_number(out, kinds[i].name, count_items(view, kinds[i].kind));
    json_out_bool(out, "lists_cut", p->catalog && p->catalog->cut);
    json_out_number(out, "calls", stats.opened);
    json_out_number(out, "errors", stats.errors);
    json_out_number(out, "failed", failed);
    json_out_number(out, "tool_errors", accounts_find(a, p->alias)->tool_errors);
    json_out_number(out, "in_flight", stats.in_flight);
    json_out_number(out, "queued", stats.queued);
    put_durations(out, &stats);
    json_out_number(out, "starts", stats.starts);
    json_out_number(out, "crashes", stats.crashes);
    put_last_error(out, a, p);
    put_failing(out, a, p);
    buf_char(out, '}');
}

void status_put_servers(struct buf *out, const struct admin *a, const struct sight *s)
{
    buf_char(out, '[');
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        if (!sight_shows_server(s, span_str(p->alias)))
            continue;
        json_out(out, NULL);
        status_put_server(out, a, p);
    }
    buf_char(out, ']');
}

static void put_pages(struct buf *out, const struct admin *a)
{
    struct browser_numbers now = {0};
    uint64_t failed = 0;

    hub_count_pages(a->hub, &now);
    for (int i = 0; i < FAIL_COUNT; i++)
        failed += now.stats.failed[i];
    json_out_open(out, "browser", '{');
    json_out_number(out, "sessions", now.sessions);
    json_out_number(out, "pages", now.pages);
    json_out_number(out, "agents", now.agents);
    json_out_number(out, "tools", now.tools);
    json_out_number(out, "calls", now.stats.opened);
    json_out_number(out, "errors", now.stats.errors);
    json_out_number(out, "failed", failed);
    json_out_number(out, "in_flight", now.stats.in_flight);
    if (now.of) {
        json_out(out, "tabs");
        browser_put_pages(out, now.of, false);
    }
    buf_char(out, '}');
}

/* Tools that are not offered because they are new or not as they were approved. */
static void put_withheld(struct buf *out, const struct admin *a)
{
    const struct lock *lock = bridge_lock(a->bridge);

    json_out_open(out, "withheld", '[');
    for (const struct lock_held *h = NULL; (h = lock_next(lock, h));) {
        json_out_open(out, NULL, '{');
        json_out_str(out, "server", h->server);
        json_out_str(out, "tool", h->tool);
        json_out_str(out, "change", h->known ? "changed" : "new");
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The addresses of the configuration: those that are served, and those that other programs have. */
static void put_listen(struct buf *out, const struct admin *a)
{
    const struct front *front = hub_front(a->hub);
    const char *taken;

    json_out_open(out, "listen", '[');
    for (size_t i = 0; i < front_open_count(front); i++)
        json_out_str(out, NULL, front_address(front, i));
    buf_char(out, ']');
    if (front_taken(front, 0)) {
        json_out_open(out, "taken", '[');
        for (size_t i = 0; (taken = front_taken(front, i)); i++)
            json_out_str(out, NULL, taken);
        buf_char(out, ']');
    }
    if (a->log_file)
        put_text(out, "log", a->log_file);
}

/* All errors in the configuration file, when it was rejected. */
static void put_rejected(struct buf *out, const struct admin *a)
{
    const struct problems *rejected = hub_rejected(a->hub);

    json_out_open(out, "config_errors", '[');
    for (size_t i = 0; i < rejected->n; i++)
        if (rejected->items[i].level == PROBLEM_ERROR)
            problem_put_json(out, &rejected->items[i]);
    buf_char(out, ']');
}

/* What a viewer of a view is not shown: the other servers, files, and what all callers do. */
static void put_whole(struct buf *out, const struct admin *a)
{
    const struct stats *stats = router_stats(a->router);

    put_text(out, "config", a->config ? a->config : hub_file(a->hub));
    put_rejected(out, a);
    put_listen(out, a);
    json_out_number(out, "sessions", hub_sessions(a->hub));
    json_out_number(out, "shims", hub_shims(a->hub));
    json_out_number(out, "calls", stats->opened);
    json_out_number(out, "in_flight", stats->in_flight);
    json_out_number(out, "queued", stats->queued);
    json_out_number(out, "approvals", approvals_count(a));
    if (lock_next(bridge_lock(a->bridge), NULL) && lock_withholds(bridge_lock(a->bridge)))
        put_withheld(out, a);
}

void status_put(struct buf *out, const struct admin *a, const struct sight *s)
{
    uint64_t up = router_timers(a->router)->now - a->started_at;

    buf_char(out, '{');
    health_put_members(out, a, false, !s->narrowed, s);
    json_out_str(out, "version", RIALTO_VERSION);
    json_out_number(out, "pid", (uint64_t)getpid());
    status_put_time(out, "started", a, a->started_at);
    json_out_number(out, "uptime_s", up / 1000);
    if (!s->narrowed)
        put_whole(out, a);
    json_out(out, "servers");
    status_put_servers(out, a, s);
    if (!s->narrowed) {
        put_pages(out, a);
        bus_numbers_put_status(out, a);
    }
    buf_char(out, '}');
}
