/* The text of /metrics in the format of Prometheus: numbers of servers, calls, durations and the
 * process. Called by admin.c. */
#include "admin/inside.h"
#include "base/file.h"
#include "base/mem.h"
#include "core/approval.h"
#include "mcp/outcome.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A number that every server has. */
struct metric {
    const char *name, *type, *help;
    size_t at; /* in struct stats */
};

static const struct metric server_metrics[] = {
    {"rialto_calls_total", "counter", "Operations opened.", offsetof(struct stats, opened)},
    {"rialto_call_results_total", "counter", "Operations that ended with a result.",
     offsetof(struct stats, results)},
    {"rialto_call_errors_total", "counter", "Operations that the server ended with an error.",
     offsetof(struct stats, errors)},
    {"rialto_call_retries_total", "counter", "Operations sent again after a crash.",
     offsetof(struct stats, retried)},
    {"rialto_calls_in_flight", "gauge", "Operations the server works on.",
     offsetof(struct stats, in_flight)},
    {"rialto_calls_queued", "gauge", "Operations that wait for the server.",
     offsetof(struct stats, queued)},
    {"rialto_asks_total", "counter", "Questions the server asked its clients.",
     offsetof(struct stats, asks)},
    {"rialto_events_total", "counter", "Progress, log and other messages of the server.",
     offsetof(struct stats, events)},
    {"rialto_server_starts_total", "counter", "Times the server was started or connected to.",
     offsetof(struct stats, starts)},
    {"rialto_server_crashes_total", "counter", "Times it ended by itself while it was ready.",
     offsetof(struct stats, crashes)},
};

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            buf_char(out, '\\');
        if (*text == '\n')
            buf_str(out, "\\n");
        else
            buf_char(out, *text);
    }
}

/* name{server="x",label="word"} n */
static void put_line(struct buf *out, const char *name, const char *server, const char *label,
                     const char *word, uint64_t n)
{
    buf_printf(out, "%s{server=\"", name);
    put_label(out, server);
    if (label) {
        buf_printf(out, "\",%s=\"", label);
        put_label(out, word);
    }
    buf_printf(out, "\"} %" PRIu64 "\n", n);
}

/* A value of the label "server": a server, or, after the servers, all web pages together. */
struct party {
    const char *name;
    struct stats stats;
};

/* The sums are made once here: each is written in many lines. */
struct parties {
    struct party *items;
    size_t n;
};

static void add_party(struct parties *all, const char *name, const struct stats *stats)
{
    all->items = mem_resize(all->items, (all->n + 1) * sizeof *all->items);
    all->items[all->n++] = (struct party){name, *stats};
}

static struct parties find_parties(const struct admin *a)
{
    struct parties all = {0};
    struct browser_numbers pages;

    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        struct stats stats = status_stats(a, p);
        add_party(&all, p->alias, &stats);
    }
    hub_count_pages(a->hub, &pages);
    add_party(&all, BROWSER_TOLD_AS, &pages.stats);
    return all;
}

static void put_numbers(struct buf *out, const struct parties *all)
{
    for (size_t m = 0; m < sizeof server_metrics / sizeof server_metrics[0]; m++) {
        const struct metric *metric = &server_metrics[m];
        put_head(out, metric->name, metric->type, metric->help);
        for (size_t i = 0; i < all->n; i++) {
            uint64_t n;
            memcpy(&n, (const char *)&all->items[i].stats + metric->at, sizeof n);
            put_line(out, metric->name, all->items[i].name, NULL, NULL, n);
        }
    }
}

static void put_failures(struct buf *out, const struct admin *a, const struct parties *all)
{
    const char *name = "rialto_call_failures_total";

    put_head(out, name, "counter", "Operations that ended without an answer of the server.");
    for (size_t i = 0; i < all->n; i++)
        for (int why = FAIL_UNKNOWN + 1; why < FAIL_COUNT; why++)
            put_line(out, name, all->items[i].name, "reason",
                     mcp_outcome_failure_word((enum failure)why), all->items[i].stats.failed[why]);
    /* A call of something that no server offers counts for no server. */
    put_line(out, name, "", "reason", mcp_outcome_failure_word(FAIL_UNKNOWN),
             router_stats(a->router)->failed[FAIL_UNKNOWN]);
}

