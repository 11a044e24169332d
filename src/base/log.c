/* The log's level, format and listener, and log_line, which redacts a line and writes it to stderr.
 * Lines come from every folder but base/, wire/ and config/; cmd/ and admin/log_ring.c change the
 * settings. */
#include "base/log.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How long we stand still for whoever reads our stderr, once, until lines are lost. */
enum { PATIENCE_MS = 200 };

static struct {
    enum log_level level;
    bool json, muted;
    struct buf unsent; /* the end of a line that was begun, or a line */
    size_t lost;       /* lines since then */
    bool stuck;        /* nobody reads: not waited for again */
    void (*heard)(void *arg, const struct log_record *line);
    void *heard_arg;
    bool telling;
} state = {.level = LOG_INFO};

static const char *const level_words[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    state.level = level;
}

bool log_level_parse(const char *word, enum log_level *level)
{
    for (size_t i = 0; i < COUNT_OF(level_words); i++) {
        if (strcmp(word, level_words[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

const char *log_level_name(enum log_level level)
{
    return level_words[level];
}

void log_set_listener(void (*heard)(void *arg, const struct log_record *line), void *arg)
{
    state.heard = heard;
    state.heard_arg = arg;
}

void log_set_json(bool json)
{
    state.json = json;
}

void log_set_muted(bool muted)
{
    state.muted = muted;
}

bool log_enabled(enum log_level level)
{
    return level <= state.level;
}

enum log_level log_seldom(uint64_t *last, uint64_t now)
{
    if (*last && now - *last < 1000)
        return LOG_DEBUG;
    *last = now;
    return LOG_WARN;
}

/* Invisible characters must not reach the terminal or break the line, and bytes that are not UTF-8
 * would make a JSON line invalid. */
static void put_text(struct buf *out, struct span s, bool json)
{
    for (size_t i = 0, n = 0; json && i < s.n; i += n) {
        n = utf8_length(s.p + i, s.p + s.n);
        if (s.p[i] == '"' || s.p[i] == '\\')
            buf_char(out, '\\');
        if (n)
            visible_put(out, span_cut(s, i, n), 0);
        else
            buf_str(out, "\xef\xbf\xbd");
        n += !n;
    }
    if (!json)
        visible_put(out, s, 0);
}

/* Lines that the listener logs are not passed to it: that would never end. */
static void tell(const struct log_record *line)
{
    if (!state.heard || state.telling)
        return;
    state.telling = true;
    state.heard(state.heard_arg, line);
    state.telling = false;
}

static void put_line(struct buf *out, const struct timespec *now, enum log_level level,
                     struct span who, struct span text)
{
    struct tm tm;
    char stamp[32];

    gmtime_r(&now->tv_sec, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(
        out, state.json ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"who\":\"" : "%s.%03ldZ %-5s ",
        stamp, now->tv_nsec / 1000000, level_words[level]);
    put_text(out, who, state.json);
    buf_str(out, state.json ? "\",\"message\":\"" : ": ");
    put_text(out, text, state.json);
    buf_str(out, state.json ? "\"}\n" : "\n");
}

/*
 * Writes what waits. A pipe that nobody reads, or a terminal after Ctrl-S, must not stop us: poll
 * promises of a pipe that PIPE_BUF bytes fit into it. In one write, where it is not longer than
 * that, so that lines of several processes on one terminal do not mix.
 */
static bool flush(void)
{
    struct pollfd end = {.fd = STDERR_FILENO, .events = POLLOUT};

    while (state.unsent.n) {
        state.stuck = poll(&end, 1, state.stuck ? 0 : PATIENCE_MS) <= 0;
        if (state.stuck)
            return false;
        size_t some = state.unsent.n < PIPE_BUF ? state.unsent.n : PIPE_BUF;
        ssize_t n = write(STDERR_FILENO, state.unsent.p, some);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        buf_drop(&state.unsent, n < 0 ? state.unsent.n : (size_t)n); /* nobody will ever read it */
    }
    buf_reset(&state.unsent, 0);
    return true;
}

static void write_line(const struct timespec *now, enum log_level level, struct span who,
                       struct span text)
{
    char lost[64];

    if (!flush()) {
        state.lost++;
        return;
    }
    if (state.lost) {
        snprintf(lost, sizeof lost, "%zu lines were lost: nobody read them in time", state.lost);
        put_line(&state.unsent, now, LOG_WARN, SPAN("log"), span_str(lost));
        state.lost = 0;
    }
    put_line(&state.unsent, now, level, who, text);
    flush();
}

void log_line(enum log_level level, const char *who, const char *fmt, ...)
{
    if (!log_enabled(level))
        return;

    BUF_SCOPED raw = {0}, clean = {0}, name = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    log_redact(&clean, buf_view(&raw));
    log_redact(&name, span_str(who)); /* `who` may be a command line */

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!state.muted)
        write_line(&now, level, buf_view(&name), buf_view(&clean));
    tell(&(struct log_record){
        .level = level,
        .at = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
        .who = buf_cstr(&name),
        .text = buf_view(&clean),
    });
}
