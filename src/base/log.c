#include "base/log.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SECRET_MIN = 4 };

static struct {
    enum log_level level;
    bool json;
    char **secrets;
    size_t secrets_n;
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

void log_set_json(bool json)
{
    state.json = json;
}

bool log_enabled(enum log_level level)
{
    return level <= state.level;
}

void log_add_secret(struct span secret)
{
    if (secret.n < SECRET_MIN)
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
            i += keep + hide;
        } else {
            buf_char(out, text.p[i++]);
        }
    }
}

/* Control characters from a peer must not reach the terminal or break the line. */
static void put_text(struct buf *out, struct span s, bool json)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (json && (c == '"' || c == '\\')) {
            buf_char(out, '\\');
            buf_char(out, (char)c);
        } else if (c < 0x20 || c == 0x7f) {
            buf_printf(out, json ? "\\u%04x" : "\\x%02x", c);
        } else {
            buf_char(out, (char)c);
        }
    }
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
    ssize_t ignored = write(STDERR_FILENO, line.p, line.n);
    (void)ignored;
    buf_fini(&raw);
    buf_fini(&clean);
    buf_fini(&line);
}
