/* Reading a file of variables. Called by hub/server.c when a server with `env_file` is planned. */
#include "config/env_file.h"

#include "base/ascii.h"
#include "base/file.h"

enum { ENV_FILE_MAX = 256 * 1024, ENV_FILE_PAIRS = 4096 };

/* A value without its quotes; escapes such as "\n" are decoded only in double quotes. */
static void put_value(struct buf *out, struct span text)
{
    char quote = text.n > 1 && text.p[0] == text.p[text.n - 1] ? text.p[0] : '\0';

    if (quote != '"' && quote != '\'') {
        for (size_t i = 0; i + 1 < text.n; i++)
            if (text.p[i] == ' ' && text.p[i + 1] == '#')
                text.n = i; /* a comment behind the value */
        buf_span(out, span_trim(text));
        return;
    }
    text = span_cut(text, 1, text.n - 2);
    for (size_t i = 0; i < text.n; i++) {
        char next = i + 1 < text.n ? text.p[i + 1] : '\0';
        bool escape = quote == '"' && text.p[i] == '\\' && next && strchr("nrt\"\\$", next);
        char c = escape ? next : text.p[i];
        i += escape;
        buf_char(out, !escape ? c : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
    }
}

int env_file_read(struct arena *a, const char *path, struct config_pairs *pairs, struct err *err)
{
    BUF_SCOPED text = {0};
    int code = file_read(&text, path, ENV_FILE_MAX);
    unsigned number = 0;

    if (code)
        return err_set(err, code, "cannot read its env_file %s: %s", path, err_name(code));
    pairs->items = ARENA_ARRAY(a, struct config_pair, ENV_FILE_PAIRS);
    pairs->n = 0;
    for (struct span rest = buf_view(&text), line; rest.n; rest = span_from(rest, line.n + 1)) {
        BUF_SCOPED value = {0};
        line = span_cut(rest, 0, span_find(rest, '\n'));
        struct span trimmed = span_trim(line);
        number++;
        if (trimmed.n && trimmed.p[trimmed.n - 1] == '\r')
            trimmed = span_trim(span_cut(trimmed, 0, trimmed.n - 1));
        if (!trimmed.n || trimmed.p[0] == '#')
            continue;
        if (span_starts(trimmed, SPAN("export ")))
            trimmed = span_trim(span_from(trimmed, 7));
        struct span name = span_trim(span_cut(trimmed, 0, span_find(trimmed, '=')));
        if (!ascii_is_words(name, "_") || !name.n || name.n == trimmed.n ||
            pairs->n == ENV_FILE_PAIRS || memchr(trimmed.p, '\0', trimmed.n))
            return err_set(err, ERR_SYNTAX, "%s, line %u: expected NAME=VALUE", path, number);
        put_value(&value, span_trim(span_from(trimmed, span_find(trimmed, '=') + 1)));
        pairs->items[pairs->n++] =
            (struct config_pair){arena_span(a, name).p, arena_span(a, buf_view(&value)).p};
    }
    return 0;
}
