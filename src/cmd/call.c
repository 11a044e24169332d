/* The command `rialto call`: calls a tool, of a server that it starts or through the daemon, and
 * shows the result. Called through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/payload.h"
#include "cmd/query.h"
#include "cmd/questionnaire.h"
#include "config/nearest.h"
#include "wire/json.h"

#include <stdio.h>
#include <unistd.h>

enum { OPT_DAEMON = ARGS_OWN, OPT_ALONE, OPT_SAVE, OPT_YES = 'y' };
/* How long a server of the daemon may take to list its tools after it was started for this call. */
enum { LISTS_MS = 10 * 1000 };

struct call_run {
    struct peer peer;
    const struct command *self;
    const char *name;   /* as `rialto tools` prints it; NULL: `server` and `tool` are set */
    const char *server; /* alias; `tool` is the tool's own name */
    const char *tool;
    char *found_server, *found_tool; /* owned: what `name` stands for */
    char **words;                    /* k=v pairs, or one JSON object */
    int n_words;
    const char *save; /* the folder for pictures and other files; or NULL */
    bool json;
    bool by_daemon;    /* the bridge's only server is one of the daemon's */
    uint64_t patience; /* ms that a starting server of the daemon may take to list its tools */
    bool unapproved;   /* there was nobody to approve the call */
    bool yes, may_ask; /* approve the call without asking; a person can be asked */
    struct questionnaire *person; /* NULL: nobody can be asked */
    struct query_run *ask;
    uint64_t began; /* when the server was up */
    struct call *call;
};

/* --- the answer --- */

static int show_result(const struct call_run *c, struct span result)
{
    struct buf out = {0};
    struct err err = {0};
    bool failed = json_get(result, "isError").type == JSON_TRUE;

    if (c->json) {
        buf_span(&out, result);
        buf_char(&out, '\n');
        cmd_print(&out);
    } else {
        int code = payload_put(&out, result, c->save, &err);
        cmd_print_exact(&out);
        if (code)
            cmd_error(c->self, "%s", err.text);
        failed |= code != 0;
    }
    return failed ? CMD_FAILED : CMD_FINE;
}

static void hint_nearest(const struct nearest *near)
{
    if (near->best.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near->best));
    else
        cmd_hint("`rialto tools` lists what there is");
}

static void hint_at_tools(struct view *v, const char *word)
{
    struct nearest near = nearest_to(span_str(word));
    const struct target *t;

    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++)
        nearest_offer(&near, t->public_name);
    hint_nearest(&near);
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
        hint_at_tools(exposure_view(bridge_one(c->ask->bridge, span_str(c->server))), c->tool);
    if (c->unapproved)
        cmd_hint("--yes approves it");
    return CMD_FAILED;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);

    (void)call;
    c->call = NULL;
    progress_line_stop(c->ask->progress);
    questionnaire_free(c->person);
    c->person = NULL;
    if (c->ask->finished)
        return; /* interrupted: the call was cancelled with everything else */
    query_finish(c->ask, outcome->kind == OUTCOME_RESULT ? show_result(c, outcome->body)
                                                         : show_error(c, outcome));
}

/* --- while it runs --- */

static void tell_running(const struct call_run *c)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "waiting for %s of %s", c->tool, c->server);
    progress_line_say(c->ask->progress, buf_view(&text));
}

static void tell_progress(const struct call_run *c, struct span params)
{
    struct json_slot done = json_get(params, "progress"), total = json_get(params, "total");
    struct json_slot message = json_get(params, "message");
    BUF_SCOPED line = {0};

    buf_span(&line, done.value);
    if (total.type == JSON_NUMBER) {
        buf_str(&line, " of ");
        buf_span(&line, total.value);
    }
    if (message.type == JSON_STRING) {
        BUF_SCOPED scratch = {0};
        buf_str(&line, "  ");
        buf_span(&line, json_text(message.value, &scratch));
    }
    progress_line_tell(c->ask->progress, buf_view(&line));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);

    (void)call;
    if (event->kind == EVENT_PROGRESS)
        tell_progress(c, event->params);
    else if (event->kind == EVENT_UNASKED && c->person)
        questionnaire_drop(c->person, event->name);
}

