/* The command `rialto login`: a person signs in to a server, through the running daemon or without
 * one. Called through the table of commands (cmd/table.c). */
#include "base/log.h"
#include "base/mem.h"
#include "browser/launch.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "config/units.h"
#include "hub/signin/signin.h"
#include "io/poll.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_NO_BROWSER = ARGS_OWN, OPT_DEVICE, OPT_TIMEOUT };
enum { TIMEOUT_MS = 5 * 60 * 1000, LOOK_MS = 300, SLOW_MS = 60 * 1000, LINE_MAX_N = 16 * 1024 };

struct login_run {
    const struct args *args;
    const struct config *config;
    const char *server;
    bool no_browser, device;
    uint64_t timeout;
    struct loop *loop;
    struct list launched; /* programs that were started */
    struct buf pasted;    /* what was read of a line on the standard input */
    bool no_input;        /* the standard input has ended */
    /* without a daemon */
    struct identity *identity;
    struct identity_wait wait;
    struct poll *input;
    struct timer late;
    int code;
    bool over;
};

/* --- showing the address --- */

static void on_launched(void *owner, int code)
{
    (void)owner;
    if (code > 0)
        cmd_hint("the browser could not be started: open the address yourself");
}

static void open_browser(struct login_run *r, const char *url)
{
    const char *own = getenv("BROWSER");
    const char *const argv[] = {own && *own ? own : "xdg-open", url, NULL};
    struct err err;

    if (r->no_browser || r->device)
        return;
    if (launch_start(r->loop, &r->launched, argv, on_launched, r, &err))
        cmd_hint("the browser could not be started: open the address yourself");
}

/* Prints the address alone on a line, because other programs read it. */
static void show_address(struct login_run *r, struct span url, struct span code)
{
    struct buf line = {0};
    char *copy = mem_span(url);

    buf_span(&line, url);
    buf_char(&line, '\n');
    cmd_print(&line);
    fflush(stdout);
    if (code.n)
        fprintf(stderr, "Open this address in any browser and enter the code: " SPAN_FMT "\n",
                SPAN_ARG(code));
    else if (isatty(STDIN_FILENO) && !r->args->quiet)
        fprintf(stderr,
                "Sign in to '%s' with your browser at this address. If the browser is on "
                "another machine, paste\nthe address where it ends here.\n",
                r->server);
    open_browser(r, copy);
    mem_free(copy);
}

static void say_signed_in(const struct login_run *r)
{
    if (!r->args->quiet)
        fprintf(stderr, "Signed in to '%s'.\n", r->server);
}

static void say_failed(const struct login_run *r, const char *text, const char *hint)
{
    cmd_error(r->args->command, "%s", text);
    if (hint && *hint)
        cmd_hint("%s", hint);
}

/* --- the pasted address --- */

/* Reads once. True when a whole line is in r->pasted, without its end. */
static bool read_line(struct login_run *r)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 || r->pasted.n + (size_t)n > LINE_MAX_N) {
        r->no_input = true;
        return false;
    }
    buf_bytes(&r->pasted, bytes, (size_t)n);
    size_t end = span_find(buf_view(&r->pasted), '\n');
    if (end == r->pasted.n)
        return false;
    r->pasted.n = end;
    while (r->pasted.n && r->pasted.p[r->pasted.n - 1] <= ' ')
        r->pasted.n--;
    return r->pasted.n > 0;
}

static bool is_input_there(const struct login_run *r)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return !r->no_input && poll(&p, 1, 0) > 0;
}

/* --- through the daemon --- */

static void paste_to(struct login_run *r, struct daemon *d, const char *path)
{
    BUF_SCOPED body = {0}, answer = {0};
    int status;

    buf_str(&body, "{\"callback\":");
    json_quote(&body, buf_view(&r->pasted));
    buf_char(&body, '}');
    r->pasted.n = 0;
    if (daemon_fetch(d, path, buf_view(&body), &status, &answer) == 0 && status != 202)
        (void)daemon_agreed(d, status, buf_view(&answer));
}

