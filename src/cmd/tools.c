/* The command `rialto tools`: lists the tools by server with their arguments and what they cost, or
 * shows one of them. Called through the table of commands (cmd/table.c). */
#include "cmd/args.h"
#include "cmd/arguments.h"
#include "cmd/colour.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/listing.h"
#include "cmd/query.h"
#include "config/nearest.h"
#include "hub/graph/tool_list.h"
#include "wire/json.h"

#include <inttypes.h>

enum { NAME_COLUMN_MAX = 40, TOKENS_COLUMN = 6 };

struct tools_run {
    const struct command *self;
    const char *only; /* a server, or a tool by the name that is printed; NULL: everything */
    bool is_server;
    bool json;
};

/* --- numbers --- */

/* "3 tools, 1,234 tokens" */
static void put_sum(struct buf *out, uint64_t tools, uint64_t tokens)
{
    buf_printf(out, "%" PRIu64 " tool%s, ", tools, tools == 1 ? "" : "s");
    if (tokens >= 1000)
        buf_printf(out, "%" PRIu64 ",%03" PRIu64 " tokens", tokens / 1000, tokens % 1000);
    else
        buf_printf(out, "%" PRIu64 " tokens", tokens);
}

/* --- the table --- */

static bool is_of(struct span tool, struct span server)
{
    BUF_SCOPED scratch = {0};

    return span_eq(daemon_text(tool, "server", &scratch), server);
}

static size_t name_column(struct span tools)
{
    size_t column = 0;

    for (struct json_iter it = json_iter(tools); json_next(&it);) {
        BUF_SCOPED scratch = {0};
        size_t n = daemon_text(it.value, "name", &scratch).n;
        column = n > column ? n : column;
    }
    return column < NAME_COLUMN_MAX ? column : NAME_COLUMN_MAX;
}

static void pad(struct buf *out, size_t start, size_t column)
{
    while (out->n - start < column)
        buf_char(out, ' ');
}

/*
 *   files__read_file      212  Reads a file
 *                              path=STRING [head=NUMBER]
 */
static void put_row(struct buf *out, struct span tool, size_t column, size_t width)
{
    BUF_SCOPED name = {0}, text = {0}, usage = {0};
    size_t start = out->n, indent = 2 + column + TOKENS_COLUMN + 2;
    size_t room = width > indent + 10 ? width - indent : 10;

    buf_str(out, "  ");
    cmd_put_plain(out, daemon_text(tool, "name", &name));
    pad(out, start, 2 + column);
    buf_printf(out, "%*" PRIu64 "  ", TOKENS_COLUMN, json_count(tool, "tokens"));
    listing_put_line(out, daemon_text(tool, "description", &text), room);
    buf_char(out, '\n');
    arguments_put_usage(&usage, tool);
    if (!usage.n)
        return;
    start = out->n;
    pad(out, start, indent);
    listing_put_line(out, buf_view(&usage), room);
    buf_char(out, '\n');
}

/* The tools of one server under its name and their sum. */
static void put_server(struct buf *out, struct span tools, struct span server, size_t column,
                       size_t width)
{
    uint64_t n = 0, tokens = 0;

    for (struct json_iter it = json_iter(tools); json_next(&it);)
        if (is_of(it.value, server)) {
            n++;
            tokens += json_count(it.value, "tokens");
        }
    BUF_SCOPED title = {0};

    cmd_put_plain(&title, server);
    buf_str(out, out->n ? "\n" : "");
    colour_put(out, COLOUR_TITLE, buf_view(&title));
    buf_str(out, ": ");
    put_sum(out, n, tokens);
    buf_char(out, '\n');
    for (struct json_iter it = json_iter(tools); json_next(&it);)
        if (is_of(it.value, server))
            put_row(out, it.value, column, width);
}

/* Has a tool of this server come before the n-th? */
static bool is_repeated(struct span tools, size_t n, struct span server)
{
    struct json_iter it = json_iter(tools);

    for (size_t i = 0; i < n && json_next(&it); i++)
        if (is_of(it.value, server))
            return true;
    return false;
}

static void put_table(struct buf *out, const struct tools_run *r, struct span list)
{
    struct span tools = json_get(list, "tools").value;
    struct json_iter it = json_iter(tools), views = json_iter(json_get(list, "views").value);
    size_t column = name_column(tools), width = listing_width(), n = 0;

    for (; json_next(&it); n++) {
        BUF_SCOPED scratch = {0};
        struct span server = daemon_text(it.value, "server", &scratch);
        if (!is_repeated(tools, n, server) && (!r->only || span_is(server, r->only)))
            put_server(out, tools, server, column, width);
    }
    if (r->only)
        return;
    buf_str(out, "\nall: ");
    put_sum(out, n, json_count(list, "tokens"));
    buf_char(out, '\n');
    while (json_next(&views)) {
        BUF_SCOPED scratch = {0};
        buf_str(out, "view ");
        cmd_put_plain(out, daemon_text(views.value, "name", &scratch));
        buf_str(out, ": ");
        put_sum(out, json_count(views.value, "tools"), json_count(views.value, "tokens"));
        buf_char(out, '\n');
    }
}

/* --- one tool --- */

/* Append a text of several lines, each indented by two blanks. */
static void put_paragraph(struct buf *out, struct span text)
{
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        buf_str(out, "  ");
        cmd_put_plain(out, line);
        buf_char(out, '\n');
        text = span_from(text, line.n + 1);
    }
}

