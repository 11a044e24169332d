#include "base/log.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SECRET_MIN = 4 };

static struct {
    enum log_level level;
    bool json, muted;
    char **secrets;
    size_t secrets_n;
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

void log_add_secret(struct span secret)
{
    if (secret.n < SECRET_MIN)
        return;
    /* Told at every reload of the configuration: the list must not grow by it. */
    for (size_t i = 0; i < state.secrets_n; i++)
        if (span_is(secret, state.secrets[i]))
            return;
    state.secrets = mem_resize(state.secrets, (state.secrets_n + 1) * sizeof(char *));
    state.secrets[state.secrets_n++] = mem_span(secret);
}

void log_forget_secrets(void)
{
    for (size_t i = 0; i < state.secrets_n; i++)
        mem_free(state.secrets[i]);
    mem_free(state.secrets);
    state.secrets = NULL;
    state.secrets_n = 0;
}

/* Length of the secret that starts at the front of `rest`, or 0. */
static size_t known_secret(struct span rest)
{
    size_t longest = 0;
    for (size_t i = 0; i < state.secrets_n; i++) {
        struct span secret = span_str(state.secrets[i]);
        if (secret.n > longest && span_starts(rest, secret))
            longest = secret.n;
    }
    return longest;
}

static bool token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~+/=", c) != NULL);
}

/* "Bearer abc" and "://user:pw@host": how many bytes to keep, and how many behind them to hide. */
static size_t shaped_secret(struct span rest, size_t *keep)
{
    if (rest.n > 7 && span_eq_nocase(span_cut(rest, 0, 7), SPAN("bearer "))) {
        size_t n = 0;
        while (7 + n < rest.n && token_char(rest.p[7 + n]))
            n++;
        *keep = 7;
        return n;
    }
    if (span_starts(rest, SPAN("://"))) {
        size_t colon = 0, at = 0;
        for (size_t i = 3; i < rest.n && !strchr("/?# \"'", rest.p[i]); i++) {
            if (rest.p[i] == ':' && !colon)
                colon = i;
            if (rest.p[i] == '@')
                at = i; /* the last one counts: a password may have its own */
        }
        if (colon && at > colon) {
            *keep = colon + 1;
            return at - colon - 1;
        }
    }
    return 0;
}

/* Where what is hidden ends, given that secrets may begin within it and go on behind it. */
static size_t hidden_end(struct span rest, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        size_t n = known_secret(span_from(rest, i));
        end = i + n > end ? i + n : end;
    }
    return end;
}

void log_redact(struct buf *out, struct span text)
{
    size_t i = 0;

    while (i < text.n) {
        struct span rest = span_from(text, i);
        size_t keep = 0;
        size_t hide = known_secret(rest);
        if (!hide)
            hide = shaped_secret(rest, &keep);
        if (hide) {
            /* The user's name may itself be a secret that we know; it has no shaped one in it. */
            log_redact(out, span_cut(rest, 0, keep));
            buf_str(out, "***");
            i += hidden_end(rest, keep, keep + hide);
        } else {
            buf_char(out, text.p[i++]);
        }
    }
}

/* Control characters from a peer must not reach the terminal or break the line, and what is not
 * UTF-8 would make a line of JSON something else. */
static void put_text(struct buf *out, struct span s, bool json)
{
    for (size_t i = 0, n = 0; i < s.n; i += n) {
        unsigned char c = (unsigned char)s.p[i];
        n = utf8_length(s.p + i, s.p + s.n);
        bool wild = n == 0, control = utf8_control(s.p + i, s.p + s.n) > 0;
        n += wild;
        if (json && (c == '"' || c == '\\')) {
            buf_char(out, '\\');
            buf_char(out, (char)c);
        } else if (wild && json) {
            buf_str(out, "\xef\xbf\xbd");
        } else if (wild || control) {
            buf_printf(out, json || n > 1 ? "\\u%04x" : "\\x%02x", (unsigned char)s.p[i + n - 1]);
        } else {
            buf_span(out, span_cut(s, i, n));
        }
    }
}

/* A line about a line would have no end. */
static void tell(const struct log_record *line)
{
    if (!state.heard || state.telling)
        return;
    state.telling = true;
    state.heard(state.heard_arg, line);
    state.telling = false;
}

void log_line(enum log_level level, const char *who, const char *fmt, ...)
{
    if (!log_enabled(level))
        return;

    struct buf raw = {0}, clean = {0}, line = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    log_redact(&clean, buf_view(&raw));

    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);

    buf_printf(&line,
               state.json ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"who\":\""
                          : "%s.%03ldZ %-5s ",
               stamp, now.tv_nsec / 1000000, level_words[level]);
    put_text(&line, span_str(who), state.json);
    buf_str(&line, state.json ? "\",\"message\":\"" : ": ");
    put_text(&line, buf_view(&clean), state.json);
    buf_str(&line, state.json ? "\"}\n" : "\n");

    /* One write, so that lines of several processes on one terminal do not mix. */
    ssize_t ignored = state.muted ? 0 : write(STDERR_FILENO, line.p, line.n);
    (void)ignored;
    tell(&(struct log_record){
        .level = level,
        .at = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
        .who = who,
        .text = buf_view(&clean),
    });
    buf_fini(&raw);
    buf_fini(&clean);
    buf_fini(&line);
}
