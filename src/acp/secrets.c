/* Finds environment, headers, arguments and addresses in messages, tells the log's redactor of the
 * secrets among them, and writes messages without the values. Called by trace.c for every text that
 * is shown, and by conductor.c for requests that set up a session. */
#include "acp/secrets.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/credentials.h"
#include "wire/json.h"

enum {
    KNOWN_MAX = 4096, /* secrets slow the redactor down, and peers decide how many there are */
    ARGUMENTS_MAX = 256,
};

/* A message being written for people; `out` is NULL when only the secrets are to be learnt. */
struct showing {
    struct buf *out;
    const char *done; /* the message up to here is in `out` */
};

static void hide(struct showing *s, struct span value)
{
    if (!s->out)
        return;
    buf_span(s->out, span_of(s->done, (size_t)(value.p - s->done)));
    buf_str(s->out, "\"***\"");
    s->done = value.p + value.n;
}

static bool may_learn(void)
{
    return log_secret_count() < KNOWN_MAX;
}

/* Both raw; a value that is no string is skipped. */
static void learn_pair(struct span name, struct span value)
{
    BUF_SCOPED names = {0}, values = {0};

    if (may_learn() && json_type_of(name) == JSON_STRING && json_type_of(value) == JSON_STRING)
        credentials_in_pair(json_text(name, &names), json_text(value, &values));
}

/* "NAME=value" */
static void learn_assignment(struct span raw)
{
    BUF_SCOPED text = {0};
    struct span pair = json_text(raw, &text);
    size_t end = span_find(pair, '=');

    if (may_learn())
        credentials_in_pair(span_cut(pair, 0, end), span_from(pair, end + 1));
}

/* A map of names to values, a list of {"name", "value"}, or a list of "NAME=value". */
static void show_pairs(struct showing *s, struct span pairs)
{
    struct json_iter it = json_iter(pairs);

    while (json_next(&it)) {
        struct span hidden = it.value;
        if (it.object) {
            learn_pair(it.key, it.value);
        } else if (it.type == JSON_STRING) {
            learn_assignment(it.value);
        } else if (json_get(it.value, "value").type != JSON_NONE) {
            hidden = json_get(it.value, "value").value;
            learn_pair(json_get(it.value, "name").value, hidden);
        }
        hide(s, hidden);
    }
}

static void learn_text(struct span raw)
{
    BUF_SCOPED text = {0};

    if (may_learn())
        credentials_in_text(json_text(raw, &text));
}

static void learn_arguments(struct span list)
{
    char *args[ARGUMENTS_MAX + 1] = {0};
    struct json_iter it = json_iter(list);
    size_t n = 0;

    while (may_learn() && n < ARGUMENTS_MAX && json_next(&it)) {
        BUF_SCOPED text = {0};
        args[n++] = mem_span(it.type == JSON_STRING ? json_text(it.value, &text) : it.value);
    }
    credentials_in_args((const char *const *)args);
    while (n)
        mem_free(args[--n]);
}

static bool is_container(enum json_type type)
{
    return type == JSON_OBJECT || type == JSON_ARRAY;
}

enum telling { TELLS_NOTHING, TELLS_PAIRS, TELLS_ARGUMENTS, TELLS_TEXT };

/* The kind of secrets to look for in a member of this name. */
static enum telling telling_of(struct span key)
{
    static const struct {
        const char *name;
        enum telling telling;
    } rows[] = {{"env", TELLS_PAIRS},
                {"headers", TELLS_PAIRS},
                {"args", TELLS_ARGUMENTS},
                {"url", TELLS_TEXT},
                {"command", TELLS_TEXT}};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (json_string_is(key, span_str(rows[i].name)))
            return rows[i].telling;
    return TELLS_NOTHING;
}

/* Recursive: as deep as the JSON is, at most JSON_MAX_DEPTH. */
static void show(struct showing *s, struct span value)
{
    struct json_iter it = json_iter(value);

    while (json_next(&it)) {
        enum telling telling = it.object ? telling_of(it.key) : TELLS_NOTHING;
        if (telling == TELLS_PAIRS && is_container(it.type))
            show_pairs(s, it.value);
        else if (telling == TELLS_ARGUMENTS && it.type == JSON_ARRAY)
            learn_arguments(it.value);
        else if (telling == TELLS_TEXT && it.type == JSON_STRING)
            learn_text(it.value);
        else if (is_container(it.type))
            show(s, it.value);
    }
}

void acp_secrets_learn(struct span message)
{
    struct showing s = {0};

    show(&s, message);
}

void acp_secrets_put(struct buf *out, struct span message)
{
    struct showing s = {.out = out, .done = message.p};

    if (json_skim(message, NULL, NULL, NULL, NULL)) {
        buf_printf(out, "(%zu bytes that are not JSON)", message.n);
        return;
    }
    show(&s, message);
    buf_span(out, span_of(s.done, (size_t)(message.p + message.n - s.done)));
}
