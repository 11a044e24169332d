/* The command `rialto calls`: lists the daemon's recorded calls, shows one in full, or prints each
 * as it ends. Called through the table of commands (cmd/table.c). */
#include "base/ascii.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "cmd/listing.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Columns of arguments or results, and of a story, when the output is no terminal. */
enum { LINE_MAX_SHOWN = 200, STORY_WIDTH = 80 };
enum { OPT_SERVER = ARGS_OWN, OPT_FAILED };
enum { SHOWN = 20, SHOWN_MAX = 1000, LOOK_MS = 400 };

/* The parsed command line. */
struct calls_options {
    const char *server;
    const char *id;
    bool failed, follow;
    uint64_t n;
};

/* --- one call --- */

/* Control characters of peers do not reach the terminal: they are escaped in JSON, and text that
 * was cut is shown as the JSON string in the answer. */
static void put_part(struct buf *out, const char *title, struct span call, const char *key)
{
    struct json_slot part = json_get(call, key);

    if (part.type == JSON_NONE || part.type == JSON_NULL)
        return;
    buf_printf(out, "\n%s%s:\n", title,
               json_get(json_get(call, "cut").value, key).type == JSON_TRUE ? " (its beginning)"
                                                                            : "");
    json_out_pretty(out, part.value);
    buf_char(out, '\n');
}

/* The label of the party with this id. */
static void put_party(struct buf *out, struct span call, struct span id)
{
    struct json_iter it = json_iter(json_get(call, "parties").value);
    BUF_SCOPED scratch = {0};

    while (json_next(&it))
        if (span_eq(json_get(it.value, "id").value, id)) {
            cmd_put_plain(out, daemon_text(it.value, "label", &scratch));
            return;
        }
}

/* "    12 ms  claude-code 2.1 -> Rialto: tools/call add" */
static void put_leg(struct buf *out, struct span call, struct span leg, bool with_body)
{
    struct span from = json_get(leg, "from").value, to = json_get(leg, "to").value;
    struct json_slot body = json_get(leg, "body");
    size_t width = listing_width() < LINE_MAX_SHOWN ? listing_width() : STORY_WIDTH;
    BUF_SCOPED ms = {0}, scratch = {0}, line = {0}, more = {0};

    buf_span(&ms, json_get(leg, "ms").value);
    buf_printf(out, "%7s ms  ", buf_cstr(&ms));
    put_party(&line, call, from);
    if (!span_eq(from, to)) {
        buf_str(&line, " -> ");
        put_party(&line, call, to);
    }
    buf_str(&line, ": ");
    cmd_put_plain(&line, daemon_text(leg, "what", &scratch));
    listing_put_line(out, buf_view(&line), width - 12);
    buf_char(out, '\n');
    if (!with_body || body.type == JSON_NONE || body.type == JSON_NULL)
        return;
    buf_str(out, json_get(leg, "cut").type == JSON_TRUE ? "            (its beginning) "
                                                        : "            ");
    json_one_line(&more, body.value);
    listing_put_line(out, buf_view(&more), width - 28);
    buf_char(out, '\n');
}

/* A message that is passed on keeps its body, which is shown only once. */
static void put_story(struct buf *out, struct span call)
{
    struct json_iter it = json_iter(json_get(call, "story").value);
    struct span last = SPAN_EMPTY;

    buf_str(out, "\nstory:\n");
    while (json_next(&it)) {
        struct span body = json_get(it.value, "body").value;
        put_leg(out, call, it.value, !span_eq(body, last));
        last = body;
    }
}

static void put_call(struct buf *out, struct span call)
{
    static const char *const rows[][2] = {{"call", "id"},           {"at", "at"},
                                          {"token", "token"},       {"session", "session"},
                                          {"server", "server"},     {"operation", "operation"},
                                          {"name", "name"},         {"state", "state"},
                                          {"error", "error"},       {"approved", "approved_by"},
                                          {"refused", "refused_by"}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED scratch = {0};
        struct span text = daemon_text(call, rows[i][1], &scratch);
        if (text.n) {
            buf_printf(out, "%-10s ", rows[i][0]);
            cmd_put_plain(out, text);
            buf_char(out, '\n');
        }
    }
    buf_printf(out, "%-10s " SPAN_FMT " ms\n", "took",
               SPAN_ARG(json_get(call, "duration_ms").value));
    put_story(out, call);
    put_part(out, "arguments", call, "arguments");
    put_part(out, "result", call, "result");
}

