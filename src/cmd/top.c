/* The command `rialto top`: reads the daemon's status again and again and shows rates and durations
 * of each server. Called through the table of commands (cmd/table.c). */
#include "base/map.h"
#include "base/mem.h"
#include "browser/browser.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "cmd/screen.h"
#include "config/units.h"
#include "core/stats.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPT_INTERVAL = ARGS_OWN };
enum { INTERVAL_MS = 1000, INTERVAL_MIN = 100, INTERVAL_MAX = 3600 * 1000 };

/* The numbers of a server at the last reading. */
struct top_seen {
    uint64_t calls;
    uint64_t durations[STATS_BUCKETS];
    char p50[16], p95[16]; /* of the last interval with calls; empty: there was none */
};

struct top {
    struct daemon *d;
    const struct args *args;
    struct screen *screen; /* NULL: tables are printed one after the other */
    uint64_t interval, rounds;
    /* the last reading */
    struct map seen; /* name -> struct top_seen */
    struct top_seen all;
    uint64_t pid, uptime; /* of the daemon */
    uint64_t at, elapsed;
    bool begun;
};

/* --- numbers --- */

static uint64_t number_of(struct span object, const char *key)
{
    int64_t n = 0;

    (void)json_int(json_get(object, key).value, &n);
    return n > 0 ? (uint64_t)n : 0;
}

/* "12.0", or "-" before there are two readings. */
static void put_rate(struct buf *out, const struct top *t, const struct top_seen *before,
                     uint64_t now)
{
    if (!t->begun || !t->elapsed || !before || now < before->calls)
        buf_char(out, '-');
    else
        buf_printf(out, "%.1f", (double)(now - before->calls) * 1000 / (double)t->elapsed);
}

/* The upper bound of the bucket with the percentile; bucket i counts calls of less than 2^i ms. */
static void name_percentile(char *out, size_t size, const uint64_t *counts, uint64_t total,
                            unsigned percent)
{
    uint64_t sum = 0;
    int i = 0;

    for (; i < STATS_BUCKETS; i++) {
        sum += counts[i];
        if (sum * 100 >= total * percent)
            break;
    }
    uint64_t ms = 1ull << i;
    if (i == STATS_BUCKETS - 1)
        snprintf(out, size, ">=%" PRIu64 "s", (ms / 2) / 1000);
    else if (ms < 1000)
        snprintf(out, size, "<%" PRIu64 "ms", ms);
    else /* rounded up, so that "<" stays true */
        snprintf(out, size, "<%" PRIu64 ".%us", (ms + 99) / 1000,
                 (unsigned)((ms + 99) % 1000 / 100));
}

/* Percentiles of the calls since the last reading; without any, the former ones stay. */
static void take_durations(struct top_seen *s, struct span list)
{
    struct json_iter it = json_iter(list);
    uint64_t news[STATS_BUCKETS] = {0}, total = 0;

    for (int i = 0; i < STATS_BUCKETS; i++) {
        int64_t n = 0;
        if (json_next(&it)) /* zeros at the end are left out */
            (void)json_int(it.value, &n);
        uint64_t count = n > 0 ? (uint64_t)n : 0;
        news[i] = count > s->durations[i] ? count - s->durations[i] : 0;
        s->durations[i] = count;
        total += news[i];
    }
    if (!total)
        return;
    name_percentile(s->p50, sizeof s->p50, news, total, 50);
    name_percentile(s->p95, sizeof s->p95, news, total, 95);
}

/* --- the table --- */

static const char *const titles[] = {"SERVER", "STATE",  "CALLS/S", "IN FLIGHT",
                                     "QUEUED", "ERRORS", "P50",     "P95"};

static struct top_seen *seen_of(struct top *t, struct span name, bool *is_new)
{
    struct top_seen *s = map_get(&t->seen, name);

    *is_new = !s;
    if (!s) {
        s = MEM_NEW(struct top_seen);
        map_put(&t->seen, name, s);
    }
    return s;
}

