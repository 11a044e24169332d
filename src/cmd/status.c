/* The command `rialto status`: prints the daemon's status as a table of servers, with lines for
 * pages and bus. Called through the table of commands (cmd/table.c). */
#include "admin/control.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { OPT_ALIVE = ARGS_OWN, ALIVE_WITHIN_MS = 5000 };

/* 300 -> "5m" */
static void put_span_of_time(struct buf *out, long seconds)
{
    static const struct {
        long seconds;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t unit = 0;

    while (units[unit].seconds > 1 && seconds < units[unit].seconds)
        unit++;
    buf_printf(out, "%ld%c", seconds > 0 ? seconds / units[unit].seconds : 0, units[unit].letter);
}

/* How long "2026-02-18T06:30:24Z" is ago. */
static void put_age(struct buf *out, struct span when)
{
    struct tm parts = {0};
    BUF_SCOPED text = {0};

    buf_span(&text, when);
    if (strptime(buf_cstr(&text), "%Y-%m-%dT%H:%M:%SZ", &parts))
        put_span_of_time(out, (long)(time(NULL) - timegm(&parts)));
}

/* A failing server changes its state all the time, so the time since it began to fail is shown. */
static void put_since(struct buf *out, struct span server, const char *key)
{
    BUF_SCOPED scratch = {0};
    struct span first = daemon_text(server, "failing_since", &scratch);

    put_age(out, first.n ? first : daemon_text(server, key, &scratch));
}

/* "next try in 4s: exited with 1" */
static void put_error(struct buf *out, struct span server, const char *key)
{
    BUF_SCOPED scratch = {0};
    int64_t ms;

    if (json_int(json_get(server, "next_try_ms").value, &ms)) {
        buf_str(out, "next try in ");
        put_span_of_time(out, (long)((ms + 999) / 1000));
        buf_str(out, ": ");
    }
    buf_span(out, daemon_text(server, key, &scratch));
}

static void put_text(struct buf *out, struct span server, const char *key)
{
    BUF_SCOPED scratch = {0};

    buf_span(out, daemon_text(server, key, &scratch));
}

static void put_state(struct buf *out, struct span server, const char *key)
{
    BUF_SCOPED scratch = {0};
    struct span text = daemon_text(server, key, &scratch);

    buf_span(out, span_is(text, "needs_sign_in") ? SPAN("needs sign-in") : text);
}

static void put_number(struct buf *out, struct span server, const char *key)
{
    buf_span(out, json_get(server, key).value);
}

static const struct {
    const char *title, *key;
    void (*put)(struct buf *out, struct span server, const char *key);
} columns[] = {
    {"SERVER", "name", put_text},
    {"STATE", "state", put_state},
    {"SINCE", "since", put_since},
    {"VERSION", "protocol", put_text},
    {"TOOLS", "tools", put_number},
    {"CALLS", "calls", put_number},
    {"LAST ERROR", "last_error", put_error},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_server(struct grid *grid, struct span server)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        BUF_SCOPED cell = {0};
        columns[i].put(&cell, server, columns[i].key);
        grid_add_in(grid, columns[i].put == put_state ? colour_of(buf_view(&cell)) : COLOUR_PLAIN,
                    buf_view(&cell));
    }
}

static void put_summary(struct buf *out, struct span status)
{
    BUF_SCOPED scratch = {0};

    buf_str(out, "Rialto ");
    buf_span(out, daemon_text(status, "version", &scratch));
    buf_str(out, ", pid ");
    buf_span(out, json_get(status, "pid").value);
    buf_str(out, ", up ");
    put_age(out, daemon_text(status, "started", &scratch));
    buf_str(out, ", ");
    struct span config = daemon_text(status, "config", &scratch);
    buf_span(out, config.n ? config : SPAN("without a configuration"));
    buf_str(out, ": ");
    struct span health = daemon_text(status, "status", &scratch);
    colour_put(out, colour_of(health), health);
    buf_str(out, "\n\n");
}

/* "rialto.yaml:3:5: servers.files.command: is no text" for each error of a rejected file. */
static void put_rejected(struct buf *out, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "config_errors").value);
    const char *lead =
        "\nThe configuration has changed and was not taken; all goes on as it was:\n";
    BUF_SCOPED scratch = {0};

    for (; json_next(&it); lead = "") {
        struct span file = daemon_text(it.value, "file", &scratch);
        buf_printf(out, "%s  " SPAN_FMT, lead, SPAN_ARG(file));
        if (json_get(it.value, "line").type == JSON_NUMBER)
            buf_printf(out, ":" SPAN_FMT ":" SPAN_FMT, SPAN_ARG(json_get(it.value, "line").value),
                       SPAN_ARG(json_get(it.value, "column").value));
        buf_str(out, file.n ? ": " : "");
        struct span key = daemon_text(it.value, "key", &scratch);
        buf_printf(out, SPAN_FMT "%s", SPAN_ARG(key), key.n ? ": " : "");
        cmd_put_plain(out, daemon_text(it.value, "message", &scratch));
        buf_char(out, '\n');
    }
}