/* --- a list of calls --- */

/* "2026-02-18T06:30:24.017Z" -> "07:30:24", in local time */
static void put_time(struct buf *out, struct span when)
{
    struct tm parts = {0};
    BUF_SCOPED text = {0};
    char local[16];

    buf_span(&text, when);
    if (strptime(buf_cstr(&text), "%Y-%m-%dT%H:%M:%S", &parts)) {
        time_t seconds = timegm(&parts);
        localtime_r(&seconds, &parts);
        strftime(local, sizeof local, "%H:%M:%S", &parts);
        buf_str(out, local);
    }
}

static void add_call(struct grid *grid, struct span call)
{
    static const char *const texts[] = {"server", "name", "state"};
    BUF_SCOPED scratch = {0}, cell = {0};

    grid_add(grid, daemon_text(call, "id", &scratch));
    put_time(&cell, daemon_text(call, "at", &scratch));
    grid_add(grid, buf_view(&cell));
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct span text = daemon_text(call, texts[i], &scratch);
        grid_add_in(grid, i == COUNT_OF(texts) - 1 ? colour_of(text) : COLOUR_PLAIN, text);
    }
    buf_reset(&cell, 0);
    buf_printf(&cell, SPAN_FMT " ms", SPAN_ARG(json_get(call, "duration_ms").value));
    grid_add(grid, buf_view(&cell));
    grid_add(grid, daemon_text(call, "error", &scratch));
}

/* Fills `calls` from the list, newest first; returns how many. */
static size_t collect(struct span list, struct span *calls, size_t max)
{
    struct json_iter it = json_iter(list);
    size_t n = 0;

    while (n < max && json_next(&it))
        calls[n++] = it.value;
    return n;
}

static void put_calls(struct buf *out, const struct span *calls, size_t n)
{
    static const char *const titles[] = {"ID", "TIME", "SERVER", "NAME", "STATE", "TOOK", "ERROR"};
    struct grid grid = {.columns = COUNT_OF(titles)};

    for (size_t i = 0; i < COUNT_OF(titles); i++)
        grid_add(&grid, span_str(titles[i]));
    for (size_t i = n; i > 0; i--)
        add_call(&grid, calls[i - 1]);
    grid_put(out, &grid);
}

static void put_query(struct buf *path, const struct calls_options *o, uint64_t limit)
{
    buf_printf(path, "/api/calls?limit=%" PRIu64 "%s", limit, o->failed ? "&failed=1" : "");
    if (!o->server)
        return;
    buf_str(path, "&server=");
    daemon_put_value(path, o->server);
}

/* --- asking the daemon --- */

static int show(struct daemon *d, const struct args *a, const struct calls_options *o)
{
    BUF_SCOPED path = {0}, answer = {0};
    struct buf out = {0};
    int status = 0;

    if (o->id)
        buf_printf(&path, "/api/calls/%s", o->id);
    else
        put_query(&path, o, o->n);
    bool fine = daemon_fetch(d, buf_cstr(&path), SPAN_EMPTY, &status, &answer) == 0 &&
                daemon_agreed(d, status, buf_view(&answer));
    struct span *calls = MEM_ARRAY(struct span, SHOWN_MAX);
    size_t n = fine && !o->id ? collect(buf_view(&answer), calls, SHOWN_MAX) : 0;
    if (fine && a->json)
        buf_span(&out, buf_view(&answer));
    else if (fine && o->id)
        put_call(&out, buf_view(&answer));
    else if (n)
        put_calls(&out, calls, n);
    else if (fine)
        buf_str(&out, "No such call is recorded.\n");
    cmd_print(&out);
    mem_free(calls);
    return fine ? CMD_FINE : CMD_FAILED;
}

