/*
 * log: one line on stderr per event, as text or as JSON.
 *
 * The log, with its list of secrets, is the only global state of the program, but for a limit of
 * our process (io/kin.c). Every line passes the redactor on its way out, and so must everything
 * else that shows peers' bytes to a person (dumps, traces, error texts): log_redact is that one
 * redactor.
 *
 * Nobody waits for who reads stderr, but for a moment: lines that do not get through are counted,
 * and the next one that does is preceded by how many there were.
 */
#ifndef RIALTO_BASE_LOG_H
#define RIALTO_BASE_LOG_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
/* The words are error, warn, info and debug; false for any other. */
bool log_level_parse(const char *word, enum log_level *level);
void log_set_json(bool json);
/* Nothing is written to stderr; the listener still gets every line. */
void log_set_muted(bool muted);
bool log_enabled(enum log_level level);

/* `who` is the part of the program or the server's alias that the line is about. */
void log_line(enum log_level level, const char *who, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(who, ...) log_line(LOG_ERROR, who, __VA_ARGS__)
#define log_warn(who, ...)  log_line(LOG_WARN, who, __VA_ARGS__)
#define log_info(who, ...)  log_line(LOG_INFO, who, __VA_ARGS__)
#define log_debug(who, ...)                                                                        \
    do {                                                                                           \
        if (log_enabled(LOG_DEBUG))                                                                \
            log_line(LOG_DEBUG, who, __VA_ARGS__);                                                 \
    } while (0)

/*
 * The level for a line that may come in floods: LOG_WARN once a second, else LOG_DEBUG. `last` is
 * the caller's, zeroed at first; `now` is in ms.
 */
enum log_level log_seldom(uint64_t *last, uint64_t now);

/* A line that was written, valid inside the callback. */
struct log_record {
    enum log_level level;
    uint64_t at; /* ms of Unix time */
    const char *who;
    struct span text; /* redacted, but control characters are not escaped */
};
/*
 * Call `heard` with each line that is written, from inside log_line; NULL: no listener. `heard` is
 * not called for lines that it logs itself.
 */
void log_set_listener(void (*heard)(void *arg, const struct log_record *line), void *arg);
const char *log_level_name(enum log_level level);

/*
 * From now on log_redact hides `secret` and each of its lines of eight bytes or more: as they are,
 * escaped as in JSON, C, HTML, URLs, forms or shells (also several times), and in base64. The value
 * is copied. Less than four bytes, a number of up to five digits or a word like "true" is not
 * hidden: the log would become unreadable.
 */
void log_add_secret(struct span secret);
/* The secret is not valid any more, like a token that was replaced. It is removed because the list
 * must not grow for ever. */
void log_drop_secret(struct span secret);
/* The same for a secret that others may have as well, such as the token of one of several sign-ins:
 * it is hidden until each that holds it has released it, and no log_add_secret is left. */
void log_hold_secret(struct span secret);
void log_release_secret(struct span secret);
void log_forget_secrets(void);
/* How many patterns are searched for in each line: several for each secret. */
size_t log_secret_count(void);
/* Does a variable, header, option or parameter of this name have a secret as its value? */
bool log_names_secret(struct span name);
/* Append `text` to `out` with secrets, bearer tokens, passwords and tokens in URLs replaced by
 * "***". A secret that the end of the text cuts off is hidden if at least eight bytes of it are
 * there. */
void log_redact(struct buf *out, struct span text);

#endif