/* Polls the daemon until the person has signed in, or that has failed, or the time is over. */
static int follow(struct login_run *r, struct daemon *d, const char *path)
{
    for (uint64_t waited = 0; waited < r->timeout; waited += LOOK_MS) {
        BUF_SCOPED answer = {0}, text = {0}, hint = {0};
        int status;
        if (is_input_there(r) && read_line(r))
            paste_to(r, d, path);
        if (daemon_fetch(d, path, SPAN_EMPTY, &status, &answer))
            return CMD_FAILED;
        struct span state = json_get(buf_view(&answer), "state").value;
        if (json_string_is(state, SPAN("signed_in"))) {
            say_signed_in(r);
            return CMD_FINE;
        }
        if (!json_string_is(state, SPAN("waiting"))) {
            struct span why = daemon_text(buf_view(&answer), "error", &text);
            cmd_error(r->args->command, SPAN_FMT,
                      SPAN_ARG(why.n ? why : SPAN("the sign-in was ended")));
            struct span what = daemon_text(buf_view(&answer), "hint", &hint);
            if (what.n)
                cmd_hint(SPAN_FMT, SPAN_ARG(what));
            return CMD_FAILED;
        }
        if (!daemon_pause(d, LOOK_MS))
            return CMD_FAILED;
    }
    say_failed(r, "nobody signed in in time", "--timeout makes it longer");
    return CMD_FAILED;
}