/* --- following --- */

static int64_t id_of(struct span call)
{
    BUF_SCOPED scratch = {0};
    int64_t id = 0;

    (void)json_int(daemon_text(call, "id", &scratch), &id);
    return id;
}

static bool has_ended(struct span call)
{
    struct json_slot state = json_get(call, "state");

    return !json_string_is(state.value, SPAN("running")) &&
           !json_string_is(state.value, SPAN("waiting"));
}

/* The calls seen so far. */
struct calls_follow {
    bool begun;
    int64_t last;            /* the newest call that was seen */
    char at[32];             /* when it began */
    int64_t open[SHOWN_MAX]; /* calls that were seen and had not ended */
    size_t n_open;
};

static bool was_open(const struct calls_follow *f, int64_t id)
{
    for (size_t i = 0; i < f->n_open; i++)
        if (f->open[i] == id)
            return true;
    return false;
}

static void note(struct calls_follow *f, struct span call)
{
    BUF_SCOPED scratch = {0};

    f->last = id_of(call);
    snprintf(f->at, sizeof f->at, "%s", daemon_cstr(call, "at", &scratch));
}

/* Is it another daemon that answers, which numbers its calls from 1 again? `calls` has the newest
 * one first. */
static bool is_another(const struct calls_follow *f, const struct span *calls, size_t n)
{
    for (size_t i = 0; i < n && f->last; i++) {
        int64_t id = id_of(calls[i]);
        if (id == f->last)
            return !json_string_is(json_get(calls[i], "at").value, span_str(f->at));
        if (id < f->last)
            return i == 0;
    }
    return false;
}

/* "       arguments {"path":"/x"}", as much as fits on a line. */
static void put_line(struct buf *out, const char *title, struct span call, const char *key)
{
    struct json_slot part = json_get(call, key);
    size_t width = listing_width();
    BUF_SCOPED line = {0};

    if (part.type == JSON_NONE || part.type == JSON_NULL)
        return;
    json_one_line(&line, part.value);
    buf_printf(out, "        %-9s ", title);
    listing_put_line(out, buf_view(&line), width < LINE_MAX_SHOWN ? width - 18 : LINE_MAX_SHOWN);
    buf_char(out, '\n');
}

/* The arguments and the result of a call, a line each; nothing if it is not recorded any more. */
static void put_carried(struct buf *out, struct daemon *d, int64_t id)
{
    BUF_SCOPED path = {0}, answer = {0};
    int status = 0;

    buf_printf(&path, "/api/calls/%" PRId64, id);
    if (daemon_try(d, buf_cstr(&path), &status, &answer) || status != 200)
        return;
    put_line(out, "arguments", buf_view(&answer), "arguments");
    put_line(out, "result", buf_view(&answer), "result");
}

/* Each call that has ended since the last time; the first time only the last `past` calls. */
static void put_news(struct buf *out, struct calls_follow *f, struct span list, uint64_t past,
                     const struct args *a, struct daemon *d)
{
    struct span *calls = MEM_ARRAY(struct span, SHOWN_MAX);
    size_t n = collect(list, calls, SHOWN_MAX), n_open = 0;

    if (is_another(f, calls, n)) {
        cmd_error(a->command, "the daemon was started again");
        *f = (struct calls_follow){.begun = true};
    }
    if (!f->begun && n > past)
        note(f, calls[past]);
    f->begun = true;
    struct calls_follow before = *f;

    for (size_t i = n; i > 0; i--) {
        struct span call = calls[i - 1];
        int64_t id = id_of(call);
        if (id > f->last)
            note(f, call);
        if (!has_ended(call)) {
            f->open[n_open++] = id;
        } else if (id > before.last || was_open(&before, id)) {
            struct grid row = {.columns = 7, .untitled = true, .width = {6, 8, 12, 24, 7, 9}};
            if (a->json) {
                buf_span(out, call);
                buf_char(out, '\n');
            } else {
                add_call(&row, call);
                grid_put(out, &row);
                put_carried(out, d, id);
            }
        }
    }
    f->n_open = n_open;
    mem_free(calls);
}

