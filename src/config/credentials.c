/* Finds secrets in the texts of a configuration. Called by config.c after reading, by secret.c,
 * hub/graph/filling.c and hub/graph/server.c when ${NAME} was filled in, and by acp/secrets.c and
 * cmd/conductor.c. */
#include "config/credentials.h"

#include "base/ascii.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

/* A server sees a part of a URL without its escapes, so the redactor has to know both forms. */
static void add_decoded(struct span part)
{
    BUF_SCOPED decoded = {0};
    char digits[3] = {0};

    for (size_t i = 0; i < part.n; i++) {
        char *end = digits;
        unsigned long byte = 0;
        if (part.p[i] == '%' && i + 2 < part.n) {
            memcpy(digits, part.p + i + 1, 2);
            byte = strtoul(digits, &end, 16);
        }
        bool escaped = end == digits + 2;
        buf_char(&decoded, escaped ? (char)byte : part.p[i]);
        i += escaped ? 2 : 0;
    }
    log_add_secret(part);
    log_add_secret(buf_view(&decoded));
}

/* "user:password" */
static void add_password(struct span login)
{
    size_t colon = span_find(login, ':');

    if (colon < login.n)
        add_decoded(span_from(login, colon + 1));
}

static bool ends_authority(char c)
{
    return (unsigned char)c <= ' ' || strchr("/?#\"'(", c);
}

/* The login before the last @ of the authority that `text` begins with. */
static void add_login(struct span text)
{
    size_t at = 0, n = 0;

    for (; n < text.n && !ends_authority(text.p[n]); n++)
        if (text.p[n] == '@')
            at = n;
    add_password(span_cut(text, 0, at));
}

/* "name=value" around the = at `at`; the value may be quoted. */
static void add_named(struct span text, size_t at, bool all)
{
    size_t from = at, n = 0;
    struct span value = span_from(text, at + 1);
    bool quoted = value.n && (value.p[0] == '"' || value.p[0] == '\'');

    while (from && ascii_is_word(text.p[from - 1], "_-."))
        from--;
    if (!all && !log_names_secret(span_cut(text, from, at - from)))
        return;
    if (quoted)
        value = span_cut(span_from(value, 1), 0, span_find(span_from(value, 1), value.p[0]));
    while (n < value.n &&
           (quoted || ((unsigned char)value.p[n] > ' ' && !strchr("&;#", value.p[n]))))
        n++;
    add_decoded(span_cut(value, 0, n));
}

static void add_parts(struct span text, bool all)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '=')
            add_named(text, i, all);
        if (span_starts(span_from(text, i), SPAN("://")))
            add_login(span_from(text, i + 3));
    }
}

void credentials_in_text(struct span text)
{
    add_parts(text, false);
}

/* "Bearer abc", or "Basic" and the base64 of "user:password". */
static void add_scheme(struct span value)
{
    struct span behind = span_trim(span_from(value, span_find(value, ' ')));
    BUF_SCOPED login = {0};

    if (!behind.n)
        return;
    log_add_secret(behind);
    if (base64_read(&login, behind) == 0)
        add_password(buf_view(&login));
}

void credentials_in_pair(struct span name, struct span value)
{
    bool named = log_names_secret(name);

    /* Every part of a cookie is a secret; of other texts, only parts whose name suggests it. */
    add_parts(value, named && span_has_nocase(name, SPAN("cookie")));
    if (!named)
        return;
    log_add_secret(value);
    add_scheme(value);
    add_login(value); /* "user:password@tcp(host)/base" has no scheme */
}

/* Is the argument behind this one a secret? */
static bool announces_secret(struct span arg, struct span next)
{
    if (!span_starts(arg, SPAN("-")) || span_starts(next, SPAN("-")))
        return false;
    if (span_is(arg, "-p"))
        return next.n && !strchr("./", next.p[0]);
    return span_find(arg, '=') == arg.n && log_names_secret(arg);
}

void credentials_in_args(const char *const *args)
{
    for (size_t i = 0; args[i]; i++) {
        struct span arg = span_str(args[i]), next = span_str(args[i + 1]);
        size_t colon = span_find(arg, ':');
        credentials_in_text(arg);
        if (colon < arg.n && log_names_secret(span_cut(arg, 0, colon)))
            credentials_in_pair(span_cut(arg, 0, colon), span_trim(span_from(arg, colon + 1)));
        if (announces_secret(arg, next))
            credentials_in_pair(SPAN("secret"), next);
        if (span_is(arg, "-u") || span_is(arg, "--user"))
            add_password(next);
    }
}

static bool is_open(const char *text)
{
    return !text || strstr(text, "${");
}

static void in_pairs(const struct config_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        if (!is_open(pairs->items[i].value))
            credentials_in_pair(span_str(pairs->items[i].name), span_str(pairs->items[i].value));
}

static void in_arguments(const struct config_strings *args)
{
    const char **closed = MEM_ARRAY(const char *, args->n + 1);

    for (size_t i = 0; i < args->n; i++)
        closed[i] = is_open(args->items[i]) ? "-" : args->items[i];
    credentials_in_args(closed);
    mem_free(closed);
}

void credentials_in_config(const struct config *c)
{
    for (size_t i = 0; i < c->servers.n; i++) {
        const struct config_server *s = &c->servers.items[i];
        in_pairs(&s->env);
        in_pairs(&s->headers);
        in_arguments(&s->args);
        if (!is_open(s->url))
            credentials_in_text(span_str(s->url));
    }
    if (!is_open(c->bus.url))
        credentials_in_text(span_str(c->bus.url));
    if (!is_open(c->bus.token))
        log_add_secret(span_str(c->bus.token));
}