/* Servers of the configuration that the daemon left out. */
static void put_left_out(struct buf *out, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "reasons").value);

    while (json_next(&it)) {
        BUF_SCOPED scratch = {0};
        if (json_string_is(json_get(it.value, "state").value, SPAN("left out"))) {
            buf_str(out, "\nLeft out: ");
            buf_span(out, daemon_text(it.value, "server", &scratch));
            buf_str(out, " (");
            buf_span(out, daemon_text(it.value, "reason", &scratch));
            buf_str(out, ")\n");
        }
    }
}

/* Servers whose lists are longer than limits.catalog. */
static void put_cut_lists(struct buf *out, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "servers").value);

    while (json_next(&it)) {
        BUF_SCOPED scratch = {0};
        if (json_get(it.value, "lists_cut").type == JSON_TRUE) {
            buf_str(out, "\nLists cut: ");
            buf_span(out, daemon_text(it.value, "name", &scratch));
            buf_str(out, " lists more than limits.catalog lets in\n");
        }
    }
}

/* A line for the web pages, if there are or were any. */
static void put_pages(struct buf *out, struct span status)
{
    struct span pages = json_get(status, "browser").value;

    if (!pages.n || (span_is(json_get(pages, "sessions").value, "0") &&
                     span_is(json_get(pages, "calls").value, "0")))
        return;
    buf_printf(out,
               "\nWeb pages: " SPAN_FMT " in " SPAN_FMT " sessions, " SPAN_FMT " tools, " SPAN_FMT
               " calls\n",
               SPAN_ARG(json_get(pages, "pages").value),
               SPAN_ARG(json_get(pages, "sessions").value),
               SPAN_ARG(json_get(pages, "tools").value), SPAN_ARG(json_get(pages, "calls").value));
}

/* A line for the bus, if there is one. */
static void put_bus(struct buf *out, struct span status)
{
    struct json_slot bus = json_get(status, "bus"), worker, proxy;
    BUF_SCOPED scratch = {0};

    if (bus.type != JSON_OBJECT)
        return;
    worker = json_get(bus.value, "worker");
    proxy = json_get(bus.value, "proxy");
    buf_str(out, "\nBus: ");
    buf_span(out, daemon_text(bus.value, "where", &scratch));
    buf_str(out, json_get(bus.value, "up").type == JSON_TRUE ? ", up" : ", not connected");
    if (worker.type == JSON_OBJECT)
        buf_printf(out, "; worker: " SPAN_FMT " calls, " SPAN_FMT " replies",
                   SPAN_ARG(json_get(worker.value, "invokes").value),
                   SPAN_ARG(json_get(worker.value, "replies").value));
    if (proxy.type == JSON_OBJECT)
        buf_printf(out, "; proxy: " SPAN_FMT " servers elsewhere",
                   SPAN_ARG(json_get(proxy.value, "servers").value));
    buf_char(out, '\n');
}

/* Tools that are new or have changed since they were approved. */
static void put_withheld(struct buf *out, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "withheld").value);
    const char *lead = "\nNot offered, for they are not as in mcp.lock: ";
    BUF_SCOPED scratch = {0};

    for (; json_next(&it); lead = ", ") {
        buf_str(out, lead);
        cmd_put_plain(out, daemon_text(it.value, "tool", &scratch));
        buf_str(out, " of ");
        cmd_put_plain(out, daemon_text(it.value, "server", &scratch));
        buf_str(out, " (");
        cmd_put_plain(out, daemon_text(it.value, "change", &scratch));
        buf_char(out, ')');
    }
    if (*lead == ',')
        buf_char(out, '\n');
}

/* Addresses that other programs have, and the file of the log. */
static void put_places(struct buf *out, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "taken").value);
    BUF_SCOPED scratch = {0};

    while (json_next(&it)) {
        buf_str(out, "\nNot served: ");
        json_unescape(out, it.value);
        buf_str(out, ", which another program has; hosts come by 'rialto stdio'\n");
    }
    struct span log = daemon_text(status, "log", &scratch);
    if (log.n)
        buf_printf(out, "\nLog: " SPAN_FMT "\n", SPAN_ARG(log));
}

static void put_status(struct buf *out, struct span status)
{
    struct grid grid = {.columns = COLUMNS};
    struct json_iter it = json_iter(json_get(status, "servers").value);
    struct span held = json_get(status, "approvals").value;

    put_summary(out, status);
    for (size_t i = 0; i < COLUMNS; i++)
        grid_add(&grid, span_str(columns[i].title));
    while (json_next(&it))
        add_server(&grid, it.value);
    grid_put(out, &grid);
    put_pages(out, status);
    put_bus(out, status);
    put_rejected(out, status);
    put_left_out(out, status);
    put_cut_lists(out, status);
    put_withheld(out, status);
    put_places(out, status);
    if (held.n && !span_is(held, "0"))
        buf_printf(out, "\nWaiting for approval: " SPAN_FMT " ('rialto approvals')\n",
                   SPAN_ARG(held));
}

