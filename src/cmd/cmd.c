/* Messages on the standard error, and output with colours and with invisible characters escaped.
 * Called by the commands; main.c calls cmd_finish at the end. */
#include "cmd/cmd.h"

#include "base/log.h"
#include "base/visible.h"
#include "cmd/colour.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void cmd_put_plain(struct buf *out, struct span text)
{
    size_t from = out->n;

    visible_put(out, text, VISIBLE_LINES);
    for (size_t i = from; i < out->n; i++)
        if (out->p[i] == '\n' || out->p[i] == '\t')
            out->p[i] = ' ';
}

/* "PREFIX TEXT\n" with the prefix in the given colour, written at once. */
__attribute__((format(printf, 3, 0))) static void put_line(enum colour colour, const char *prefix,
                                                           const char *fmt, va_list ap)
{
    BUF_SCOPED line = {0}, text = {0}, clean = {0}, shown = {0};

    colour_put(&line, colour, span_str(prefix));
    buf_char(&line, ' ');
    buf_vprintf(&text, fmt, ap);
    log_redact(&clean, buf_view(&text));
    cmd_put_plain(&line, buf_view(&clean));
    buf_char(&line, '\n');
    colour_show(&shown, buf_view(&line), colour_wanted(STDERR_FILENO));
    fwrite(shown.p, 1, shown.n, stderr);
}

void cmd_error(const struct command *who, const char *fmt, ...)
{
    BUF_SCOPED prefix = {0};
    va_list ap;

    buf_printf(&prefix, "rialto%s%s:", who ? " " : "", who ? who->name : "");
    va_start(ap, fmt);
    put_line(COLOUR_ERROR, buf_cstr(&prefix), fmt, ap);
    va_end(ap);
}

void cmd_hint(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_line(COLOUR_HINT, "hint:", fmt, ap);
    va_end(ap);
}

/* Writes and frees `out`. */
static void write_out(struct buf *out)
{
    bool fine = !ferror(stdout);
    bool written = fwrite(buf_cstr(out), 1, out->n, stdout) == out->n && fflush(stdout) == 0;

    /* errno is known only here; the error is printed once. A reader that closed the pipe needs no
     * message. */
    if (fine && !written && errno != EPIPE)
        cmd_error(NULL, "cannot write the output: %s", strerror(errno));
    buf_fini(out);
}

void cmd_print(struct buf *out)
{
    struct buf shown = {0};

    colour_show(&shown, buf_view(out), colour_wanted(STDOUT_FILENO));
    buf_fini(out);
    write_out(&shown);
}

void cmd_print_exact(struct buf *out)
{
    if (isatty(STDOUT_FILENO))
        cmd_print(out);
    else
        write_out(out);
}

int cmd_finish(int code)
{
    return code || !ferror(stdout) ? code : CMD_FAILED;
}
