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

/* A server as the table shows it. */
struct top_row {
    char *name, *state;
    double rate; /* calls in a second; negative: not known yet */
    uint64_t in_flight, queued, errors;
    const struct top_seen *seen;
    size_t place; /* in the configuration */
};

enum { ROWS_MAX = 1024, FILTER_MAX = 40 };

/* What the keys have asked for. */
struct top_state {
    size_t order;      /* index in `orders` */
    struct buf filter; /* only servers whose name has this */
    struct buf chosen; /* the name of a server, or empty */
    bool typing;       /* letters go to the filter */
    bool asking;       /* the user is asked whether to restart the chosen server */
    bool restart, log; /* restart the chosen server; show its log */
    char said[80];     /* the result of the last key */
};

struct top {
    struct daemon *d;
    const struct args *args;
    struct screen *screen; /* NULL: tables are printed one after the other */
    uint64_t interval, rounds;
    struct top_state state;
    /* the last reading */
    struct buf head;
    struct top_row rows[ROWS_MAX];
    size_t n_rows;
    struct map seen; /* name -> struct top_seen */
    struct top_seen all;
    uint64_t pid, uptime; /* of the daemon */
    uint64_t at, elapsed;
    bool begun;
    bool gone; /* there was no answer */
};

/* --- numbers --- */

/* Calls in a second since the last reading; negative: there is none to compare with. */
static double rate_of(const struct top *t, const struct top_seen *before, uint64_t now)
{
    if (!t->begun || !t->elapsed || !before || now < before->calls)
        return -1;
    return (double)(now - before->calls) * 1000 / (double)t->elapsed;
}

static void put_rate(struct buf *out, double rate)
{
    if (rate < 0)
        buf_char(out, '-');
    else
        buf_printf(out, "%.1f", rate);
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

static void add_row(struct grid *grid, const struct top_row *r, bool chosen)
{
    BUF_SCOPED rate = {0};

    put_rate(&rate, r->rate);
    grid_add_in(grid, chosen ? COLOUR_TITLE : COLOUR_PLAIN, span_str(r->name));
    grid_add_in(grid, colour_of(span_str(r->state)), span_str(r->state));
    grid_add(grid, buf_view(&rate));
    add_number(grid, r->in_flight);
    add_number(grid, r->queued);
    add_number(grid, r->errors);
    grid_add(grid, span_str(r->seen->p50));
    grid_add(grid, span_str(r->seen->p95));
}

static void forget_rows(struct top *t)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        mem_free(t->rows[i].name);
        mem_free(t->rows[i].state);
    }
    t->n_rows = 0;
}

static void take_row(struct top *t, struct span name, struct span state, struct span numbers)
{
    uint64_t calls = json_count(numbers, "calls");
    bool is_new;
    struct top_seen *s = seen_of(t, name, &is_new);

    if (t->n_rows == ROWS_MAX)
        return;
    t->rows[t->n_rows] =
        (struct top_row){.name = mem_span(name),
                         .state = mem_span(state),
                         .rate = rate_of(t, is_new ? NULL : s, calls),
                         .in_flight = json_count(numbers, "in_flight"),
                         .queued = json_count(numbers, "queued"),
                         .errors = json_count(numbers, "errors") + json_count(numbers, "failed") +
                                   json_count(numbers, "tool_errors"),
                         .seen = s,
                         .place = t->n_rows};
    t->n_rows++;
    s->calls = calls;
    take_durations(s, json_get(numbers, "durations").value);
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
    put_rate(out, rate_of(t, &t->all, json_count(status, "calls")));
    buf_printf(out,
               " calls/s, %" PRIu64 " in flight, %" PRIu64 " queued, %" PRIu64
               " waiting for approval, %" PRIu64 " sessions\n",
               json_count(status, "in_flight"), json_count(status, "queued"),
               json_count(status, "approvals"), json_count(status, "sessions"));
    t->all.calls = json_count(status, "calls");
}

/* --- the order of the table --- */

static int by_place(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    return (x->place > y->place) - (x->place < y->place);
}