static bool is_fine(struct span status)
{
    return json_string_is(json_get(status, "status").value, SPAN("ok"));
}

/* --- one daemon --- */

/* `listed`: the JSON is a list with this daemon only. */
static int show_one(const struct args *a, bool listed)
{
    struct daemon *d = daemon_find(a);
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (!d)
        return CMD_FAILED;
    int code = daemon_fetch(d, "/status", SPAN_EMPTY, &status, &answer);
    daemon_free(d);
    if (code)
        return CMD_FAILED;
    if (a->json && listed)
        buf_printf(&out, "{\"daemons\":[%s]}\n", buf_cstr(&answer));
    else if (a->json)
        buf_span(&out, buf_view(&answer));
    else
        put_status(&out, buf_view(&answer));
    cmd_print(&out);
    return is_fine(buf_view(&answer)) ? CMD_FINE : CMD_FAILED;
}

/* --- all daemons --- */

/* The daemons that have answered. */
struct found {
    const struct args *args;
    struct buf json; /* their statuses, separated by commas */
    struct buf text;
    struct buf pids; /* " 12 34 " */
    bool all_fine;
    bool silent; /* a daemon listens but does not answer */
};

static void add_daemon(struct found *f, const char *socket)
{
    struct daemon *d = daemon_at(f->args, socket);
    BUF_SCOPED answer = {0}, pid = {0};
    int status = 0;

    int code = daemon_try(d, "/status", &status, &answer);
    if (code == -ETIMEDOUT) {
        cmd_error(f->args->command, "the daemon at %s gives no answer", socket);
        cmd_hint("it runs and hangs: its log may say why");
        f->silent = true;
    } else if (code == 0 && status == 200) {
        struct span got = buf_view(&answer);
        buf_printf(&pid, " " SPAN_FMT " ", SPAN_ARG(json_get(got, "pid").value));
        /* A daemon with `control: unix:PATH` has two sockets and is found twice. */
        if (!strstr(buf_cstr(&f->pids), buf_cstr(&pid))) {
            buf_str(&f->json, f->json.n ? "," : "");
            buf_span(&f->json, span_cut(got, 0, got.n - (got.p[got.n - 1] == '\n')));
            buf_str(&f->text, f->text.n ? "\n" : "");
            put_status(&f->text, got);
            f->all_fine = f->all_fine && is_fine(got);
        }
        buf_span(&f->pids, buf_view(&pid));
    }
    daemon_free(d);
}

static int show_all(const struct args *a)
{
    struct found f = {.args = a, .all_fine = true};
    struct buf out = {0};
    char *socket;

    for (size_t i = 0; (socket = control_nth(i)); i++) {
        add_daemon(&f, socket);
        mem_free(socket);
    }
    bool any = f.json.n > 0;
    if (any && a->json)
        buf_printf(&out, "{\"daemons\":[%s]}\n", buf_cstr(&f.json));
    else
        buf_span(&out, buf_view(&f.text));
    buf_fini(&f.json);
    buf_fini(&f.text);
    buf_fini(&f.pids);
    cmd_print(&out);
    if (!any && !f.silent)
        return show_one(a, true); /* finds one elsewhere (`control`), or prints what is missing */
    return f.all_fine && !f.silent ? CMD_FINE : CMD_FAILED;
}

/* Does the user say which daemon is meant? */
static bool names_one(const struct args *a)
{
    static const char *const variables[] = {"RIALTO_CONFIG", "RIALTO_CONTROL"};

    for (size_t i = 0; i < COUNT_OF(variables); i++)
        if (span_str(getenv(variables[i])).n)
            return true;
    return a->config != NULL;
}

/* For health checks: is there a daemon that answers, however its servers are? */
static int show_alive(const struct args *a)
{
    struct daemon *d = daemon_find(a);
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (!d)
        return CMD_FAILED;
    daemon_wait_for(d, ALIVE_WITHIN_MS);
    bool answers = daemon_fetch(d, "/healthz", SPAN_EMPTY, &status, &answer) == 0 &&
                   daemon_agreed(d, status, buf_view(&answer));
    daemon_free(d);
    if (!answers)
        return CMD_FAILED;
    buf_str(&out, a->json ? "{\"alive\": true}\n" : "alive\n");
    cmd_print(&out);
    return CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool alive = false;
    int id;

    while ((id = args_next(&a)) > 0)
        alive |= id == OPT_ALIVE;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    if (alive)
        return show_alive(&a);
    return names_one(&a) ? show_one(&a, false) : show_all(&a);
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"alive", OPT_ALIVE, NULL, "only ask whether it answers, within 5 s: for health checks"},
    ARGS_OPTION_JSON,
    {NULL}};

const struct command command_status = {
    .name = "status",
    .summary = "Show how the running daemon and its servers are",
    .usage = "",
    .about =
        "Asks the daemons of this user by their control sockets: with -c that of the file, else\n"
        "all, each in a block of its own. Exits with 1 when none runs, or when one of their\n"
        "servers is down; with --alive, when none answers within 5 s.",
    .options = options,
    .run = run,
};
