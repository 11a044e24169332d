/* Connecting to the control socket, asking to be attached, and starting a daemon when nobody
 * listens there. Called by shim.c. */
#include "cmd/attach.h"

#include "base/buf.h"
#include "base/libc.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* GRACE_MS: how long to wait for a daemon that has ended to come back by itself (systemd restarts
 * it); START_MS: how long a new daemon may take to listen, whichever shim starts it. */
enum { GRACE_MS = 700, START_MS = 20 * 1000, ANSWER_MS = 10 * 1000, TURN_MS = 15 };
enum { CHUNK = 4 * 1024, ANSWER_MAX = 64 * 1024, LOG_MAX = 4 * 1024 * 1024, TAIL_MAX = 4 * 1024 };

/* Why an attempt to attach failed. LATER: the daemon answered with 503 or not at all; try again. */
enum { NOBODY = -1, LATER = -2, REFUSED = -3 };

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static void say(const char *what, const char *detail)
{
    fprintf(stderr, "rialto stdio: %s%s%s\n", what, *detail ? ": " : "", detail);
}

/* --- one attempt --- */

static int try_connect(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof to.sun_path)
        return -1;
    memcpy(to.sun_path, path, strlen(path));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Is it a daemon of our user, or of root? Root may use anybody's: it has chosen the socket. */
static bool is_of_us(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getuid() == 0 || (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                             (peer.uid == getuid() || peer.uid == 0));
}

static bool send_all(int fd, struct span text)
{
    while (text.n) {
        ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        text = span_from(text, n > 0 ? (size_t)n : 0);
    }
    return true;
}

/* Reads the head of the answer; the body of a refusal comes in the same read. After a 101 the
 * daemon sends nothing before the host's first line. Returns the length of the head; 0 when the
 * connection broke or nothing came in time. */
static size_t read_answer(int fd, struct buf *answer)
{
    long end = now_ms() + ANSWER_MS;
    const char *blank;

    while (!(blank = answer->n ? memmem(answer->p, answer->n, "\r\n\r\n", 4) : NULL)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        long left = end - now_ms();
        if (answer->n > ANSWER_MAX || left <= 0 || poll(&p, 1, (int)left) < 0)
            return 0;
        ssize_t n = p.revents ? read(fd, buf_room(answer, CHUNK), CHUNK) : 0;
        if (n <= 0)
            return 0;
        answer->n += (size_t)n;
    }
    return (size_t)(blank + 4 - answer->p);
}

/* Prints why the daemon refused the shim. */
static void say_refused(struct span head, struct span body)
{
    BUF_SCOPED error = {0}, hint = {0};

    if (json_skim(body, NULL, NULL, NULL, NULL) || json_type_of(body) != JSON_OBJECT) {
        buf_span(&error, span_cut(head, 0, span_find(head, '\r')));
        say("the daemon refused", buf_cstr(&error));
        return;
    }
    json_unescape(&error, json_get(body, "error").value);
    json_unescape(&hint, json_get(body, "hint").value);
    say(buf_cstr(&error), buf_cstr(&hint));
}

/* The variables that the daemon asks for, from the head of its answer. */
static void read_names(struct span head, struct buf *names)
{
    static const char header[] = "\r\nRialto-Variables: "; /* hub/shims.h */
    const char *at = memmem(head.p, head.n, header, sizeof header - 1);

    names->n = 0;
    if (!at)
        return;
    struct span rest = span_from(head, (size_t)(at - head.p) + sizeof header - 1);
    buf_span(names, span_cut(rest, 0, span_find(rest, '\r')));
}

/* A descriptor, or one of the codes above. */
static int try_attach(const struct shim_options *o, struct buf *names)
{
    BUF_SCOPED ask = {0}, answer = {0};
    int fd = try_connect(o->socket), code = LATER;

    if (fd < 0)
        return NOBODY;
    if (!is_of_us(fd)) {
        say("the daemon there is another user's", o->socket);
        close(fd);
        return REFUSED;
    }
    buf_printf(&ask,
               "GET /attach?%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
               "Upgrade: rialto-shim\r\n\r\n",
               o->query);
    size_t n = send_all(fd, buf_view(&ask)) ? read_answer(fd, &answer) : 0;
    struct span head = span_cut(buf_view(&answer), 0, n);
    struct span status = span_cut(head, n ? sizeof "HTTP/1.1" - 1 : 0, n ? 4 : 0);
    if (span_is(status, " 101")) {
        read_names(head, names);
        return fd;
    }
    if (n && !span_is(status, " 503")) {
        say_refused(head, span_from(buf_view(&answer), n));
        code = REFUSED;
    }
    close(fd);
    return code;
}