static void put_arguments(struct buf *out, struct span tool)
{
    struct json_slot schema = json_get(tool, "inputSchema");
    struct json_slot properties =
        schema.type == JSON_OBJECT ? json_get(schema.value, "properties") : (struct json_slot){0};
    struct json_iter it = json_iter(properties.value);

    while (properties.type == JSON_OBJECT && json_next(&it)) {
        BUF_SCOPED name = {0}, about = {0};
        buf_str(out, "  ");
        cmd_put_plain(out, json_text(it.key, &name));
        buf_str(out, "  ");
        cmd_put_plain(out, daemon_text(it.value, "description", &about));
        buf_char(out, '\n');
    }
}

static void put_tool(struct buf *out, struct span tool)
{
    BUF_SCOPED scratch = {0}, usage = {0};

    cmd_put_plain(out, daemon_text(tool, "name", &scratch));
    buf_printf(out, ": %" PRIu64 " tokens, '", json_count(tool, "tokens"));
    cmd_put_plain(out, daemon_text(tool, "own_name", &scratch));
    buf_str(out, "' of server '");
    cmd_put_plain(out, daemon_text(tool, "server", &scratch));
    buf_str(out, "'\n\n");
    put_paragraph(out, daemon_text(tool, "description", &scratch));
    buf_str(out, "\nrialto call ");
    cmd_put_plain(out, daemon_text(tool, "name", &scratch));
    buf_char(out, ' ');
    arguments_put_usage(&usage, tool);
    buf_span(out, buf_view(&usage));
    buf_str(out, "\n");
    put_arguments(out, tool);
}

/* The tool with this printed or own name; empty, after a message that names the nearest: none. */
static struct span find_tool(const struct tools_run *r, struct span tools)
{
    static const char *const keys[] = {"name", "own_name"};
    struct nearest near = nearest_to(span_str(r->only));
    BUF_SCOPED names = {0}; /* `near` points into it */

    for (size_t k = 0; k < COUNT_OF(keys); k++)
        for (struct json_iter it = json_iter(tools); json_next(&it);)
            if (json_string_is(json_get(it.value, keys[k]).value, span_str(r->only)))
                return it.value;
    buf_room(&names, tools.n);
    for (struct json_iter it = json_iter(tools); json_next(&it);)
        nearest_offer(&near, json_text(json_get(it.value, "name").value, &names));
    cmd_error(r->self, "there is no server and no tool '%s'", r->only);
    if (near.best.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    return SPAN_EMPTY;
}

/* --- output --- */

static void put_json(struct buf *out, const struct tools_run *r, struct span tools)
{
    const char *comma = "";

    buf_char(out, '[');
    for (struct json_iter it = json_iter(tools); json_next(&it);) {
        if (r->only && !is_of(it.value, span_str(r->only)))
            continue;
        buf_str(out, comma);
        buf_span(out, it.value);
        comma = ",";
    }
    buf_str(out, "]\n");
}

static int show(const struct tools_run *r, struct span list)
{
    struct span tools = json_get(list, "tools").value;
    struct span one = r->only && !r->is_server ? find_tool(r, tools) : SPAN_EMPTY;
    struct buf out = {0};

    if (r->only && !r->is_server && !one.n)
        return CMD_FAILED;
    if (one.n && r->json)
        buf_printf(&out, "[" SPAN_FMT "]\n", SPAN_ARG(one));
    else if (one.n)
        put_tool(&out, one);
    else if (r->json)
        put_json(&out, r, tools);
    else
        put_table(&out, r, list);
    cmd_print(&out);
    return CMD_FINE;
}

/* --- where the list comes from --- */

static bool wants(const struct query_run *a, const struct provider *p)
{
    const struct tools_run *r = a->arg;

    if (!r->only)
        return true;
    return r->is_server ? strcmp(p->alias, r->only) == 0 : query_may_have(a, p, span_str(r->only));
}

static void settled(struct query_run *a)
{
    const struct tools_run *r = a->arg;
    BUF_SCOPED list = {0};

    tool_list_put(&list, a->bridge);
    int code = show(r, buf_view(&list));
    query_finish(a, query_report_failures(r->self, a) ? CMD_FAILED : code);
}

static int ask_daemon(const struct args *a, const struct config *config, const struct tools_run *r)
{
    BUF_SCOPED list = {0};
    struct daemon *d = daemon_find_same(a, config);
    int status, code = CMD_FAILED;

    if (!d)
        return CMD_FAILED;
    if (daemon_fetch(d, "/api/tools", SPAN_EMPTY, &status, &list) == 0 &&
        daemon_agreed(d, status, buf_view(&list)))
        code = show(r, buf_view(&list));
    daemon_free(d);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool daemon = false;
    struct config *config = listing_config(&a, 1, &daemon);

    if (!config)
        return a.exit_code;
    struct tools_run r = {.self = self, .only = a.rest_n ? a.rest[0] : NULL, .json = a.json};
    struct query_how how = {.verbose = a.verbose, .quiet = a.quiet, .wants = wants};
    r.is_server =
        r.only && (config_server(config, r.only) || (!config->file && strcmp(r.only, "demo") == 0));
    int code = daemon ? ask_daemon(&a, config, &r) : query_run(config, &how, settled, &r);
    config_free(config);
    return code;
}

const struct command command_tools = {
    .name = "tools",
    .summary = "List the tools that a configuration offers, and what they cost",
    .usage = "[SERVER | TOOL]",
    .about =
        "Starts the servers, lists their tools by the names that agents see, and stops them\n"
        "again; with a name only that server, or all there is to know of one tool. The number\n"
        "before each description is what the tool costs a model that is told of it, in tokens\n"
        "(an estimate for o200k_base); sums are behind each server and at the end, for\n"
        "everything and for each view. Exits with 1 when a server could not be started; the\n"
        "others are listed all the same.",
    .options = listing_options,
    .run = run,
};
