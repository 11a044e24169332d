/* Replacing ${NAME} in a text, and looking the name up in directories, by a command and in the
 * environment, ours or a caller's. Called by config.c, hub/graph/filling.c, hub/graph/bridge*.c,
 * hub/bus_settings.c, hub/auth/introspection.c, hub/graph/profile.c, hub/signin/signin.c and cmd/.
 */
#include "config/secret.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECRET_MAX = 64 * 1024, COMMAND_MS = 10 * 1000 };

/* The result of a look-up. */
struct secret_found {
    char *text;   /* "" for a name that was found nowhere */
    bool is_kept; /* in a file or by the command, so it is the same for every caller */
};

struct secrets {
    const struct config *config;
    struct map values; /* name -> struct secret_found */
    bool plain;
    struct secrets *ours;            /* for a caller: ours, for files and the command; else NULL */
    const struct variables *brought; /* that caller's variables */
};

struct secrets *secrets_new(const struct config *c)
{
    struct secrets *s = MEM_NEW(struct secrets);

    s->config = c;
    return s;
}

struct secrets *secrets_for_caller(struct secrets *ours, const struct variables *brought)
{
    struct secrets *s = secrets_new(ours->config);

    s->ours = ours;
    s->brought = brought;
    return s;
}

void secrets_set_plain(struct secrets *s)
{
    s->plain = true;
}

void secrets_free(struct secrets *s)
{
    size_t at = 0;
    void *value;

    if (!s)
        return;
    while (map_next(&s->values, &at, NULL, &value)) {
        mem_free(((struct secret_found *)value)->text);
        mem_free(value);
    }
    map_fini(&s->values);
    mem_free(s);
}

/* Files and commands end their secret with a line end that is not part of it. */
static void trim_line_end(struct buf *b)
{
    while (b->n && (b->p[b->n - 1] == '\n' || b->p[b->n - 1] == '\r'))
        b->n--;
}

static int ms_left(const struct timespec *end)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    long long left = (end->tv_sec - now.tv_sec) * 1000LL + (end->tv_nsec - now.tv_nsec) / 1000000;
    return left > 0 ? (int)left : 0;
}

/* Reads to the end; false when there is too much or it takes too long. */
static bool read_all(int fd, struct buf *out)
{
    struct timespec end;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += COMMAND_MS / 1000;
    for (;;) {
        if (poll(&p, 1, ms_left(&end)) <= 0)
            return false;
        ssize_t n = read(fd, buf_room(out, 4096), 4096);
        if (n <= 0)
            return n == 0;
        out->n += (size_t)n;
        if (out->n > SECRET_MAX)
            return false;
    }
}

