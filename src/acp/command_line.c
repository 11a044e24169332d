/* Parses a component's command line, as shell words or as JSON. Called by cmd/conductor.c for each
 * component. */
#include "acp/command_line.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "wire/json.h"

static void add(char ***list, size_t *n, char *text)
{
    *list = mem_resize(*list, (*n + 2) * sizeof **list);
    (*list)[(*n)++] = text;
    (*list)[*n] = NULL;
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        mem_free(list[i]);
    mem_free(list);
}

void command_line_fini(struct command_line *c)
{
    free_list(c->argv);
    free_list(c->env);
    *c = (struct command_line){.dialect = P_UNKNOWN};
}

/* --- shell words --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * Take one word off `rest` into `out`. False when there is no word left. An unclosed quote is
 * reported in *why.
 */
static bool next_word(struct span *rest, struct buf *out, const char **why)
{
    char quote = 0;
    size_t i = 0;

    while (i < rest->n && is_blank(rest->p[i]))
        i++;
    if (i == rest->n)
        return false;
    for (; i < rest->n && (quote || !is_blank(rest->p[i])); i++) {
        char c = rest->p[i];
        bool last = i + 1 == rest->n;
        if (quote == '\'') {
            if (c == '\'')
                quote = 0;
            else
                buf_char(out, c);
        } else if (c == '\\' && last) {
            *why = "ends with a backslash";
        } else if (c == '\\') {
            c = rest->p[++i];
            /* Between double quotes, a backslash before any other character is literal. */
            if (quote == '"' && !strchr("\"\\$`\n", c))
                buf_char(out, '\\');
            if (c != '\n')
                buf_char(out, c);
        } else if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '"' || c == '\'')) {
            quote = c;
        } else {
            buf_char(out, c);
        }
    }
    if (quote)
        *why = "a quote is not closed";
    *rest = span_from(*rest, i);
    return true;
}

static bool is_assignment(struct span word)
{
    size_t n = span_find(word, '=');

    if (n == word.n || n == 0)
        return false;
    return !ascii_is_digit(word.p[0]) && ascii_is_words(span_cut(word, 0, n), "_");
}

static int read_words(struct command_line *c, struct span text, struct err *err)
{
    const char *why = NULL;
    BUF_SCOPED word = {0};

    while (next_word(&text, &word, &why) && !why) {
        buf_cstr(&word);
        if (!c->n_argv && is_assignment(buf_view(&word)))
            add(&c->env, &c->n_env, buf_take(&word));
        else
            add(&c->argv, &c->n_argv, buf_take(&word));
        word = (struct buf){0};
    }
    if (why)
        return err_set(err, ERR_SYNTAX, "%s", why);
    if (!c->n_argv)
        return err_set(err, ERR_SYNTAX,
                       c->n_env ? "sets variables, but names no program" : "is empty");
    return 0;
}

/* --- the JSON form --- */

/* A string without NUL bytes: an argument of a program cannot contain one. */
static char *text_of(struct span raw)
{
    BUF_SCOPED text = {0};

    json_unescape(&text, raw);
    if (memchr(text.p ? text.p : "", '\0', text.n))
        return NULL;
    buf_cstr(&text);
    return buf_take(&text);
}

static int read_args(struct command_line *c, struct span value, struct err *err)
{
    struct json_iter it = json_iter(value);

    if (json_type_of(value) != JSON_ARRAY)
        return err_set(err, ERR_SYNTAX, "\"args\" is not an array");
    while (json_next(&it)) {
        char *text = it.type == JSON_STRING ? text_of(it.value) : NULL;
        if (!text)
            return err_set(err, ERR_SYNTAX, "\"args\" has something that is not a plain string");
        add(&c->argv, &c->n_argv, text);
    }
    return 0;
}

static int read_env(struct command_line *c, struct span value, struct err *err)
{
    struct json_iter it = json_iter(value);

    if (json_type_of(value) != JSON_OBJECT)
        return err_set(err, ERR_SYNTAX, "\"env\" is not an object");
    while (json_next(&it)) {
        BUF_SCOPED pair = {0};
        json_unescape(&pair, it.key);
        bool named = pair.n && !memchr(pair.p, '=', pair.n);
        buf_char(&pair, '=');
        if (it.type == JSON_STRING)
            json_unescape(&pair, it.value);
        if (!named || it.type != JSON_STRING || memchr(pair.p, '\0', pair.n))
            return err_set(err, ERR_SYNTAX, "\"env\" maps names to strings");
        buf_cstr(&pair);
        add(&c->env, &c->n_env, buf_take(&pair));
    }
    return 0;
}

static int read_json(struct command_line *c, struct span text, struct err *err)
{
    struct json_slot command = {0}, args = {0}, env = {0};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return err_set(err, ERR_SYNTAX, "starts like a JSON object, but is none");
    struct json_iter it = json_iter(text);
    while (json_next(&it)) {
        struct json_slot slot = {.type = it.type, .value = it.value};
        if (json_string_is(it.key, SPAN("command")) && command.type == JSON_NONE)
            command = slot;
        else if (json_string_is(it.key, SPAN("args")) && args.type == JSON_NONE)
            args = slot;
        else if (json_string_is(it.key, SPAN("env")) && env.type == JSON_NONE)
            env = slot;
        else
            return err_set(err, ERR_SYNTAX,
                           "has the member " SPAN_FMT ": \"command\", \"args\" and \"env\" are "
                           "known, each once",
                           SPAN_ARG(span_cut(it.key, 0, 40)));
    }
    char *program = command.type == JSON_STRING ? text_of(command.value) : NULL;
    if (!program || !*program) {
        mem_free(program);
        return err_set(err, ERR_SYNTAX, "has no \"command\"");
    }
    add(&c->argv, &c->n_argv, program);
    int code = args.type == JSON_NONE ? 0 : read_args(c, args.value, err);
    if (!code && env.type != JSON_NONE)
        code = read_env(c, env.value, err);
    return code;
}

int command_line_parse(struct command_line *c, struct span text, struct err *err)
{
    int code = 0;

    *c = (struct command_line){.dialect = P_UNKNOWN};
    while (text.n && is_blank(text.p[0]))
        text = span_from(text, 1);
    if (text.n > 3 && text.p[2] == ':') {
        c->dialect = proxy_dialect_parse(span_cut(text, 0, 2));
        if (c->dialect != P_UNKNOWN)
            text = span_from(text, 3);
        while (text.n && is_blank(text.p[0]))
            text = span_from(text, 1);
    }
    if (text.n && memchr(text.p, '\0', text.n))
        code = err_set(err, ERR_SYNTAX, "has a NUL byte");
    else if (text.n && text.p[0] == '{')
        code = read_json(c, text, err);
    else
        code = read_words(c, text, err);
    if (code) {
        command_line_fini(c);
        return code;
    }
    if (!c->env)
        c->env = MEM_ARRAY(char *, 1);
    return 0;
}
