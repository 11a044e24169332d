/* The command `rialto call`: calls a tool, through a bridge of its own or the daemon, and prints
 * the result. Called through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/query.h"
#include "config/nearest.h"
#include "mcp/param_headers.h"
#include "wire/json.h"

#include <stdio.h>
#include <unistd.h>

enum { OPT_DAEMON = ARGS_OWN, OPT_YES = 'y' };

struct call_run {
    struct peer peer;
    const struct command *self;
    const char *server, *tool;
    char **words; /* k=v pairs, or one JSON object */
    int n_words;
    bool json, show_progress, progress_shown;
    bool yes, may_ask; /* approve the call without asking; a person can be asked at the terminal */
    struct query_run *ask;
};

/* --- the answer --- */

static void put_content(struct buf *out, struct span item)
{
    struct json_slot type = json_get(item, "type"), text = json_get(item, "text");

    if (json_string_is(type.value, SPAN("text")) && text.type == JSON_STRING) {
        json_unescape(out, text.value);
        if (out->n && out->p[out->n - 1] != '\n')
            buf_char(out, '\n');
        return;
    }
    /* Pictures, sound and resources have no text form worth printing: show what they are. */
    buf_span(out, span_cut(item, 0, 200));
    buf_str(out, item.n > 200 ? "...\n" : "\n");
}

static int show_result(const struct call_run *c, struct span result)
{
    struct buf out = {0};
    struct json_slot content = json_get(result, "content");

    if (c->json || content.type != JSON_ARRAY) {
        buf_span(&out, result);
        buf_char(&out, '\n');
        cmd_print(&out);
    } else {
        struct json_iter it = json_iter(content.value);
        while (json_next(&it))
            put_content(&out, it.value);
        cmd_print_exact(&out);
    }
    return json_get(result, "isError").type == JSON_TRUE ? CMD_FAILED : CMD_FINE;
}

static void hint_at_tools(const struct call_run *c)
{
    struct view *v = exposure_view(bridge_one(c->ask->bridge, span_str(c->server)));
    struct nearest near = nearest_to(span_str(c->tool));
    const struct target *t;

    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++)
        nearest_offer(&near, t->public_name);
    if (near.best.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    else
        cmd_hint("`rialto tools` lists what there is");
}

static int show_error(const struct call_run *c, const struct outcome *outcome)
{
    BUF_SCOPED text = {0};

    if (outcome->kind == OUTCOME_FAILED) {
        buf_span(&text, outcome->text);
    } else {
        struct json_slot message = json_get(outcome->body, "message");
        if (message.type == JSON_STRING)
            json_unescape(&text, message.value);
        else
            buf_span(&text, outcome->body);
    }
    cmd_error(c->self, "%s", buf_cstr(&text));
    if (outcome->why == FAIL_UNKNOWN)
        hint_at_tools(c);
    if (outcome->why == FAIL_REFUSED && !c->yes && !c->may_ask)
        cmd_hint("--yes approves it");
    return CMD_FAILED;
}

static void clear_progress(struct call_run *c)
{
    if (c->progress_shown)
        fputs("\r\033[K", stderr);
    c->progress_shown = false;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);

    (void)call;
    clear_progress(c);
    if (c->ask->finished)
        return; /* interrupted: the call was cancelled with everything else */
    query_finish(c->ask, outcome->kind == OUTCOME_RESULT ? show_result(c, outcome->body)
                                                         : show_error(c, outcome));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);
    BUF_SCOPED line = {0};

    (void)call;
    if (event->kind != EVENT_PROGRESS || !c->show_progress)
        return;
    struct json_slot done = json_get(event->params, "progress");
    struct json_slot total = json_get(event->params, "total");
    struct json_slot message = json_get(event->params, "message");
    buf_str(&line, "\r\033[K");
    cmd_put_plain(&line, done.value);
    if (total.type == JSON_NUMBER) {
        buf_str(&line, " of ");
        cmd_put_plain(&line, total.value);
    }
    if (message.type == JSON_STRING) {
        BUF_SCOPED scratch = {0};
        buf_str(&line, "  ");
        cmd_put_plain(&line, json_text(message.value, &scratch));
    }
    fputs(buf_cstr(&line), stderr);
    c->progress_shown = true;
}

/* Only y and yes, in any case, are approval. */
static bool ask_person(struct span params)
{
    struct json_slot message = json_get(params, "message");
    BUF_SCOPED text = {0}, scratch = {0};
    char line[16] = "";

    if (message.type == JSON_STRING)
        cmd_put_plain(&text, json_text(message.value, &scratch));
    fprintf(stderr, "%s [y/N] ", buf_cstr(&text));
    if (!fgets(line, sizeof line, stdin))
        return false;
    struct span said = span_trim(span_cut(span_str(line), 0, strcspn(line, "\r\n")));
    return span_eq_nocase(said, SPAN("y")) || span_eq_nocase(said, SPAN("yes"));
}

static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);
    struct outcome answer = {.kind = OUTCOME_FAILED,
                             .why = FAIL_REFUSED,
                             .text = SPAN("nobody can be asked on a command line")};

    /* The only question that can be answered here is whether to make the call. */
    if (call->state == CALL_HELD) {
        bool yes = c->yes || ask_person(ask->params);
        answer = (struct outcome){.kind = OUTCOME_RESULT,
                                  .body = yes ? SPAN("{\"action\":\"accept\"}")
                                              : SPAN("{\"action\":\"decline\"}")};
    }
    ask_answer(call, ask->key, &answer);
}

static const struct peer_verbs verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- making the call --- */