static void put_histogram(struct buf *out, const struct party *party)
{
    const char *name = "rialto_call_duration_seconds";
    const struct stats *stats = &party->stats;
    uint64_t sum = 0;

    for (int i = 0; i < STATS_BUCKETS; i++) {
        char bound[32];
        sum += stats->latency[i];
        if (i == STATS_BUCKETS - 1)
            snprintf(bound, sizeof bound, "+Inf");
        else
            snprintf(bound, sizeof bound, "%.3f", (double)(1ull << i) / 1000);
        put_line(out, "rialto_call_duration_seconds_bucket", party->name, "le", bound, sum);
    }
    buf_printf(out, "%s_sum{server=\"", name);
    put_label(out, party->name);
    buf_printf(out, "\"} %.3f\n", (double)stats->latency_sum_ms / 1000);
    put_line(out, "rialto_call_duration_seconds_count", party->name, NULL, NULL, sum);
}

static void put_durations(struct buf *out, const struct parties *all)
{
    put_head(out, "rialto_call_duration_seconds", "histogram", "How long operations took.");
    for (size_t i = 0; i < all->n; i++)
        put_histogram(out, &all->items[i]);
}

static void put_happenings(struct buf *out, const struct admin *a, const struct parties *all)
{
    put_head(out, "rialto_happenings_total", "counter", "Events, by name.");
    for (size_t i = 0; i < all->n; i++)
        for (int kind = 0; kind < HAPPENED_KINDS; kind++)
            put_line(out, "rialto_happenings_total", all->items[i].name, "event",
                     happening_name((enum happening_kind)kind),
                     accounts_find(a, all->items[i].name)->happened[kind]);
    put_head(out, "rialto_tool_errors_total", "counter", "Tool results that say they are errors.");
    for (size_t i = 0; i < all->n; i++)
        put_line(out, "rialto_tool_errors_total", all->items[i].name, NULL, NULL,
                 accounts_find(a, all->items[i].name)->tool_errors);
}

static void put_states(struct buf *out, const struct admin *a)
{
    put_head(out, "rialto_server_up", "gauge", "Whether the server can be called: up or idle.");
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        enum server_health h = health_of(p);
        put_line(out, "rialto_server_up", p->alias, NULL, NULL, h == SERVER_UP || h == SERVER_IDLE);
    }
    put_head(out, "rialto_calls_held", "gauge", "Tool calls that wait for approval.");
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        uint64_t n = 0;
        for (const struct call *c = NULL; (c = approval_next(a->router, c));)
            n += span_is(span_str(c->provider->alias), p->alias);
        put_line(out, "rialto_calls_held", p->alias, NULL, NULL, n);
    }
}

/* --- the process --- */

/* The second number of statm: pages in memory. */
static uint64_t resident_bytes(void)
{
    BUF_SCOPED text = {0};

    if (file_read(&text, "/proc/self/statm", 128))
        return 0;
    const char *second = strchr(buf_cstr(&text), ' ');
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the folder itself */
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void put_process(struct buf *out, const struct admin *a)
{
    struct browser_numbers pages = {0};
    uint64_t up = (router_timers(a->router)->now - a->started_at) / 1000;
    hub_count_pages(a->hub, &pages);
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"rialto_sessions", "gauge", "Sessions of agents.", (double)hub_sessions(a->hub)},
        {"rialto_browser_sessions", "gauge", "Sessions of web pages.", (double)pages.sessions},
        {"rialto_browser_pages", "gauge", "Web pages connected.", (double)pages.pages},
        {"rialto_browser_tools", "gauge", "Tools that they offer.", (double)pages.tools},
        {"process_resident_memory_bytes", "gauge", "Resident memory.", (double)resident_bytes()},
        {"process_open_fds", "gauge", "Open file descriptors.", (double)open_descriptors()},
        {"process_cpu_seconds_total", "counter", "CPU time of the process.", cpu_seconds()},
        {"process_start_time_seconds", "gauge", "When the process was started (Unix time).",
         (double)(time(NULL) - (time_t)up)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_head(out, rows[i].name, rows[i].type, rows[i].help);
        buf_printf(out, "%s %.15g\n", rows[i].name, rows[i].value);
    }
    put_head(out, "rialto_build_info", "gauge", "The version, as a label.");
    buf_printf(out, "rialto_build_info{version=\"%s\"} 1\n", RIALTO_VERSION);
}

void metrics_put(struct buf *out, const struct admin *a)
{
    struct parties all = find_parties(a);

    put_states(out, a);
    put_happenings(out, a, &all);
    put_numbers(out, &all);
    put_failures(out, a, &all);
    put_durations(out, &all);
    bus_numbers_put_metrics(out, a);
    put_process(out, a);
    mem_free(all.items);
}