static bool from_directory(const char *directory, const char *name, struct buf *out)
{
    char path[PATH_MAX];

    out->n = 0;
    if (!directory || !directory[0] ||
        snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = read_all(fd, out);
    close(fd);
    trim_line_end(out);
    return ok && out->n;
}

static bool is_told(struct span found)
{
    log_add_secret(found);
    credentials_in_text(found);
    return true;
}

bool secrets_in_files(const struct config_secrets *places, const char *name, struct buf *out)
{
    return (from_directory(places->directory, name, out) ||
            from_directory(getenv("CREDENTIALS_DIRECTORY"), name, out)) &&
           is_told(buf_view(out));
}

int secrets_start_command(const struct config_strings *command, const char *name, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int pipe_fds[2];

    if (!command->n || pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -ENOENT;
    const char **argv = MEM_ARRAY(const char *, command->n + 2);
    for (size_t i = 0; i < command->n; i++)
        argv[i] = command->items[i];
    argv[command->n] = name;
    posix_spawn_file_actions_init(&actions);
    /* The command may ask at the terminal, but must not read our standard input otherwise. */
    if (!isatty(STDIN_FILENO))
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    int failed = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    mem_free(argv);
    close(pipe_fds[1]);
    if (failed)
        close(pipe_fds[0]);
    return failed ? -failed : pipe_fds[0];
}

static int end_command(pid_t pid, struct buf *out, int wait_options)
{
    int status = 0;

    if (waitpid(pid, &status, wait_options) == 0)
        return -EAGAIN;
    trim_line_end(out);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && out->n && is_told(buf_view(out))
               ? 0
               : -ENOENT;
}

int secrets_end_command(pid_t pid, struct buf *out)
{
    return end_command(pid, out, WNOHANG);
}

/* The output of the command with the name as its last argument. */
static bool from_command(const struct config_strings *command, const char *name, struct buf *out)
{
    pid_t pid;
    int fd = secrets_start_command(command, name, &pid);

    out->n = 0;
    if (fd < 0)
        return false;
    bool ok = read_all(fd, out);
    close(fd);
    if (!ok)
        kill(pid, SIGKILL);
    return end_command(pid, out, 0) == 0 && ok;
}

bool secrets_in_environment(const char *name, struct buf *out)
{
    const char *value = getenv(name);

    out->n = 0;
    if (value)
        buf_str(out, value);
    return out->n && is_told(buf_view(out));
}

static bool is_project(struct span name)
{
    return span_is(name, VARIABLES_PROJECT);
}

/* True: a file or the command has it. */
static bool look_up(const struct secrets *s, const char *name, struct buf *out)
{
    const struct config *c = s->config;
    const char *value = is_project(span_str(name)) ? c->project : getenv(name);

    if (!is_project(span_str(name)) &&
        (secrets_in_files(&c->secrets, name, out) || from_command(&c->secrets.command, name, out)))
        return true;
    out->n = 0;
    if (value)
        buf_str(out, value);
    if (out->n && !is_project(span_str(name)) && (!s->plain || log_names_secret(span_str(name))))
        (void)is_told(buf_view(out));
    return false;
}

static const struct secret_found *find(struct secrets *s, struct span name)
{
    struct secret_found *f = map_get(&s->values, name);

    if (!f) {
        struct buf text = {0};
        char *key = mem_span(name);
        f = MEM_NEW(struct secret_found);
        f->is_kept = look_up(s, key, &text);
        f->text = buf_take(&text);
        map_put(&s->values, name, f);
        mem_free(key);
    }
    return f;
}

/* The value of a name; empty when there is none. */
static struct span value_of(struct secrets *s, struct span name)
{
    const struct secret_found *f = find(s->ours ? s->ours : s, name);

    if (!s->ours || f->is_kept)
        return span_str(f->text);
    struct span value = variables_get(s->brought, name);
    if (value.n && !is_project(name))
        (void)is_told(value);
    return value;
}

void secrets_put_open(const struct secrets *s, struct buf *out)
{
    size_t at = 0, n = 0;
    struct span name;
    void *f;

    while (n < VARIABLES_MAX && map_next(&s->values, &at, &name, &f))
        if (name.n <= VARIABLES_NAME_MAX && !((const struct secret_found *)f)->is_kept && ++n)
            buf_printf(out, "%s" SPAN_FMT, out->n ? " " : "", SPAN_ARG(name));
}

/* Reads the variable that `text` begins with. Returns its length; 0 when there is none. */
static size_t read_variable(struct span text, struct span *name, struct span *preset)
{
    size_t end = span_find(text, '}');

    if (!span_starts(text, SPAN("${")) || end == text.n)
        return 0;
    *name = span_cut(text, 2, end - 2);
    *preset = SPAN_EMPTY;
    if (span_starts(*name, SPAN("env:")))
        *name = span_from(*name, 4);
    size_t colon = span_find(*name, ':');
    if (span_starts(span_from(*name, colon), SPAN(":-"))) {
        *preset = span_from(*name, colon + 2);
        *name = span_cut(*name, 0, colon);
    }
    return name->n && ascii_is_words(*name, "_") ? end + 1 : 0;
}

void secrets_fill(struct secrets *s, const char *text, struct buf *out, struct buf *missing)
{
    struct span rest = span_str(text), name, preset;

    while (rest.n) {
        size_t n = read_variable(rest, &name, &preset);
        if (span_starts(rest, SPAN("$${"))) {
            buf_str(out, "${");
            n = 3;
        } else if (!n) {
            buf_char(out, rest.p[0]);
            n = 1;
        } else {
            struct span value = value_of(s, name);
            if (!value.n && !preset.p) {
                buf_str(missing, missing->n ? ", " : "");
                buf_span(missing, name);
            }
            buf_span(out, value.n ? value : preset);
        }
        rest = span_from(rest, n);
    }
}

void secrets_find(struct secrets *s, const char *name, struct buf *out)
{
    buf_span(out, value_of(s, span_str(name)));
}
