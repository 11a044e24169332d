/* The command `rialto replay`: has the daemon make a recorded call again and shows how the answers
 * differ. Called through the table of commands (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <stdio.h>
#include <unistd.h>

/* A call takes as long as its server's timeout lets it, and perhaps somebody has to approve it. */
enum { WAIT_MS = 24 * 60 * 60 * 1000 };
enum { OPT_SERVER = ARGS_OWN, OPT_YES = 'y' };

struct replay_options {
    const char *id, *server;
    bool yes;
};

static int ask_daemon(struct daemon *d, const struct replay_options *o, int *status,
                      struct buf *answer)
{
    BUF_SCOPED path = {0}, body = {0};

    buf_printf(&path, "/api/calls/%s/replay", o->id);
    buf_char(&body, '{');
    if (o->server)
        json_out_str(&body, "server", o->server);
    json_out_bool(&body, "confirm", o->yes);
    buf_char(&body, '}');
    answer->n = 0;
    return daemon_fetch(d, buf_cstr(&path), buf_view(&body), status, answer);
}

/* Asks the person at the terminal; false without one. */
static bool is_wanted(struct span answer)
{
    BUF_SCOPED scratch = {0}, text = {0};
    char word[8] = "";

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    cmd_put_plain(&text, daemon_text(answer, "error", &scratch));
    fprintf(stderr, "%s. Make the call? [y/N] ", buf_cstr(&text));
    return fgets(word, sizeof word, stdin) && (*word == 'y' || *word == 'Y');
}

static int show(const struct args *a, struct span answer)
{
    bool same = json_get(answer, "same").type == JSON_TRUE;
    struct json_iter it = json_iter(json_get(answer, "diff").value);
    BUF_SCOPED scratch = {0};
    struct buf out = {0};

    if (a->json) {
        buf_span(&out, answer);
    } else if (same) {
        buf_printf(&out, "the same answer (call %s)\n", daemon_cstr(answer, "id", &scratch));
    } else {
        while (json_next(&it)) {
            buf_reset(&scratch, 0);
            cmd_put_plain(&out, json_text(it.value, &scratch));
            buf_char(&out, '\n');
        }
        struct span note = daemon_text(answer, "note", &scratch);
        if (note.n)
            buf_printf(&out, SPAN_FMT "\n", SPAN_ARG(note));
    }
    cmd_print(&out);
    return same ? CMD_FINE : CMD_FAILED;
}

/* Returns CMD_USAGE (2) if the call could not be made, because 1 means that the answers differ. */
static int replay(struct daemon *d, const struct args *a, struct replay_options *o)
{
    BUF_SCOPED answer = {0};
    int status = 0;

    daemon_wait_for(d, WAIT_MS);
    if (ask_daemon(d, o, &status, &answer))
        return CMD_USAGE;
    struct json_slot reason = json_get(buf_view(&answer), "reason");
    if (status == 409 && reason.type == JSON_STRING &&
        json_string_is(reason.value, SPAN("confirm")) && !o->yes && is_wanted(buf_view(&answer))) {
        o->yes = true;
        if (ask_daemon(d, o, &status, &answer))
            return CMD_USAGE;
    }
    if (!daemon_agreed(d, status, buf_view(&answer)))
        return CMD_USAGE;
    return show(a, buf_view(&answer));
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct replay_options o = {0};
    int id;

    while ((id = args_next(&a)) > 0) {
        o.server = id == OPT_SERVER ? a.value : o.server;
        o.yes |= id == OPT_YES;
    }
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    o.id = a.rest_n ? a.rest[0] : "";
    if (!*o.id || strspn(o.id, "0123456789") != strlen(o.id)) {
        cmd_error(self, "a call is known by its number, not '%s'", o.id);
        cmd_hint("rialto calls lists them");
        return CMD_USAGE;
    }
    struct daemon *d = daemon_find(&a);
    if (!d)
        return CMD_USAGE;
    int code = replay(d, &a, &o);
    daemon_free(d);
    return code;
}

static const struct cmd_option options[] = {
    {"server", OPT_SERVER, "NAME", "call the tool of this server instead"},
    {"yes", OPT_YES, NULL, "make the call even if its tool may do something again"},
    ARGS_OPTION_CONFIG,
    ARGS_OPTION_JSON,
    {NULL}};

const struct command command_replay = {
    .name = "replay",
    .summary = "Make a recorded call again and show how the answers differ",
    .usage = "ID",
    .about = "The daemon makes the call with the recorded arguments, as a call of yours: filters,\n"
             "rules, limits and approvals hold. A tool that does not say that it only reads, or\n"
             "that it may be repeated, is called again only after a yes. Questions of the server\n"
             "are not answered.\n"
             "\n"
             "Ends with 0 when the answer is the same, with 1 after a difference, and with 2 when\n"
             "the call could not be made.",
    .options = options,
    .run = run,
};