static int by_name(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int by_rate(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    return x->rate != y->rate ? (x->rate < y->rate) - (x->rate > y->rate) : by_place(a, b);
}

static int by_flight(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    uint64_t m = x->in_flight + x->queued, n = y->in_flight + y->queued;

    return m != n ? (m < n) - (m > n) : by_place(a, b);
}

static int by_errors(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    return x->errors != y->errors ? (x->errors < y->errors) - (x->errors > y->errors)
                                  : by_place(a, b);
}

static const struct {
    const char *name;
    int (*compare)(const void *a, const void *b);
} orders[] = {{"as configured", by_place},
              {"name", by_name},
              {"calls", by_rate},
              {"in flight", by_flight},
              {"errors", by_errors}};

static bool is_shown(const struct top *t, const struct top_row *r)
{
    struct span filter = buf_view(&t->state.filter);

    return !filter.n || memmem(r->name, strlen(r->name), filter.p, filter.n);
}

static bool is_chosen(const struct top *t, const struct top_row *r)
{
    return t->state.chosen.n && span_is(buf_view(&t->state.chosen), r->name);
}

/* --- drawing --- */

static void put_keys(struct buf *out, const struct top *t)
{
    const struct top_state *o = &t->state;
    struct span filter = buf_view(&o->filter), chosen = buf_view(&o->chosen);
    BUF_SCOPED line = {0};

    if (o->typing)
        buf_printf(&line, "show only: " SPAN_FMT "_  (Enter, Esc)", SPAN_ARG(filter));
    else if (o->asking)
        buf_printf(&line, "restart " SPAN_FMT "? y/n", SPAN_ARG(chosen));
    else
        buf_printf(&line,
                   "q quit  s sort: %s  / filter%s" SPAN_FMT "  up/down choose%s" SPAN_FMT
                   "  r restart  l log%s%s",
                   orders[o->order].name, filter.n ? ": " : "", SPAN_ARG(filter),
                   chosen.n ? ": " : "", SPAN_ARG(chosen), o->said[0] ? "  " : "", o->said);
    colour_put(out, COLOUR_FAINT, buf_view(&line));
    buf_char(out, '\n');
}

static void put_table(struct buf *out, struct top *t)
{
    struct grid grid = {.columns = COUNT_OF(titles)};

    buf_span(out, buf_view(&t->head));
    if (t->screen)
        put_keys(out, t);
    buf_char(out, '\n');
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        grid_add(&grid, span_str(titles[i]));
    qsort(t->rows, t->n_rows, sizeof t->rows[0], orders[t->state.order].compare);
    for (size_t i = 0; i < t->n_rows; i++)
        if (is_shown(t, &t->rows[i]))
            add_row(&grid, &t->rows[i], is_chosen(t, &t->rows[i]));
    grid_put(out, &grid);
}

/* The last log lines of the chosen server, shown instead of the table. */
static void put_log(struct buf *out, struct top *t)
{
    BUF_SCOPED path = {0}, answer = {0};
    size_t rows = screen_rows();
    int status = 0;

    buf_printf(&path, "/api/logs?limit=%zu&server=", rows > 3 ? rows - 3 : 1);
    daemon_put_value(&path, buf_cstr(&t->state.chosen));
    buf_printf(out, "The log of %s (l: back)\n\n", buf_cstr(&t->state.chosen));
    if (daemon_try(t->d, buf_cstr(&path), &status, &answer))
        return;
    if (status != 200)
        buf_str(out, "It is not kept: set log.keep in the configuration.\n");
    for (struct json_iter it = json_iter(json_get(buf_view(&answer), "lines").value);
         status == 200 && json_next(&it);) {
        BUF_SCOPED scratch = {0};
        cmd_put_plain(out, daemon_text(it.value, "text", &scratch));
        buf_char(out, '\n');
    }
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

/* Forgets the last reading if another daemon answers now, whose numbers begin at 0. */
static void note_daemon(struct top *t, struct span status)
{
    uint64_t pid = json_count(status, "pid"), uptime = json_count(status, "uptime_s");

    if (pid != t->pid || uptime < t->uptime)
        forget(t);
    t->pid = pid;
    t->uptime = uptime;
}

/* Keeps the numbers for the table; rates are those since the last reading. */
static void read_status(struct top *t, struct span status)
{
    uint64_t now = loop_now(daemon_loop(t->d));
    struct json_iter it = json_iter(json_get(status, "servers").value);
    struct span pages = json_get(status, "browser").value;

    note_daemon(t, status);
    t->elapsed = now - t->at;
    buf_reset(&t->head, 256);
    put_head(&t->head, t, status);
    forget_rows(t);
    while (json_next(&it)) {
        BUF_SCOPED name = {0}, state = {0};
        take_row(t, daemon_text(it.value, "name", &name), daemon_text(it.value, "state", &state),
                 it.value);
    }
    if (json_count(pages, "sessions") || json_count(pages, "calls"))
        take_row(t, SPAN(BROWSER_TOLD_AS), SPAN_EMPTY, pages);
    t->at = now;
    t->begun = true;
}

/* Errors of the first reading are printed before anything is drawn. */
static int first_reading(struct top *t)
{
    BUF_SCOPED answer = {0};
    int status = 0;

    bool fine = daemon_fetch(t->d, "/status", SPAN_EMPTY, &status, &answer) == 0 &&
                daemon_agreed(t->d, status, buf_view(&answer));
    if (fine)
        read_status(t, buf_view(&answer));
    return fine ? CMD_FINE : CMD_FAILED;
}

static void draw(struct top *t)
{
    BUF_SCOPED text = {0};

    if (t->gone)
        buf_str(&text, "The daemon is gone; waiting for the next.\n");
    else if (t->state.log)
        put_log(&text, t);
    else
        put_table(&text, t);
    if (!daemon_is_over(t->d))
        screen_draw(t->screen, buf_view(&text));
}

static int next_reading(struct top *t, bool first)
{
    BUF_SCOPED answer = {0};
    int status = 0, code = daemon_try(t->d, "/status", &status, &answer);
    bool fine = !code && status == 200;

    if (daemon_is_over(t->d))
        return CMD_FINE;
    if (fine)
        read_status(t, buf_view(&answer));
    t->gone = !fine;
    if (t->screen) {
        draw(t);
    } else if (fine) {
        struct buf out = {0};
        buf_str(&out, first ? "" : "\n");
        put_table(&out, t);
        cmd_print(&out);
    } else {
        cmd_error(t->args->command, "the daemon is gone");
        return CMD_FAILED;
    }
    return CMD_FINE;
}

/* --- keys --- */

/* Chooses the server before or after the chosen one, among those that are shown. */
static void choose(struct top *t, int step)
{
    const struct top_row *before = NULL, *found = NULL;
    bool passed = false;

    for (size_t i = 0; i < t->n_rows && !found; i++) {
        const struct top_row *r = &t->rows[i];
        if (!is_shown(t, r))
            continue;
        if (is_chosen(t, r))
            passed = true;
        else if (passed && step > 0)
            found = r;
        if (passed && step < 0)
            found = before ? before : r;
        before = r;
    }
    if (!passed)
        for (size_t i = t->n_rows; i > 0; i--)
            found = is_shown(t, &t->rows[i - 1]) ? &t->rows[i - 1] : found;
    if (!found)
        return;
    t->state.chosen.n = 0;
    buf_str(&t->state.chosen, found->name);
}

static void type_filter(struct top_state *o, int key)
{
    if (key == SCREEN_ESCAPE)
        o->filter.n = 0;
    if (key == SCREEN_ESCAPE || key == '\n' || key == '\r')
        o->typing = false;
    else if ((key == 0x7f || key == '\b') && o->filter.n)
        o->filter.n--;
    else if (key > ' ' && key < 0x7f && o->filter.n < FILTER_MAX)
        buf_char(&o->filter, (char)key);
}

/* May be called during a request to the daemon, so wait_for_next makes further requests later. */
static void on_key(void *arg, int key)
{
    struct top *t = arg;
    struct top_state *o = &t->state;

    o->said[0] = '\0';
    if (o->typing) {
        type_filter(o, key);
    } else if (o->asking) {
        o->restart = key == 'y' || key == 'Y';
        o->asking = false;
    } else if (key == 'q' || key == 'Q') {
        daemon_leave(t->d);
    } else if (key == 's') {
        o->order = (o->order + 1) % COUNT_OF(orders);
    } else if (key == '/') {
        o->typing = true;
    } else if (key == SCREEN_UP || key == 'k' || key == SCREEN_DOWN || key == 'j') {
        choose(t, key == SCREEN_UP || key == 'k' ? -1 : 1);
    } else if (key == 'l' || (o->log && key == SCREEN_ESCAPE)) {
        o->log = !o->log && o->chosen.n;
    } else if (key == 'r') {
        o->asking = o->chosen.n > 0;
    }
    if ((key == 'l' || key == 'r') && !o->chosen.n)
        snprintf(o->said, sizeof o->said, "choose a server first");
    daemon_hurry(t->d);
}

static void restart(struct top *t)
{
    BUF_SCOPED path = {0}, answer = {0};
    int status = 0;

    t->state.restart = false;
    buf_printf(&path, "/api/servers/%s/restart", buf_cstr(&t->state.chosen));
    bool fine = daemon_fetch(t->d, buf_cstr(&path), SPAN("{}"), &status, &answer) == 0;
    snprintf(t->state.said, sizeof t->state.said, "%s",
             fine && status == 202 ? "restarted" : "not restarted");
}

/* Waits for the next reading, and does meanwhile what keys ask for. False: the command must end. */
static bool wait_for_next(struct top *t)
{
    uint64_t until = loop_now(daemon_loop(t->d)) + t->interval, now;

    while ((now = loop_now(daemon_loop(t->d))) < until) {
        if (!daemon_pause(t->d, until - now))
            return false;
        if (t->state.restart)
            restart(t);
        if (t->screen && loop_now(daemon_loop(t->d)) < until)
            draw(t);
    }
    return !daemon_is_over(t->d);
}

static int watch(struct top *t)
{
    int code = first_reading(t);

    if (code == CMD_FINE) {
        daemon_mind_signals(t->d);
        t->screen = screen_open(daemon_loop(t->d), on_key, t);
    }
    /* A screen shows a table without rates at once, instead of staying empty for an interval. */
    if (t->screen)
        draw(t);
    for (uint64_t n = 0; code == CMD_FINE && (!t->rounds || n < t->rounds) && !ferror(stdout);
         n++) {
        if (!wait_for_next(t))
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
    forget_rows(&t);
    buf_fini(&t.head);
    buf_fini(&t.state.filter);
    buf_fini(&t.state.chosen);
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
        "terminal, a table for each reading. Keys: s sorts by another column, / shows only\n"
        "servers with these letters, up and down (or k and j) choose one, r restarts it, l\n"
        "shows its log. Rates are those between two readings. Errors\n"
        "are counted since the daemon was started: calls that ended with an error, were\n"
        "ended by the daemon, or gave a result that says it is one. P50 and P95 say within\n"
        "which time half of the calls ended, and 95 of 100: of those since the last reading,\n"
        "or of the last ones before it.",
    .options = options,
    .run = run,
};