static void on_answer(void *owner, struct span key, struct span answer)
{
    struct call_run *c = owner;

    if (!c->call)
        return;
    tell_running(c);
    ask_answer(c->call, key, &(struct outcome){.kind = OUTCOME_RESULT, .body = answer});
}

/* Is this the question of the daemon, or of our own bridge, whether to make the call? The daemon's
 * is known by its text only, so a server could ask the same; but the user trusts this server enough
 * to call it. */
static bool is_approval(const struct call_run *c, const struct call *call, const struct ask *ask)
{
    BUF_SCOPED scratch = {0}, words = {0};
    struct json_slot message =
        ask->params.n ? json_get(ask->params, "message") : (struct json_slot){0};

    if (call->state == CALL_HELD)
        return true;
    buf_printf(&words, "Allow the call of '%s' on server '%s'?", c->tool, c->server);
    return c->by_daemon && message.type == JSON_STRING &&
           span_starts(json_text(message.value, &scratch), buf_view(&words));
}

static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct call_run *c = CONTAINER_OF(self, struct call_run, peer);
    bool approval = is_approval(c, call, ask);
    bool form = span_is(ask->method, "elicitation/create");
    struct outcome answer = {.kind = OUTCOME_FAILED,
                             .why = FAIL_REFUSED,
                             .text = SPAN("nobody can be asked on a command line")};

    if (form && c->person && !(approval && c->yes)) {
        progress_line_stop(c->ask->progress);
        c->call = call;
        questionnaire_ask(c->person, ask->key, ask->params, approval);
        return;
    }
    c->unapproved = approval && !c->yes;
    if (approval && c->yes)
        answer = (struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":\"accept\"}")};
    else if (form && call->state != CALL_HELD)
        answer = (struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":\"decline\"}")};
    ask_answer(call, ask->key, &answer);
}

static const struct peer_verbs verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- making the call --- */

static void make_call(struct call_run *c, struct view *v)
{
    struct query_run *a = c->ask;
    const struct target *t = view_find(v, ITEM_TOOL, span_str(c->tool));
    struct span tool = t ? t->item->raw : SPAN_EMPTY;
    BUF_SCOPED params = {0}, usage = {0};
    struct err err = {0};

    buf_str(&params, "{\"name\":");
    struct cut name = {params.n, 0};
    json_quote(&params, span_str(c->tool));
    name.n = params.n - name.at;
    buf_str(&params, ",\"arguments\":");
    size_t at = params.n;
    if (arguments_put(&params, c->words, c->n_words, tool, &err)) {
        cmd_error(c->self, "%s", err.text);
        cmd_hint("%s", err.hint);
        query_finish(a, CMD_USAGE);
        return;
    }
    if (arguments_check(tool, span_from(buf_view(&params), at), &err)) {
        arguments_put_usage(&usage, tool);
        cmd_error(c->self, "%s", err.text);
        cmd_hint("rialto call %s %s %s", c->server, c->tool, buf_cstr(&usage));
        query_finish(a, CMD_USAGE);
        return;
    }
    buf_char(&params, '}');
    if (c->may_ask)
        c->person = questionnaire_new(a->loop, on_answer, c);
    tell_running(c);
    c->call = call_open(
        bridge_router(a->bridge), &c->peer, v,
        &(struct request){.op = OP_CALL_TOOL,
                          .name = span_str(c->tool),
                          .params = buf_view(&params),
                          .name_at = name,
                          .answers = ANSWERS_ELICIT_FORM | (c->person ? ANSWERS_ELICIT_URL : 0u),
                          .wants_progress = true},
        c);
}

/* Which server has the tool of this name? False: none has. */
static bool resolve(struct call_run *c)
{
    struct view *all = bridge_full_view(c->ask->bridge);
    const struct target *t = view_find(all, ITEM_TOOL, span_str(c->name));

    if (!t || !bridge_server_view(t->provider)) {
        cmd_error(c->self, "there is no tool '%s'", c->name);
        hint_at_tools(all, c->name);
        return false;
    }
    c->server = c->found_server = mem_str(t->provider->alias);
    c->tool = c->found_tool = mem_span(t->item->name);
    c->name = NULL;
    return true;
}

