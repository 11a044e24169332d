/* The command `rialto approvals`: lists the calls and tools that the daemon holds, and approves or
 * rejects one. Called through the table of commands (cmd/table.c). */
#include "base/utf8.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "wire/json.h"

/* All arguments, or their beginning with a note on how to see the rest. The daemon has escaped
 * invisible characters. */
static void add_arguments(struct grid *grid, struct span arguments)
{
    enum { ROOM_FOR_NOTE = 60 };
    struct span shown = span_cut(arguments, 0, GRID_MAX_CELL - ROOM_FOR_NOTE);
    BUF_SCOPED cell = {0};

    if (arguments.n <= GRID_MAX_CELL) {
        grid_add(grid, arguments);
        return;
    }
    while (shown.n && utf8_tail((unsigned char)arguments.p[shown.n]))
        shown.n--;
    buf_printf(&cell, "(%zu of %zu bytes; --json shows all) " SPAN_FMT "...", shown.n, arguments.n,
               SPAN_ARG(shown));
    grid_add(grid, buf_view(&cell));
}

/* Tools that are new or have changed since they were approved, with the lines that differ. */
static void put_held_tools(struct buf *out, struct span list)
{
    struct json_iter it = json_iter(list);

    while (json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct json_iter lines = json_iter(json_get(it.value, "difference").value);
        if (json_get(it.value, "change").type == JSON_NONE)
            continue;
        buf_printf(out, "%s", out->n ? "\n" : "");
        cmd_put_plain(out, daemon_text(it.value, "id", &scratch));
        buf_str(out, ": the tool '");
        cmd_put_plain(out, daemon_text(it.value, "tool", &scratch));
        buf_str(out, "' of server '");
        cmd_put_plain(out, daemon_text(it.value, "server", &scratch));
        buf_str(out, json_string_is(json_get(it.value, "change").value, SPAN("new"))
                         ? "' is new\n"
                         : "' has changed since it was approved\n");
        while (json_next(&lines)) {
            buf_str(out, "    ");
            cmd_put_plain(out, json_text(lines.value, &scratch));
            buf_char(out, '\n');
        }
    }
}

static void put_titles(struct grid *grid)
{
    static const char *const titles[] = {"ID",    "SERVER",     "TOOL",
                                         "ASKED", "EXPIRES IN", "ARGUMENTS"};

    grid->columns = sizeof titles / sizeof titles[0];
    for (size_t i = 0; i < grid->columns; i++)
        grid_add(grid, span_str(titles[i]));
}

static void put_held(struct buf *out, struct span list)
{
    struct grid grid = {0};
    struct json_iter it = json_iter(list);

    while (json_next(&it)) {
        if (json_get(it.value, "change").type != JSON_NONE)
            continue;
        if (!grid.n)
            put_titles(&grid);
        BUF_SCOPED scratch = {0}, left = {0};
        int64_t ms = 0;
        static const char *const texts[] = {"id", "server", "tool", "asked"};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            grid_add(&grid, daemon_text(it.value, texts[i], &scratch));
        (void)json_int(json_get(it.value, "refused_in_ms").value, &ms);
        buf_printf(&left, "%llds", (long long)(ms / 1000));
        grid_add(&grid, buf_view(&left));
        add_arguments(&grid, json_get(it.value, "arguments").value);
    }
    if (grid.n)
        grid_put(out, &grid);
    put_held_tools(out, list);
}

static int list_held(struct daemon *d, const struct args *a)
{
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (daemon_fetch(d, "/api/approvals", SPAN_EMPTY, &status, &answer))
        return CMD_FAILED;
    struct json_iter any = json_iter(buf_view(&answer));
    if (a->json)
        buf_span(&out, buf_view(&answer));
    else if (json_next(&any))
        put_held(&out, buf_view(&answer));
    else
        buf_str(&out, "Nothing waits for approval.\n");
    cmd_print(&out);
    return CMD_FINE;
}

static int decide(struct daemon *d, const struct args *a, const char *id, bool approve)
{
    BUF_SCOPED answer = {0}, scratch = {0}, path = {0};
    struct buf out = {0};
    int status;

    buf_printf(&path, "/api/approvals/%s", id);
    int code = daemon_fetch(d, buf_cstr(&path),
                            approve ? SPAN("{\"approved\":true}") : SPAN("{\"approved\":false}"),
                            &status, &answer);
    if (code)
        return CMD_FAILED;
    if (status == 200) {
        if (a->json)
            buf_span(&out, buf_view(&answer));
        else
            buf_printf(&out, "%s %s was %s.\n", *id == 't' ? "Tool" : "Call", id,
                       approve ? "approved" : "refused");
        cmd_print(&out);
    } else {
        cmd_error(a->command, "%s", daemon_cstr(buf_view(&answer), "error", &scratch));
        cmd_hint("%s", daemon_cstr(buf_view(&answer), "hint", &scratch));
    }
    return status == 200 ? CMD_FINE : CMD_FAILED;
}

/* The id of a call ("12") or of a tool ("t3")? */
static bool is_id(const char *text)
{
    text += *text == 't';
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* 0: list, 1: approve, -1: reject; -2: the command line was wrong, and a message is printed. */
static int decision_of(const struct args *a)
{
    bool approve = a->rest_n && strcmp(a->rest[0], "approve") == 0;
    bool reject = a->rest_n && strcmp(a->rest[0], "reject") == 0;

    if (!a->rest_n)
        return 0;
    if ((approve || reject) && a->rest_n == 2 && is_id(a->rest[1]))
        return approve ? 1 : -1;
    if (approve || reject)
        cmd_error(a->command, "which one? Give its ID");
    else
        cmd_error(a->command, "unexpected argument '%s'", a->rest[0]);
    cmd_hint("usage: rialto approvals [approve|reject ID]");
    return -2;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    int decision = decision_of(&a);
    if (decision == -2)
        return CMD_USAGE;
    struct daemon *d = daemon_find(&a);
    if (!d)
        return CMD_FAILED;
    int code = decision ? decide(d, &a, a.rest[1], decision > 0) : list_held(d, &a);
    daemon_free(d);
    return code;
}

static const struct cmd_option options[] = {ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, {NULL}};

const struct command command_approvals = {
    .name = "approvals",
    .summary = "List, approve or reject the calls and tools that wait for a person's word",
    .usage = "[approve|reject ID]",
    .about =
        "Tools named by 'approve' in the configuration run only after somebody has allowed the\n"
        "call. Whose word counts, the client's or yours, is what 'approve_by' says. With\n"
        "'lock.on_change: ask' tools that are not as in mcp.lock wait as well: what differs is\n"
        "shown, and approving one writes it into mcp.lock.",
    .options = options,
    .run = run,
};
