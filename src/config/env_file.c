/* Reading a file of variables. Called by hub/graph/server.c when a server with `env_file` is
 * planned. */
#include "config/env_file.h"

#include "base/ascii.h"
#include "base/file.h"

enum { ENV_FILE_MAX = 256 * 1024, ENV_FILE_PAIRS = 4096 };

/* Where the quotes around a value are closed: behind them, the line ends or a comment begins. 0:
 * there are none. */
static size_t closing_quote(struct span text)
{
    char quote = text.n > 1 && (text.p[0] == '"' || text.p[0] == '\'') ? text.p[0] : '\0';
    size_t end = 1;

    while (quote && end < text.n && text.p[end] != quote)
        end += quote == '"' && text.p[end] == '\\' ? 2 : 1;
    if (quote && span_starts(span_trim(span_from(text, end + 1)), SPAN("#")))
        return end;
    return quote && text.p[text.n - 1] == quote ? text.n - 1 : 0; /* others of its kind are text */
}

/* What stands behind the `=`: a value without its quotes and the comment behind it. Escapes such as
 * "\n" are decoded only in double quotes. */
static void put_value(struct buf *out, struct span raw)
{
    struct span text = span_trim(raw);
    size_t end = closing_quote(text);
    bool doubled = end && text.p[0] == '"';

    if (!end) {
        for (size_t i = 0; i + 1 < raw.n; i++)
            if ((raw.p[i] == ' ' || raw.p[i] == '\t') && raw.p[i + 1] == '#')
                raw.n = i;
        buf_span(out, span_trim(raw));
        return;
    }
    text = span_cut(text, 1, end - 1);
    for (size_t i = 0; i < text.n; i++) {
        char next = i + 1 < text.n ? text.p[i + 1] : '\0';
        bool escape = doubled && text.p[i] == '\\' && next && strchr("nrt\"\\$", next);
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
        put_value(&value, span_from(trimmed, span_find(trimmed, '=') + 1));
        pairs->items[pairs->n++] =
            (struct config_pair){arena_span(a, name).p, arena_span(a, buf_view(&value)).p};
    }
    return 0;
}