static void add_number(struct grid *grid, uint64_t n)
{
    BUF_SCOPED cell = {0};

    buf_u64(&cell, n);
    grid_add(grid, buf_view(&cell));
}

static void add_row(struct top *t, struct grid *grid, struct span name, struct span state,
                    struct span numbers)
{
    uint64_t calls = number_of(numbers, "calls");
    BUF_SCOPED rate = {0};
    bool is_new;
    struct top_seen *s = seen_of(t, name, &is_new);

    put_rate(&rate, t, is_new ? NULL : s, calls);
    s->calls = calls;
    take_durations(s, json_get(numbers, "durations").value);
    grid_add(grid, name);
    grid_add(grid, state);
    grid_add(grid, buf_view(&rate));
    add_number(grid, number_of(numbers, "in_flight"));
    add_number(grid, number_of(numbers, "queued"));
    add_number(grid, number_of(numbers, "errors") + number_of(numbers, "failed") +
                         number_of(numbers, "tool_errors"));
    grid_add(grid, span_str(s->p50));
    grid_add(grid, span_str(s->p95));
}

static void put_head(struct buf *out, struct top *t, struct span status)
{
    BUF_SCOPED scratch = {0};
    time_t now = time(NULL);
    struct tm parts;
    char clock[16];

    localtime_r(&now, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    buf_printf(out, "%s  Rialto ", clock);
    cmd_put_plain(out, daemon_text(status, "version", &scratch));
    buf_str(out, ": ");
    cmd_put_plain(out, daemon_text(status, "status", &scratch));
    buf_str(out, ", ");
    put_rate(out, t, &t->all, number_of(status, "calls"));
    buf_printf(out,
               " calls/s, %" PRIu64 " in flight, %" PRIu64 " queued, %" PRIu64
               " waiting for approval, %" PRIu64 " sessions\n\n",
               number_of(status, "in_flight"), number_of(status, "queued"),
               number_of(status, "approvals"), number_of(status, "sessions"));
    t->all.calls = number_of(status, "calls");
}

static void put_table(struct buf *out, struct top *t, struct span status)
{
    struct grid grid = {.columns = COUNT_OF(titles)};
    struct json_iter it = json_iter(json_get(status, "servers").value);
    struct span pages = json_get(status, "browser").value;

    put_head(out, t, status);
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        grid_add(&grid, span_str(titles[i]));
    while (json_next(&it)) {
        BUF_SCOPED name = {0}, state = {0};
        add_row(t, &grid, daemon_text(it.value, "name", &name),
                daemon_text(it.value, "state", &state), it.value);
    }
    if (number_of(pages, "sessions") || number_of(pages, "calls"))
        add_row(t, &grid, SPAN(BROWSER_TOLD_AS), SPAN_EMPTY, pages);
    grid_put(out, &grid);
}

/* --- readings --- */

static void forget(struct top *t)
{
    size_t at = 0;
    struct span name;
    void *seen;

    while (map_next(&t->seen, &at, &name, &seen))
        mem_free(seen);
    map_fini(&t->seen);
    t->seen = (struct map){0};
    t->begun = false;
}

/* Forgets the last reading if it was of another daemon, whose numbers began at 0. */
static void note_daemon(struct top *t, struct span status)
{
    uint64_t pid = number_of(status, "pid"), uptime = number_of(status, "uptime_s");

    if (pid != t->pid || uptime < t->uptime)
        forget(t);
    t->pid = pid;
    t->uptime = uptime;
}

/* Writes the table; rates are those since the last reading. */
static void read_status(struct top *t, struct buf *table, struct span status)
{
    uint64_t now = loop_now(daemon_loop(t->d));

    note_daemon(t, status);
    t->elapsed = now - t->at;
    put_table(table, t, status);
    t->at = now;
    t->begun = true;
}

/* Errors of the first reading are printed before anything is drawn. */
static int first_reading(struct top *t, struct buf *table)
{
    BUF_SCOPED answer = {0};
    int status = 0;

    bool fine = daemon_fetch(t->d, "/status", SPAN_EMPTY, &status, &answer) == 0 &&
                daemon_agreed(t->d, status, buf_view(&answer));
    if (fine)
        read_status(t, table, buf_view(&answer));
    return fine ? CMD_FINE : CMD_FAILED;
}

static int next_reading(struct top *t, bool first)
{
    BUF_SCOPED answer = {0}, table = {0};
    int status = 0, code = daemon_try(t->d, "/status", &status, &answer);

    if (!code && status == 200)
        read_status(t, &table, buf_view(&answer));
    else if (t->screen)
        buf_str(&table, "The daemon is gone; waiting for the next.\n");
    if (daemon_is_over(t->d))
        return CMD_FINE;
    if (t->screen) {
        screen_draw(t->screen, buf_view(&table));
    } else if (table.n) {
        struct buf out = {0};
        buf_str(&out, first ? "" : "\n");
        buf_span(&out, buf_view(&table));
        cmd_print(&out);
    } else {
        cmd_error(t->args->command, "the daemon is gone");
        return CMD_FAILED;
    }
    return CMD_FINE;
}

static void on_quit(void *arg)
{
    daemon_leave(arg);
}

static int watch(struct top *t)
{
    BUF_SCOPED table = {0};

    int code = first_reading(t, &table);
    if (code == CMD_FINE) {
        daemon_mind_signals(t->d);
        t->screen = screen_open(daemon_loop(t->d), on_quit, t->d);
    }
    /* A screen shows a table without rates at once, instead of staying empty for an interval. */
    if (t->screen)
        screen_draw(t->screen, buf_view(&table));
    for (uint64_t n = 0; code == CMD_FINE && (!t->rounds || n < t->rounds) && !ferror(stdout);
         n++) {
        if (!daemon_pause(t->d, t->interval))
            break;
        code = next_reading(t, n == 0);
    }
    screen_close(t->screen);
    return code;
}

/* --- the command line --- */

static int take_option(struct top *t, int id, const char *value)
{
    const char *wrong = NULL;
    char *end;

    if (id == 'n') {
        t->rounds = strtoull(value, &end, 10);
        if (*value < '1' || *value > '9' || *end)
            wrong = "expected a number, 1 or more";
    } else {
        wrong = units_read_duration(span_str(value), &t->interval);
        if (!wrong && (t->interval < INTERVAL_MIN || t->interval > INTERVAL_MAX))
            wrong = "expected 100ms to 1h";
    }
    if (wrong)
        cmd_error(t->args->command, "'%s': %s", value, wrong);
    return wrong ? CMD_USAGE : CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct top t = {.args = &a, .interval = INTERVAL_MS};
    int id;

    while ((id = args_next(&a)) > 0)
        if (take_option(&t, id, a.value))
            return CMD_USAGE;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    t.d = daemon_find(&a);
    if (!t.d)
        return CMD_FAILED;
    int code = watch(&t);
    forget(&t);
    daemon_free(t.d);
    return code;
}

static const struct cmd_option options[] = {
    {"interval", OPT_INTERVAL, "TIME", "how long between two readings (1s)"},
    {"rounds", 'n', "ROUNDS", "end after so many"},
    ARGS_OPTION_CONFIG,
    {NULL}};

const struct command command_top = {
    .name = "top",
    .summary = "Watch what the servers of the running daemon are doing",
    .usage = "",
    .about =
        "A table that is drawn again at each reading, until q or Ctrl-C; when the output is no\n"
        "terminal, a table for each reading. Rates are those between two readings. Errors\n"
        "are counted since the daemon was started: calls that ended with an error, were\n"
        "ended by the daemon, or gave a result that says it is one. P50 and P95 say within\n"
        "which time half of the calls ended, and 95 of 100: of those since the last reading,\n"
        "or of the last ones before it.",
    .options = options,
    .run = run,
};
