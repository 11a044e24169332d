/*
 * command_line: a component's command line. What was read must be fit for execve (no empty program,
 * every list ended, no NUL inside), and quoting the words again must give the same words.
 */
#include "acp/command_line.h"
#include "base/mem.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_quoted(struct buf *out, const char *word)
{
    buf_char(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buf_str(out, "'\\''");
        else
            buf_char(out, *word);
    }
    buf_str(out, "' ");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct command_line first, again;
    struct buf line = {0};
    struct err err = {0};

    if (command_line_parse(&first, span_of((const char *)data, size), &err)) {
        if (!err.text[0])
            abort();
        return 0;
    }
    if (!first.n_argv || first.argv[first.n_argv] || first.env[first.n_env])
        abort();
    /* After `env` no word is taken for a variable or a dialect. */
    buf_str(&line, "env ");
    for (size_t i = 0; i < first.n_argv; i++)
        put_quoted(&line, first.argv[i]);
    if (command_line_parse(&again, buf_view(&line), &err) || again.n_argv != first.n_argv + 1)
        abort();
    for (size_t i = 0; i < first.n_argv; i++)
        if (strcmp(first.argv[i], again.argv[i + 1]) != 0)
            abort();
    for (size_t i = 0; i < first.n_env; i++)
        if (!strchr(first.env[i], '='))
            abort();
    command_line_fini(&first);
    command_line_fini(&again);
    buf_fini(&line);
    return 0;
}