/* --- starting a daemon --- */

/* A daemon that is being started by us. */
struct starting {
    int lock;  /* descriptor; -1: not held by us */
    int ready; /* the daemon's standard output: a line when it listens, EOF when it has failed */
    long log_from;
};

static int open_log(const char *path)
{
    struct stat st;
    BUF_SCOPED old = {0};

    if (!*path)
        return -1;
    buf_printf(&old, "%s.1", path);
    if (stat(path, &st) == 0 && st.st_size > LOG_MAX)
        rename(path, buf_cstr(&old));
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* Runs in the new process: leaves the host's session, folder and pipes, and starts the daemon. */
static void become_daemon(const struct shim_options *o, int log, int ready)
{
    const char *home = getenv("HOME");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (fork() != 0)
        _exit(0); /* keeps the daemon out of the host's process tree */
    if ((!home || chdir(home) < 0) && chdir("/") < 0)
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(ready, STDOUT_FILENO);
    dup2(log >= 0 ? log : null, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, UINT_MAX, 0); /* what the host left open for its programs */
    execv(o->daemon[0], o->daemon);
    dprintf(STDERR_FILENO, "rialto stdio: cannot start %s: %s\n", o->daemon[0], strerror(errno));
    _exit(1);
}

static void start_daemon(const struct shim_options *o, struct starting *s)
{
    int pipes[2], log = open_log(o->log);
    int status;

    if (pipe2(pipes, O_CLOEXEC) < 0) {
        close(log);
        return;
    }
    s->log_from = log >= 0 ? (long)lseek(log, 0, SEEK_END) : 0;
    pid_t child = fork();
    if (child == 0)
        become_daemon(o, log, pipes[1]);
    close(pipes[1]);
    close(log);
    s->ready = pipes[0];
    if (child > 0)
        waitpid(child, &status, 0);
    if (log >= 0)
        say("no daemon runs for this configuration: starting one; log", o->log);
    else
        say("no daemon runs for this configuration: starting one, without a log", "");
}

/* Takes the lock, so that only one shim starts a daemon. True also when the lock file cannot be
 * opened: then every shim may start one. */
static bool take_lock(const struct shim_options *o, struct starting *s)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "%s.lock", o->socket);
    s->lock = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    close(s->lock);
    s->lock = -1;
    return false;
}

static void end_starting(struct starting *s)
{
    if (s->ready >= 0)
        close(s->ready);
    if (s->lock >= 0)
        close(s->lock);
    *s = (struct starting){.lock = -1, .ready = -1};
}

/* Waits a moment for the daemon that is being started; true when it has failed. */
static bool has_failed(struct starting *s)
{
    struct pollfd p = {.fd = s->ready, .events = POLLIN};
    char line[64];

    if (poll(&p, 1, TURN_MS) <= 0)
        return false;
    ssize_t n = read(s->ready, line, sizeof line);
    if (n <= 0)
        return true;
    close(s->ready); /* it listens */
    s->ready = -1;
    return false;
}

/* Prints what the daemon wrote to its log before it ended. */
static void say_failed(const struct shim_options *o, const struct starting *s)
{
    char text[TAIL_MAX];
    int fd = *o->log ? open(o->log, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text, s->log_from) : 0;

    say("the daemon did not start", "");
    if (n > 0)
        fwrite(text, 1, (size_t)n, stderr);
    if (fd >= 0)
        close(fd);
}

int attach_to_daemon(const struct shim_options *o, int again, struct buf *names)
{
    struct starting s = {.lock = -1, .ready = -1};
    long begin = now_ms(), patient_until = again ? begin + GRACE_MS : begin;
    bool started = false;
    int got;

    while ((got = try_attach(o, names)) < 0 && got != REFUSED && now_ms() - begin < START_MS) {
        if (s.ready >= 0 && has_failed(&s)) {
            got = try_attach(o, names); /* it also ends when another daemon listens already */
            if (got == NOBODY)
                say_failed(o, &s);
            break;
        }
        if (s.ready < 0)
            poll(NULL, 0, TURN_MS);
        if (got != NOBODY || started || now_ms() < patient_until || !take_lock(o, &s))
            continue;
        int probe = try_connect(o->socket); /* another shim may just have started one */
        if (probe < 0)
            start_daemon(o, &s);
        else
            close(probe);
        started = probe < 0;
        if (!started)
            end_starting(&s);
    }
    end_starting(&s);
    if (got < 0 && got != REFUSED)
        say("there is no daemon at", o->socket);
    return got < 0 ? -1 : got;
}