static void settled(struct query_run *a)
{
    struct call_run *c = a->arg;
    const struct exposure *one = bridge_one(a->bridge, span_str(c->server));
    BUF_SCOPED params = {0};
    struct err err;

    c->ask = a;
    if (!one) {
        cmd_error(c->self, "there is no server '%s'", c->server);
        cmd_hint("the configuration's servers are listed by `rialto config`");
        query_finish(a, CMD_USAGE);
        return;
    }
    struct view *v = exposure_view(one);
    /* The user who starts the server from the configuration is its operator. */
    view_member(v, 0)->policy.approve_by = APPROVE_BY_EITHER;
    const struct target *t = view_find(v, ITEM_TOOL, span_str(c->tool));
    buf_str(&params, "{\"name\":");
    struct cut name = {params.n, 0};
    json_quote(&params, span_str(c->tool));
    name.n = params.n - name.at;
    buf_str(&params, ",\"arguments\":");
    if (arguments_put(&params, c->words, c->n_words, t ? t->item->raw : SPAN_EMPTY, &err)) {
        cmd_error(c->self, "%s", err.text);
        cmd_hint("%s", err.hint);
        query_finish(a, CMD_USAGE);
    } else {
        buf_char(&params, '}');
        call_open(bridge_router(a->bridge), &c->peer, v,
                  &(struct request){.op = OP_CALL_TOOL,
                                    .name = span_str(c->tool),
                                    .params = buf_view(&params),
                                    .name_at = name,
                                    .answers = c->yes || c->may_ask ? ANSWERS_ELICIT_FORM : 0u,
                                    .wants_progress = c->show_progress},
                  c);
    }
}

/* --- calling by the running daemon --- */

/* The tool's JSON in the result of tools/list, or empty. */
static struct span find_tool(struct span result, const char *name)
{
    struct json_slot list = json_get(result, "tools");
    struct json_iter it = json_iter(list.value);

    while (list.type == JSON_ARRAY && json_next(&it))
        if (json_string_is(json_get(it.value, "name").value, span_str(name)))
            return it.value;
    return SPAN_EMPTY;
}

static int call_at(struct daemon *d, const struct call_run *c, const char *path, struct span tool)
{
    BUF_SCOPED params = {0}, headers = {0}, result = {0};
    struct err err;
    int code = CMD_FAILED;

    buf_str(&params, "\"name\":");
    json_quote(&params, span_str(c->tool));
    buf_str(&params, ",\"arguments\":");
    size_t at = params.n;
    if (arguments_put(&params, c->words, c->n_words, tool, &err)) {
        cmd_error(c->self, "%s", err.text);
        cmd_hint("%s", err.hint);
        code = CMD_USAGE;
    } else {
        if (tool.n && param_headers_possible(tool))
            param_headers_put(&headers, tool, span_from(buf_view(&params), at));
        if (daemon_request(d, path, "tools/call", span_str(c->tool), buf_view(&params),
                           buf_view(&headers), &result) == 0)
            code = show_result(c, buf_view(&result));
    }
    return code;
}

static int call_by_daemon(const struct args *a, const struct config *config,
                          const struct call_run *c)
{
    struct daemon *d = daemon_find_same(a, config);
    BUF_SCOPED path = {0}, list = {0};
    int code = CMD_FAILED;

    if (!d)
        return CMD_FAILED;
    if (config->file && !config_server(config, c->server)) {
        cmd_error(c->self, "there is no server '%s'", c->server);
        code = CMD_USAGE;
    } else {
        buf_printf(&path, "/mcp/%s", c->server);
        if (daemon_request(d, buf_cstr(&path), "tools/list", SPAN_EMPTY, SPAN_EMPTY, SPAN_EMPTY,
                           &list) == 0)
            code = call_at(d, c, buf_cstr(&path), find_tool(buf_view(&list), c->tool));
    }
    daemon_free(d);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool daemon = false, yes = false;
    int id;

    while ((id = args_next(&a)) > 0) {
        daemon |= id == OPT_DAEMON;
        yes |= id == OPT_YES;
    }
    if (id < 0)
        return a.exit_code;
    if (a.rest_n < 2) {
        cmd_error(self, "which tool? Give a server and the tool's own name");
        cmd_hint("rialto call files read_file path=/etc/hostname");
        return CMD_USAGE;
    }
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    struct call_run c = {.self = self,
                         .server = a.rest[0],
                         .tool = a.rest[1],
                         .words = a.rest + 2,
                         .n_words = a.rest_n - 2,
                         .json = a.json,
                         .yes = yes,
                         .may_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO),
                         .show_progress = isatty(STDERR_FILENO) && !a.quiet};
    peer_init(&c.peer, &verbs);
    int code = daemon ? call_by_daemon(&a, config, &c) : query_run(config, a.verbose, settled, &c);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"daemon", OPT_DAEMON, NULL, "let the running daemon call it instead of starting the servers"},
    {"yes", OPT_YES, NULL, "approve the call, if the configuration wants that"},
    ARGS_OPTION_JSON,
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_call = {
    .name = "call",
    .summary = "Call one tool and show its result",
    .usage = "SERVER TOOL [KEY=VALUE... | JSON]",
    .about =
        "Values are taken as the tool's schema says: text stays text, numbers and booleans are\n"
        "read as such. Exits with 1 when the tool reports an error. On a terminal, characters that "
        "do\n"
        "not show (such as escape sequences) are written as \\u001b; into a pipe or file its text\n"
        "goes as it is.",
    .options = options,
    .run = run,
};
