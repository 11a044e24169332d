/* The command `rialto inspect`: starts or connects to one server and prints everything that it
 * offers. Called through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/query.h"
#include "cmd/server_options.h"
#include "config/reader.h"
#include "mcp/protocol.h"
#include "wire/json_out.h"

struct inspection {
    const struct args *args;
    struct buf out;
};

/* --- for people --- */

/* Append the text with each line indented. */
static void put_lines(struct buf *out, struct span text)
{
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        buf_printf(out, "    " SPAN_FMT "\n", SPAN_ARG(line));
        text = span_from(text, line.n + 1);
    }
}

/* A schema or another structured member, a line for each of its members. */
static void put_member(struct buf *out, struct span item, const char *name, const char *title)
{
    struct json_slot slot = json_get(item, name);
    struct problems problems = {0};
    struct arena arena = {0};
    BUF_SCOPED text = {0};

    if (slot.type != JSON_OBJECT && slot.type != JSON_ARRAY)
        return;
    struct value *v = json_doc_read(&arena, slot.value, &problems);
    buf_printf(&text, "%s ", title);
    if (v)
        value_put_json(&text, v, true);
    put_lines(out, buf_view(&text));
    problems_fini(&problems);
    arena_fini(&arena);
}

static void put_item(struct buf *out, struct span item)
{
    static const char *const names[] = {"uri", "uriTemplate", "name"};
    static const char *const members[][2] = {{"inputSchema", "input"},
                                             {"outputSchema", "output"},
                                             {"arguments", "arguments"},
                                             {"annotations", "annotations"}};
    struct json_slot name = {0}, about = json_get(item, "description");
    BUF_SCOPED text = {0};

    for (size_t i = 0; i < COUNT_OF(names) && name.type != JSON_STRING; i++)
        name = json_get(item, names[i]);
    buf_str(out, "\n  ");
    if (name.type == JSON_STRING)
        json_unescape(out, name.value);
    buf_char(out, '\n');
    if (about.type == JSON_STRING)
        json_unescape(&text, about.value);
    put_lines(out, buf_view(&text));
    for (size_t i = 0; i < COUNT_OF(members); i++)
        put_member(out, item, members[i][0], members[i][1]);
}

static void put_list(struct buf *out, const char *title, struct span list)
{
    size_t n = 0;

    for (struct json_iter it = json_iter(list); json_next(&it);)
        n++;
    if (!n)
        return;
    buf_printf(out, "\n%s (%zu)\n", title, n);
    for (struct json_iter it = json_iter(list); json_next(&it);)
        put_item(out, it.value);
}

static void put_text(struct inspection *in, const struct query_run *q, struct mcp_provider *p)
{
    static const char *const titles[] = {[ITEM_TOOL] = "Tools",
                                         [ITEM_RESOURCE] = "Resources",
                                         [ITEM_TEMPLATE] = "Resource templates",
                                         [ITEM_PROMPT] = "Prompts"};
    struct json_slot name = {0}, version = {0};
    const char *instructions = mcp_provider_instructions(p);

    if (mcp_provider_info(p).n) {
        name = json_get(mcp_provider_info(p), "name");
        version = json_get(mcp_provider_info(p), "version");
    }
    if (name.type == JSON_STRING)
        json_unescape(&in->out, name.value);
    buf_char(&in->out, ' ');
    if (version.type == JSON_STRING)
        json_unescape(&in->out, version.value);
    buf_printf(&in->out, " (MCP %s)\n", mcp_provider_version(p));
    put_lines(&in->out, span_str(instructions));
    for (size_t i = 0; i < ITEM_KINDS; i++)
        put_list(&in->out, titles[i], view_list(bridge_full_view(q->bridge), (enum item_kind)i));
}

/* --- for programs --- */

static void put_json(struct inspection *in, const struct query_run *q, struct mcp_provider *p)
{
    struct span info = mcp_provider_info(p);
    const char *instructions = mcp_provider_instructions(p);

    buf_char(&in->out, '{');
    json_out_raw(&in->out, "server", info.n ? info : SPAN("{}"));
    json_out_str(&in->out, "protocol", mcp_provider_version(p));
    json_out_text_or_null(&in->out, "instructions", span_str(instructions));
    for (size_t i = 0; i < ITEM_KINDS; i++)
        json_out_raw(&in->out, mcp_lists[i].member,
                     view_list(bridge_full_view(q->bridge), (enum item_kind)i));
    buf_str(&in->out, "}\n");
}

static void settled(struct query_run *q)
{
    struct inspection *in = q->arg;
    bool failed = query_report_failures(in->args->command, q);
    struct provider *core = bridge_next(q->bridge, NULL);

    if (!failed && core) {
        struct mcp_provider *p = bridge_mcp_provider(core);
        if (in->args->json)
            put_json(in, q, p);
        else
            put_text(in, q, p);
        cmd_print(&in->out);
    }
    query_finish(q, failed || !core ? CMD_FAILED : CMD_FINE);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct server_options options = {0};
    struct config *config = NULL;
    int id, code = 0;

    while (!code && (id = args_next(&a)) > 0)
        code = server_options_read(&options, &a, id);
    if (!code && id < 0) {
        server_options_fini(&options);
        return a.exit_code;
    }
    if (!code)
        code = server_options_words(&options, &a, a.rest, a.rest_n);
    if (!code)
        config = server_options_config(&options, &a, &code);
    server_options_fini(&options);
    if (!config)
        return code;
    struct inspection in = {.args = &a};
    code = query_run(config, &(struct query_how){.verbose = a.verbose, .quiet = a.quiet}, settled,
                     &in);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    SERVER_OPTIONS_OPTIONS, ARGS_OPTION_JSON, ARGS_OPTION_VERBOSE, ARGS_OPTION_QUIET, {NULL}};

const struct command command_inspect = {
    .name = "inspect",
    .summary = "Show everything that a server offers, with its schemas",
    .usage = "(URL | -- COMMAND [ARGS...])",
    .about = "  rialto inspect -- npx -y @modelcontextprotocol/server-everything\n"
             "  rialto inspect https://tools.example.com/mcp\n"
             "No file is read.",
    .options = options,
    .run = run,
};