static void settled(struct query_run *a)
{
    struct call_run *c = a->arg;

    if (!c->ask)
        c->began = loop_now(a->loop);
    c->ask = a;
    if (c->name && !resolve(c)) {
        (void)query_report_failures(c->self, a);
        query_finish(a, CMD_FAILED);
        return;
    }
    const struct exposure *one = bridge_one(a->bridge, span_str(c->server));
    if (!one) { /* the log says why */
        query_finish(a, config_server(a->config, c->server)
                            ? CMD_FAILED
                            : args_no_server(c->self, a->config, c->server));
        return;
    }
    struct view *v = exposure_view(one);
    /* The user who starts the server from the configuration is its operator, and may approve. */
    view_member(v, 0)->policy.approve_by = APPROVE_BY_EITHER;
    uint64_t waited = loop_now(a->loop) - c->began;
    if (waited < c->patience && !view_find(v, ITEM_TOOL, span_str(c->tool)))
        query_again(a, c->patience - waited);
    else
        make_call(c, v);
}

/* --- the server to start --- */

static bool wants(const struct query_run *a, const struct provider *p)
{
    const struct call_run *c = a->arg;

    return c->name ? query_may_have(a, p, span_str(c->name)) : strcmp(p->alias, c->server) == 0;
}

/* --- calling through the running daemon --- */

