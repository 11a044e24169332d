#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/ask.h"
#include "cmd/commands.h"
#include "wire/json.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { NAME_MAX_COLUMN = 40 };

struct tools {
    const struct command *self;
    bool json;
};

static size_t line_width(void)
{
    struct winsize w;

    if (!isatty(STDOUT_FILENO))
        return (size_t)-1;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 40 ? w.ws_col : 80;
}

/* The first line of a description, as much as fits. */
static void put_description(struct buf *out, const struct item *item, size_t room)
{
    struct buf text = {0};

    if (item->description_at.n)
        json_unescape(&text, span_cut(item->raw, item->description_at.at, item->description_at.n));
    struct span line = span_trim(span_cut(buf_view(&text), 0, span_find(buf_view(&text), '\n')));
    if (line.n > room) {
        line.n = room - 3;
        while (line.n && ((unsigned char)line.p[line.n] & 0xc0) == 0x80)
            line.n--; /* not in the middle of a character */
        buf_span(out, line);
        buf_str(out, "...");
    } else {
        buf_span(out, line);
    }
    buf_fini(&text);
}

static void put_table(struct buf *out, struct view *v)
{
    size_t column = 0, width = line_width();
    const struct target *t;

    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++)
        if (t->public_name.n > column)
            column = t->public_name.n;
    if (column > NAME_MAX_COLUMN)
        column = NAME_MAX_COLUMN;
    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++) {
        size_t start = out->n;
        buf_span(out, t->public_name);
        while (out->n - start < column)
            buf_char(out, ' ');
        buf_str(out, "  ");
        size_t used = out->n - start;
        put_description(out, t->item, width > used + 10 ? width - used : 10);
        buf_char(out, '\n');
    }
}

static void settled(struct ask_run *a)
{
    const struct tools *t = a->arg;
    struct view *v = bridge_view(a->bridge);
    struct buf out = {0};

    if (t->json) {
        buf_span(&out, view_list(v, ITEM_TOOL));
        buf_char(&out, '\n');
    } else {
        put_table(&out, v);
    }
    cmd_print(&out);
    ask_finish(a, ask_report_failures(t->self, a) ? CMD_FAILED : CMD_FINE);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    struct tools t = {self, a.json};
    int code = ask_run(config, a.verbose, settled, &t);
    config_free(config);
    return cmd_finish(code);
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, ARGS_OPTION_VERBOSE, ARGS_OPTION_QUIET, {NULL}};

const struct command command_tools = {
    .name = "tools",
    .summary = "List the tools that a configuration offers",
    .usage = "",
    .about =
        "Starts every server, lists what agents would see, and stops them again. Exits with 1\n"
        "when a server could not be started; the others are listed all the same.",
    .options = options,
    .run = run,
};
