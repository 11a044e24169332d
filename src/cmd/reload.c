/* The command `rialto reload`: has the daemon read its configuration and prints what changed.
 * Called through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "wire/json.h"

/* "added files, search": one such line for each kind of change. */
static void put_changes(struct buf *out, struct span report)
{
    static const struct {
        const char *key, *text;
    } rows[] = {{"added", "added"},
                {"removed", "removed"},
                {"replaced", "replaced"},
                {"adjusted", "other filters or limits for"}};
    BUF_SCOPED scratch = {0};
    size_t before = out->n;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct json_iter it = json_iter(json_get(report, rows[i].key).value);
        const char *lead = rows[i].text, *comma = " ";
        for (; json_next(&it); lead = "", comma = ", ") {
            buf_printf(out, "%s%s", lead, comma);
            buf_span(out, json_text(it.value, &scratch));
        }
        if (!*lead)
            buf_char(out, '\n');
    }
    if (out->n == before)
        buf_str(out, "no server changed\n");
    struct span later = daemon_text(report, "at_next_start", &scratch);
    if (later.n)
        buf_printf(out, "at the next start: " SPAN_FMT "\n", SPAN_ARG(later));
}

static int reload(struct daemon *d, const struct args *a)
{
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (daemon_fetch(d, "/api/reload", SPAN("{}"), &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    if (a->json)
        buf_span(&out, buf_view(&answer));
    else
        put_changes(&out, buf_view(&answer));
    cmd_print(&out);
    return CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    return daemon_do(&a, reload);
}

static const struct cmd_option options[] = {ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, {NULL}};

const struct command command_reload = {
    .name = "reload",
    .summary = "Have the running daemon read its configuration again",
    .usage = "",
    .about = "Only servers whose entries changed are touched. The daemon also does this by itself\n"
             "when the file changes, and on SIGHUP.",
    .options = options,
    .run = run,
};
