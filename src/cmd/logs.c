/* The command `rialto logs`: prints lines of the daemon's log, and with --follow new lines as they
 * come. Called through the table of commands (cmd/table.c). */
#include "base/ascii.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPT_LEVEL = ARGS_OWN };
enum { SHOWN = 50, SHOWN_MAX = 10000, AT_ONCE = 1000, LOOK_MS = 300 };

/* The command line, and the position in the log. */
struct logs {
    struct daemon *d;
    const struct args *args;
    const char *name, *level;
    uint64_t n;
    bool follow;
    int64_t next;   /* number of the first line not seen yet */
    struct buf run; /* id of the daemon that numbered the lines */
    bool gone;      /* the daemon does not answer, and a message said so */
};

/* --- lines --- */

static void put_text_line(struct buf *out, struct span line)
{
    BUF_SCOPED scratch = {0};

    cmd_put_plain(out, daemon_text(line, "at", &scratch));
    struct span level = daemon_text(line, "level", &scratch);
    buf_printf(out, " %-5.*s ", SPAN_ARG(level));
    cmd_put_plain(out, daemon_text(line, "who", &scratch));
    buf_str(out, ": ");
    cmd_put_plain(out, daemon_text(line, "text", &scratch));
    buf_char(out, '\n');
}

/* Returns the number of lines. */
static size_t print_lines(const struct logs *l, struct span answer)
{
    struct json_iter it = json_iter(json_get(answer, "lines").value);
    struct buf out = {0};
    size_t n = 0;

    for (; json_next(&it); n++) {
        if (l->args->json) {
            json_one_line(&out, it.value);
            buf_char(&out, '\n');
        } else {
            put_text_line(&out, it.value);
        }
    }
    cmd_print(&out);
    return n;
}

static void put_path(struct buf *path, const struct logs *l, uint64_t limit)
{
    buf_printf(path, "/api/logs?limit=%" PRIu64, limit);
    if (l->name) {
        buf_str(path, "&server=");
        daemon_put_value(path, l->name);
    }
    if (l->level)
        buf_printf(path, "&level=%s", l->level);
}

static int64_t number_of(struct span answer, const char *key)
{
    int64_t n = 0;

    (void)json_int(json_get(answer, key).value, &n);
    return n;
}

/* --- once --- */

static int show(struct logs *l)
{
    BUF_SCOPED path = {0}, answer = {0}, scratch = {0};
    int status = 0;

    put_path(&path, l, l->n);
    bool fine = daemon_fetch(l->d, buf_cstr(&path), SPAN_EMPTY, &status, &answer) == 0 &&
                daemon_agreed(l->d, status, buf_view(&answer));
    if (fine) {
        size_t n = print_lines(l, buf_view(&answer));
        if (!n && l->n && !l->follow)
            cmd_hint("no such line is kept; 'log.level' and 'log.keep' of the configuration say "
                     "which are");
        l->next = number_of(buf_view(&answer), "next");
        buf_span(&l->run, daemon_text(buf_view(&answer), "run", &scratch));
    }
    return fine ? CMD_FINE : CMD_FAILED;
}

/* --- following --- */

/* Is it another daemon that answers? It numbers its lines from 0, so all of them are shown. */
static bool is_another(struct logs *l, struct span answer)
{
    BUF_SCOPED scratch = {0};
    struct span run = daemon_text(answer, "run", &scratch);
    bool another = !span_eq(run, buf_view(&l->run));

    if (another) {
        buf_reset(&l->run, 64);
        buf_span(&l->run, run);
        l->next = 0;
        if (!l->gone)
            cmd_error(l->args->command, "the daemon was started again");
    }
    return another;
}

/* Prints the new lines. True when there may be more right away. */
static bool take_answer(struct logs *l, struct span answer)
{
    bool another = is_another(l, answer);

    l->gone = false;
    if (another)
        return true;
    int64_t lost = number_of(answer, "lost");
    if (lost)
        cmd_error(l->args->command, "%" PRId64 " lines came faster than they could be fetched",
                  lost);
    l->next = number_of(answer, "next");
    return print_lines(l, answer) == AT_ONCE;
}

/* Negative when following must end. */
static int look(struct logs *l, bool *more)
{
    BUF_SCOPED path = {0}, answer = {0};
    int status = 0, code = 0;

    put_path(&path, l, AT_ONCE);
    buf_printf(&path, "&after=%" PRId64, l->next);
    *more = false;
    if (daemon_try(l->d, buf_cstr(&path), &status, &answer)) {
        if (!l->gone && !daemon_is_over(l->d))
            cmd_error(l->args->command, "the daemon is gone; waiting for the next");
        l->gone = true;
    } else if (daemon_agreed(l->d, status, buf_view(&answer))) {
        *more = take_answer(l, buf_view(&answer));
    } else {
        code = ERR_PROTOCOL;
    }
    return code;
}

static int follow(struct logs *l)
{
    bool more = false;

    while (!ferror(stdout) && (more ? !daemon_is_over(l->d) : daemon_pause(l->d, LOOK_MS)))
        if (look(l, &more))
            return CMD_FAILED;
    return CMD_FINE;
}

/* --- the command line --- */

static int take_option(struct logs *l, int id, const char *value)
{
    enum log_level level;
    char *end;

    switch (id) {
    case 'f':
        l->follow = true;
        return CMD_FINE;
    case 'n':
        l->n = strtoull(value, &end, 10);
        if (ascii_is_digit(*value) && !*end && l->n <= SHOWN_MAX)
            return CMD_FINE;
        cmd_error(l->args->command, "-n takes a number up to %d, not '%s'", SHOWN_MAX, value);
        return CMD_USAGE;
    default:
        l->level = value;
        if (log_level_parse(value, &level))
            return CMD_FINE;
        cmd_error(l->args->command, "--level takes error, warn, info or debug, not '%s'", value);
        return CMD_USAGE;
    }
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct logs l = {.args = &a, .n = SHOWN};
    int id;

    while ((id = args_next(&a)) > 0)
        if (take_option(&l, id, a.value))
            return CMD_USAGE;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    l.name = a.rest_n ? a.rest[0] : NULL;
    l.d = daemon_find(&a);
    if (!l.d)
        return CMD_FAILED;
    if (l.follow)
        daemon_mind_signals(l.d);
    int code = show(&l);
    if (code == CMD_FINE && l.follow)
        code = follow(&l);
    buf_fini(&l.run);
    daemon_free(l.d);
    return code;
}

static const struct cmd_option options[] = {
    {"follow", 'f', NULL, "show new lines as they come, until interrupted"},
    {"level", OPT_LEVEL, "error|warn|info|debug", "only lines that are at least so bad"},
    {"lines", 'n', "N", "so many of the last ones (50)"},
    ARGS_OPTION_CONFIG,
    ARGS_OPTION_JSON,
    {NULL}};

const struct command command_logs = {
    .name = "logs",
    .summary = "Show the last lines of the running daemon's log, and those that come",
    .usage = "[NAME]",
    .about = "The daemon keeps the last lines of its log in memory ('log.keep' in the\n"
             "configuration says how much), among them what the servers print on their standard\n"
             "error. NAME is a server, or another part of the daemon, such as rialto or http.\n"
             "With --json each line is an object of its own.",
    .options = options,
    .run = run,
};
