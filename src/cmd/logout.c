/* The command `rialto logout`: forgets the token of a server and revokes it where that is possible.
 * Called through the table of commands (cmd/table.c). */
#include "base/log.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "hub/signin/signin.h"
#include "wire/json.h"

#include <stdio.h>

enum { SLOW_MS = 60 * 1000 };

struct logout_run {
    const struct args *args;
    struct loop *loop;
    bool over;
    int code; /* of the command */
};

static void say(const struct args *a, const char *server, const char *warning)
{
    if (!a->quiet)
        fprintf(stderr, "Signed out of '%s'.\n", server);
    if (warning && *warning)
        cmd_hint("the token was forgotten, but not revoked: %s", warning);
}

static int logout_by_daemon(const struct args *a, struct daemon *d, const char *server)
{
    BUF_SCOPED path = {0}, answer = {0}, warning = {0};
    int status;

    daemon_wait_for(d, SLOW_MS);
    buf_printf(&path, "/api/servers/%s/logout", server);
    if (daemon_fetch(d, buf_cstr(&path), SPAN("{}"), &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    struct json_slot slot = json_get(buf_view(&answer), "warning");
    if (slot.type == JSON_STRING)
        json_unescape(&warning, slot.value);
    say(a, server, buf_cstr(&warning));
    return CMD_FINE;
}

static void on_done(void *arg, const struct err *err)
{
    struct logout_run *r = arg;
    const char *server = r->args->rest[0];

    if (err && err->code) {
        r->code = CMD_FAILED;
        cmd_error(r->args->command, "still signed in to '%s': %s", server, err->text);
        if (err->hint[0])
            cmd_hint("%s", err->hint);
    } else {
        say(r->args, server, err ? err->text : NULL);
    }
    r->over = true;
    loop_stop(r->loop);
}

static int logout_alone(const struct args *a, const struct config *c, struct server_plan *plan)
{
    if (!a->verbose && !log_enabled(LOG_DEBUG))
        log_set_level(LOG_ERROR);
    struct logout_run r = {.args = a, .loop = loop_new(), .code = CMD_FINE};
    struct signin *signin = signin_new(r.loop, c);
    struct identity *id = identity_hold(signin, plan, NULL);

    identity_logout(id, on_done, &r);
    if (!r.over)
        loop_run(r.loop);
    identity_drop(id);
    signin_free(signin);
    loop_free(r.loop);
    return r.code;
}

static int logout(const struct args *a, const struct config *c, const char *server)
{
    const struct config_server *s = config_server(c, server);
    struct daemon *d;
    int code = CMD_USAGE;

    if (!s)
        return args_no_server(a->command, c, server);
    if (!s->url) {
        cmd_error(a->command, "server '%s' has no 'url': nobody signs in there", server);
        return CMD_USAGE;
    }
    if ((d = daemon_look(a, c))) {
        code = logout_by_daemon(a, d, server);
        daemon_free(d);
        return code;
    }
    struct secrets *secrets = secrets_new(c);
    struct server_plan *plan = server_plan_new(c, s, secrets);
    secrets_free(secrets);
    if (plan && server_signin(plan))
        code = logout_alone(a, c, plan);
    else if (plan)
        cmd_error(a->command, "nobody signs in to server '%s'", server);
    server_plan_drop(plan);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    if (a.rest_n != 1) {
        cmd_error(self, "which server? Give its name");
        return CMD_USAGE;
    }
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    int code = logout(&a, config, a.rest[0]);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG, ARGS_OPTION_VERBOSE, ARGS_OPTION_QUIET, {NULL}};

const struct command command_logout = {
    .name = "logout",
    .summary = "Forget the sign-in to a server",
    .usage = "SERVER",
    .about = "The token is forgotten here, and revoked at the authorization server if that takes\n"
             "such requests.",
    .options = options,
    .run = run,
};