static int follow(struct daemon *d, const struct args *a, const struct calls_options *o)
{
    struct calls_follow *f = MEM_NEW(struct calls_follow);
    BUF_SCOPED path = {0};
    bool lost = false;
    int code = CMD_FINE;

    put_query(&path, o, SHOWN_MAX);
    daemon_mind_signals(d);
    do {
        struct buf answer = {0}, out = {0};
        int status = 0, failed = daemon_try(d, buf_cstr(&path), &status, &answer);
        if (!failed && !daemon_agreed(d, status, buf_view(&answer))) {
            code = CMD_FAILED;
            buf_fini(&answer);
            break;
        }
        if (failed && !lost && !daemon_is_over(d)) {
            cmd_error(a->command, "the daemon is gone; waiting for it");
            *f = (struct calls_follow){.begun = true}; /* the next daemon numbers calls from 1 */
        }
        lost = failed;
        if (!failed)
            put_news(&out, f, buf_view(&answer), o->n, a, d);
        cmd_print(&out);
        fflush(stdout);
        buf_fini(&answer);
    } while (daemon_pause(d, LOOK_MS) && !ferror(stdout));
    mem_free(f);
    return code;
}

/* --- the command line --- */

static bool read_count(const struct args *a, struct calls_options *o)
{
    char *end;

    o->n = strtoull(a->value, &end, 10);
    if (ascii_is_digit(*a->value) && !*end && o->n <= SHOWN_MAX)
        return true;
    cmd_error(a->command, "-n takes a number up to %d, not '%s'", SHOWN_MAX, a->value);
    return false;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct calls_options o = {.n = SHOWN};
    int id;

    while ((id = args_next(&a)) > 0) {
        o.server = id == OPT_SERVER ? a.value : o.server;
        o.failed |= id == OPT_FAILED;
        o.follow |= id == 'f';
        if (id == 'n' && !read_count(&a, &o))
            return CMD_USAGE;
    }
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    o.id = a.rest_n ? a.rest[0] : self == &command_trace ? "" : NULL;
    if (o.id && (!*o.id || strspn(o.id, "0123456789") != strlen(o.id))) {
        cmd_error(self, "a call is known by its number, not '%s'", o.id);
        cmd_hint("rialto calls lists them; --server NAME those of one server");
        return CMD_USAGE;
    }
    struct daemon *d = daemon_find(&a);
    if (!d)
        return CMD_FAILED;
    int code = o.follow && !o.id ? follow(d, &a, &o) : show(d, &a, &o);
    daemon_free(d);
    return code;
}

static const struct cmd_option options[] = {
    {"server", OPT_SERVER, "NAME", "only those of this server"},
    {"failed", OPT_FAILED, NULL, "only those that went wrong"},
    {"lines", 'n', "N", "so many at most (20)"},
    {"follow", 'f', NULL,
     "show each call when it has ended, with its arguments and result, until interrupted"},
    ARGS_OPTION_CONFIG,
    ARGS_OPTION_JSON,
    {NULL}};

const struct command command_calls = {
    .name = "calls",
    .summary = "Show the last calls that went through the daemon, or all about one of them",
    .usage = "[ID]",
    .about = "The daemon keeps its last calls in memory ('record' in the configuration says how\n"
             "much), with arguments, results and errors. Known secrets are left out when they\n"
             "are shown.\n"
             "\n"
             "With an ID: the story of that call, message by message, between the agent, Rialto\n"
             "and the server, with questions, answers, approvals and retries; also while it runs.",
    .options = options,
    .run = run,
};

static const struct cmd_option trace_options[] = {ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, {NULL}};

const struct command command_trace = {
    .name = "trace",
    .summary = "Show the story of a call: the same as 'rialto calls ID'",
    .usage = "ID",
    .about = "'rialto calls' lists the calls with their IDs.",
    .options = trace_options,
    .run = run,
};