static int login_by_daemon(struct login_run *r, struct daemon *d)
{
    BUF_SCOPED path = {0}, answer = {0}, scratch = {0}, code = {0};
    int status;

    r->loop = daemon_loop(d);
    daemon_mind_signals(d);
    daemon_wait_for(d, SLOW_MS);
    buf_printf(&path, "/api/servers/%s/login", r->server);
    if (daemon_fetch(d, buf_cstr(&path), r->device ? SPAN("{\"device\":true}") : SPAN("{}"),
                     &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    struct span url = daemon_text(buf_view(&answer), "url", &scratch);
    if (url.n)
        show_address(r, url, daemon_text(buf_view(&answer), "code", &code));
    return follow(r, d, buf_cstr(&path));
}

/* --- without a daemon --- */

static void finish(struct login_run *r, int code)
{
    if (r->over)
        return;
    r->over = true;
    r->code = code;
    loop_stop(r->loop);
}

static void on_address(struct identity_wait *w, const char *url, const char *code)
{
    show_address(CONTAINER_OF(w, struct login_run, wait), span_str(url), span_str(code));
}

static void on_done(struct identity_wait *w, const struct err *err)
{
    struct login_run *r = CONTAINER_OF(w, struct login_run, wait);

    if (err)
        say_failed(r, err->text, err->hint);
    else
        say_signed_in(r);
    finish(r, err ? CMD_FAILED : CMD_FINE);
}

static void on_input(void *owner)
{
    struct login_run *r = owner;

    if (read_line(r)) {
        if (!identity_paste(r->identity, buf_view(&r->pasted)))
            cmd_error(r->args->command, "no sign-in waits for this address");
        r->pasted.n = 0;
    } else if (r->no_input) {
        poll_close(r->input);
        r->input = NULL;
    }
}

static void on_late(struct timer *t)
{
    struct login_run *r = CONTAINER_OF(t, struct login_run, late);

    say_failed(r, "nobody signed in in time", "--timeout makes it longer");
    finish(r, CMD_FAILED);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    finish(arg, CMD_FAILED);
}

/* Watches a copy of the standard input, because poll_new takes the descriptor over. Files and
 * /dev/null cannot be polled, and nobody pastes an address there. */
static void mind_input(struct login_run *r)
{
    struct stat st;
    bool watched = isatty(STDIN_FILENO) || (fstat(STDIN_FILENO, &st) == 0 &&
                                            (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
    int fd = watched ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd >= 0)
        r->input = poll_new(r->loop, fd, on_input, r);
}

static int login_alone(struct login_run *r, struct server_plan *plan)
{
    enum { PAGE_MS = 2000, STEP_MS = 20 };
    struct signin *signin;

    if (!r->args->verbose && !log_enabled(LOG_DEBUG))
        log_set_level(LOG_ERROR); /* the command itself prints what goes wrong */
    r->loop = loop_new();
    signin = signin_new(r->loop, r->config);
    r->identity = identity_hold(signin, plan, NULL);
    r->wait.address = on_address;
    r->wait.done = on_done;
    r->late.fire = on_late;
    timer_set(loop_timers(r->loop), &r->late, r->timeout);
    if (loop_on_signal(r->loop, SIGINT, on_signal, r) < 0 ||
        loop_on_signal(r->loop, SIGTERM, on_signal, r) < 0)
        log_warn("rialto", "cannot handle signals");
    mind_input(r);
    identity_login(r->identity, r->device, &r->wait);
    loop_run(r->loop);
    timer_clear(loop_timers(r->loop), &r->late);
    if (r->input)
        poll_close(r->input);
    identity_leave(&r->wait);
    identity_drop(r->identity);
    for (int ms = 0; ms < PAGE_MS && signin_is_busy(signin); ms += STEP_MS)
        loop_step(r->loop, STEP_MS); /* until the browser has got its last page */
    launch_forget_all(&r->launched);
    signin_free(signin);
    loop_free(r->loop);
    return r->code;
}

/* --- the command line --- */

static int login(struct login_run *r)
{
    const struct config_server *s = config_server(r->config, r->server);
    struct daemon *d;
    int code = CMD_USAGE;

    if (!s)
        return args_no_server(r->args->command, r->config, r->server);
    if (!s->url) {
        cmd_error(r->args->command,
                  "server '%s' is a program and has no 'url': nobody signs in there", r->server);
        return CMD_USAGE;
    }
    list_init(&r->launched);
    if ((d = daemon_look(r->args, r->config))) {
        code = login_by_daemon(r, d);
        launch_forget_all(&r->launched);
        daemon_free(d);
        return code;
    }
    struct secrets *secrets = secrets_new(r->config);
    struct server_plan *plan = server_plan_new(r->config, s, secrets);
    secrets_free(secrets);
    if (plan && server_signin(plan)) {
        code = login_alone(r, plan);
    } else if (plan) {
        cmd_error(r->args->command, "nobody signs in to server '%s'", r->server);
        cmd_hint("its url must be https, or on this machine, and 'headers' without Authorization");
    }
    server_plan_drop(plan);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct login_run r = {.args = &a, .timeout = TIMEOUT_MS};
    int id;

    while ((id = args_next(&a)) > 0) {
        r.no_browser |= id == OPT_NO_BROWSER;
        r.device |= id == OPT_DEVICE;
        if (id == OPT_TIMEOUT && units_read_duration(span_str(a.value), &r.timeout)) {
            cmd_error(self, "'%s' is not a duration such as 30s or 5m", a.value);
            return CMD_USAGE;
        }
    }
    if (id < 0)
        return a.exit_code;
    if (a.rest_n != 1) {
        cmd_error(self, "which server? Give its name");
        return CMD_USAGE;
    }
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    r.config = config;
    r.server = a.rest[0];
    int code = login(&r);
    buf_fini(&r.pasted);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"no-browser", OPT_NO_BROWSER, NULL, "only print the address"},
    {"device", OPT_DEVICE, NULL, "by a code that is entered in a browser on any machine"},
    {"timeout", OPT_TIMEOUT, "TIME", "how long to wait, 5m unless given"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_login = {
    .name = "login",
    .summary = "Sign in to a server that wants it",
    .usage = "SERVER",
    .about =
        "Prints the address where to sign in, alone on a line, opens it with $BROWSER or "
        "xdg-open,\n"
        "and waits until you are back. The address where the browser ends can be pasted, if it is\n"
        "on another machine. A running daemon does all this and uses the token at once; without\n"
        "one the command does it alone. Exits with 0 when somebody has signed in.",
    .options = options,
    .run = run,
};