/* Finds the tool of this name among the daemon's tools. */
static int resolve_by_daemon(struct daemon *d, struct call_run *c)
{
    struct nearest near = nearest_to(span_str(c->name));
    BUF_SCOPED answer = {0}, kept = {0};
    int status;

    if (daemon_fetch(d, "/api/tools", SPAN_EMPTY, &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    for (struct json_iter it = json_iter(json_get(buf_view(&answer), "tools").value);
         json_next(&it);) {
        BUF_SCOPED scratch = {0};
        struct span public = daemon_text(it.value, "name", &scratch);
        if (span_eq(public, span_str(c->name))) {
            BUF_SCOPED server = {0}, own = {0};
            c->server = c->found_server = mem_span(daemon_text(it.value, "server", &server));
            c->tool = c->found_tool = mem_span(daemon_text(it.value, "own_name", &own));
            c->name = NULL;
            return CMD_FINE;
        }
        struct nearest before = near;
        nearest_offer(&near, public);
        if (near.slips != before.slips || near.best.p != before.best.p) {
            kept.n = 0;
            buf_span(&kept, public);
            near.best = buf_view(&kept);
        }
    }
    cmd_error(c->self, "there is no tool '%s'", c->name);
    hint_nearest(&near);
    return CMD_FAILED;
}

/* The server's entry in the daemon's status; empty: the daemon has no such server. */
static struct span server_in(struct span status, const char *server)
{
    struct json_iter it = json_iter(json_get(status, "servers").value);

    while (json_next(&it))
        if (json_string_is(json_get(it.value, "name").value, span_str(server)))
            return it.value;
    return SPAN_EMPTY;
}

static int call_by_daemon(struct daemon *d, struct span status, const struct config *config,
                          struct call_run *c, const struct query_how *how)
{
    if (c->name && resolve_by_daemon(d, c))
        return CMD_FAILED;
    struct span server = server_in(status, c->server);
    BUF_SCOPED why = {0};
    struct span failing = server.n ? daemon_text(server, "last_error", &why) : SPAN_EMPTY;
    if (config->file && !config_server(config, c->server))
        return args_no_server(c->self, config, c->server);
    if (json_string_is(json_get(server, "state").value, SPAN("failing"))) {
        cmd_error(c->self, "server '%s' is not available: " SPAN_FMT, c->server, SPAN_ARG(failing));
        return CMD_FAILED;
    }
    if (server.n && !json_string_is(json_get(server, "phase").value, SPAN("ready")))
        c->patience = LISTS_MS;
    c->by_daemon = true;
    struct config *stand_in = daemon_stand_in(d, c->server);
    if (!stand_in)
        return args_no_server(c->self, config, c->server);
    int code = query_run(stand_in, how, settled, c);
    config_free(stand_in);
    return code;
}

/* --- the command line --- */

/* `rialto call SERVER TOOL ...`, not `rialto call NAME ...`? Only arguments may follow NAME. */
static bool names_server(const struct args *a, const struct config *config)
{
    if (config_server(config, a->rest[0]))
        return true;
    return a->rest_n > 1 && a->rest[1][0] != '{' && !strchr(a->rest[1], '=');
}

static int take_words(struct call_run *c, const struct args *a, const struct config *config)
{
    bool server = names_server(a, config);

    if (server && a->rest_n < 2) {
        cmd_error(c->self, "which tool of '%s'?", a->rest[0]);
        cmd_hint("`rialto tools %s` lists them", a->rest[0]);
        return CMD_USAGE;
    }
    c->server = server ? a->rest[0] : NULL;
    c->tool = server ? a->rest[1] : NULL;
    c->name = server ? NULL : a->rest[0];
    c->words = a->rest + (server ? 2 : 1);
    c->n_words = a->rest_n - (server ? 2 : 1);
    return CMD_FINE;
}

static int call_tool(const struct args *a, const struct config *config, struct call_run *c,
                     bool must, bool alone)
{
    const struct query_how how = {.verbose = a->verbose, .quiet = a->quiet, .wants = wants};
    BUF_SCOPED status = {0};
    struct daemon *d = alone ? NULL : must ? daemon_find_same(a, config) : daemon_look(a, config);
    int code, http;

    if (d && daemon_fetch(d, "/status", SPAN_EMPTY, &http, &status))
        code = CMD_FAILED;
    else if (d)
        code = call_by_daemon(d, buf_view(&status), config, c, &how);
    else
        code = must ? CMD_FAILED : query_run(config, &how, settled, c);
    if (d)
        daemon_free(d);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct call_run c = {.self = self, .may_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO)};
    bool daemon = false, alone = false;
    int id;

    while ((id = args_next(&a)) > 0) {
        daemon |= id == OPT_DAEMON;
        alone |= id == OPT_ALONE;
        c.yes |= id == OPT_YES;
        c.save = id == OPT_SAVE ? a.value : c.save;
    }
    if (id < 0)
        return a.exit_code;
    if (a.rest_n < 1) {
        cmd_error(self, "which tool? Give the name that `rialto tools` prints");
        cmd_hint("rialto call files__read_file path=/etc/hostname");
        return CMD_USAGE;
    }
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    c.json = a.json;
    peer_init(&c.peer, &verbs);
    int code = take_words(&c, &a, config);
    if (code == CMD_FINE)
        code = call_tool(&a, config, &c, daemon, alone);
    questionnaire_free(c.person);
    mem_free(c.found_server);
    mem_free(c.found_tool);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"alone", OPT_ALONE, NULL, "start the server, even if a daemon runs that could be asked"},
    {"daemon", OPT_DAEMON, NULL, "let the running daemon call it, and fail if there is none"},
    {"save", OPT_SAVE, "DIR", "save pictures, sound and other files of the result in this folder"},
    {"yes", OPT_YES, NULL, "approve the call, if the configuration wants that"},
    ARGS_OPTION_JSON,
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_call = {
    .name = "call",
    .summary = "Call one tool and show its result",
    .usage = "NAME | SERVER TOOL [KEY=VALUE... | JSON]",
    .about =
        "NAME is what 'rialto tools' prints. A daemon that runs with the same configuration makes\n"
        "the call; without one the tool's server is started for it, and no other. Values are\n"
        "taken as the tool's schema says: text stays text, numbers and booleans are read as such.\n"
        "What the server asks is asked on the terminal; without one it is declined. Pictures and\n"
        "other files are described in one line, or saved. Exits with 1 when the tool reports an\n"
        "error. On a terminal, characters that do not show (such as escape sequences) are written\n"
        "as \\u001b; into a pipe or file its text goes as it is.",
    .options = options,
    .run = run,
};
