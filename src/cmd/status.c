/* The command `rialto status`: prints the daemon's status as a table of servers, with lines for
 * pages and bus. Called through the table of commands (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "wire/json.h"

#include <time.h>

enum { OPT_ALIVE = ARGS_OWN, ALIVE_WITHIN_MS = 5000 };

/* "2026-02-18T06:30:24Z" -> "5m" */
static void put_age(struct buf *out, struct span when)
{
    static const struct {
        long seconds;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    struct tm parts = {0};
    BUF_SCOPED text = {0};
    size_t unit = 0;

    buf_span(&text, when);
    if (strptime(buf_cstr(&text), "%Y-%m-%dT%H:%M:%SZ", &parts)) {
        long age = (long)(time(NULL) - timegm(&parts));
        while (units[unit].seconds > 1 && age < units[unit].seconds)
            unit++;
        buf_printf(out, "%ld%c", age > 0 ? age / units[unit].seconds : 0, units[unit].letter);
    }
}

enum cell { CELL_TEXT, CELL_NUMBER, CELL_AGE };

static const struct {
    const char *title, *key;
    enum cell cell;
} columns[] = {
    {"SERVER", "name", CELL_TEXT},
    {"STATE", "state", CELL_TEXT},
    {"SINCE", "since", CELL_AGE},
    {"VERSION", "protocol", CELL_TEXT},
    {"TOOLS", "tools", CELL_NUMBER},
    {"CALLS", "calls", CELL_NUMBER},
    {"LAST ERROR", "last_error", CELL_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_server(struct grid *grid, struct span server)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        BUF_SCOPED scratch = {0}, age = {0};
        struct span text = columns[i].cell == CELL_NUMBER
                               ? json_get(server, columns[i].key).value
                               : daemon_text(server, columns[i].key, &scratch);
        if (span_is(text, "needs_sign_in"))
            text = SPAN("needs sign-in");
        if (columns[i].cell == CELL_AGE) {
            put_age(&age, text);
            text = buf_view(&age);
        }
        grid_add(grid, text);
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
    buf_span(out, daemon_text(status, "status", &scratch));
    buf_str(out, "\n\n");
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

/* Tools that are not as they were approved. */
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
    put_left_out(out, status);
    put_cut_lists(out, status);
    put_withheld(out, status);
    if (held.n && !span_is(held, "0"))
        buf_printf(out, "\nWaiting for approval: " SPAN_FMT " ('rialto approvals')\n",
                   SPAN_ARG(held));
}

static int show(struct daemon *d, const struct args *a)
{
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (daemon_fetch(d, "/status", SPAN_EMPTY, &status, &answer))
        return CMD_FAILED;
    struct span got = buf_view(&answer);
    bool fine = json_string_is(json_get(got, "status").value, SPAN("ok"));
    if (a->json)
        buf_span(&out, got);
    else
        put_status(&out, got);
    cmd_print(&out);
    return fine ? CMD_FINE : CMD_FAILED;
}

/* For health checks: is there a daemon that answers, however its servers are? */
static int show_alive(struct daemon *d, const struct args *a)
{
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    daemon_wait_for(d, ALIVE_WITHIN_MS);
    if (daemon_fetch(d, "/healthz", SPAN_EMPTY, &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
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
    struct daemon *d = daemon_find(&a);
    if (!d)
        return CMD_FAILED;
    int code = alive ? show_alive(d, &a) : show(d, &a);
    daemon_free(d);
    return code;
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
    .about = "Asks the daemon of this user by its control socket. Exits with 1 when none runs, or\n"
             "when one of its servers is down; with --alive, when none answers within 5 s.",
    .options = options,
    .run = run,
};
