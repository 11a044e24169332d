/* Writes manual pages in roff from the tables of commands, options and configuration keys. Called
 * by help.c for `rialto help --man`. */
#include "cmd/man.h"

#include "base/ascii.h"
#include "cmd/args.h"
#include "config/load.h"
#include "config/schema.h"

static void put(struct buf *out, const char *text)
{
    schema_put_roff(out, span_str(text));
}

static void put_option(struct buf *out, const struct cmd_option *o)
{
    buf_str(out, ".TP\n");
    if (o->id < 256)
        buf_printf(out, "\\fB\\-%c\\fR, ", o->id);
    buf_str(out, "\\fB\\-\\-");
    put(out, o->name);
    buf_str(out, "\\fR");
    if (o->arg) {
        buf_str(out, o->arg[0] == '[' ? "\\fI" : " \\fI");
        put(out, o->arg);
        buf_str(out, "\\fR");
    }
    buf_char(out, '\n');
    put(out, o->help);
    buf_str(out, ".\n");
}

static void put_usage(struct buf *out, const struct command *c)
{
    buf_str(out, ".B rialto ");
    put(out, c->name);
    buf_str(out, "\n[\\fIoptions\\fR] ");
    put(out, c->usage);
    buf_char(out, '\n');
}

static void put_body(struct buf *out, const struct command *c)
{
    put(out, c->summary);
    buf_str(out, ".\n");
    if (c->about) {
        buf_str(out, ".PP\n");
        put(out, c->about);
        buf_char(out, '\n');
    }
    for (const struct cmd_option *o = c->options; o->name; o++)
        put_option(out, o);
}

static void put_title(struct buf *out, const struct command *c)
{
    buf_str(out, ".TH RIALTO");
    for (const char *p = c ? c->name : ""; *p; p++)
        buf_printf(out, "%s%c", p == c->name ? "\\-" : "", ascii_to_upper(*p));
    buf_str(out, " 1 \"\" \"rialto " RIALTO_VERSION "\"\n.SH NAME\nrialto");
    if (c) {
        buf_str(out, "\\-");
        put(out, c->name);
    }
    buf_str(out, " \\- ");
    put(out, c ? c->summary : "the bridge between agents and tools that speak MCP");
    buf_str(out, "\n.SH SYNOPSIS\n");
}

static void put_ends(struct buf *out)
{
    buf_str(out, ".SH EXIT STATUS\n0 when all went well, 1 when something failed, 2 when the "
                 "command line or the configuration is wrong.\n");
}

static void put_program(struct buf *out)
{
    put_title(out, NULL);
    buf_str(out,
            ".B rialto\n\\fIcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n"
            ".SH DESCRIPTION\n"
            "One small program through which any agent reaches any tool, whatever each of them "
            "speaks. Every command also takes \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n.SH COMMANDS\n");
    for (size_t i = 0; commands[i]; i++) {
        buf_str(out, ".SS ");
        put(out, commands[i]->name);
        buf_char(out, '\n');
        put_usage(out, commands[i]);
        buf_str(out, ".PP\n");
        put_body(out, commands[i]);
    }
    schema_put_man(out);
    buf_str(out, ".SH FILES\nThe configuration is the first of these that is there: ");
    BUF_SCOPED places = {0};
    config_put_places(&places);
    schema_put_roff(out, buf_view(&places));
    buf_str(out, ".\n");
    put_ends(out);
}

void man_put(struct buf *out, const struct command *command)
{
    if (!command) {
        put_program(out);
        return;
    }
    put_title(out, command);
    put_usage(out, command);
    buf_str(out, ".SH DESCRIPTION\n");
    put_body(out, command);
    put_ends(out);
    buf_str(out, ".SH SEE ALSO\n.BR rialto (1)\n");
}
