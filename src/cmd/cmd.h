/*
 * cmd: a subcommand of the program, and the manners all of them share.
 *
 * Each lives in a file of its own that defines one const struct command; table.c lists them. Help
 * and option parsing fall out of the struct. Data goes to the standard output, errors to the
 * standard error: one line that says what is wrong, then perhaps a hint.
 */
#ifndef RIALTO_CMD_CMD_H
#define RIALTO_CMD_CMD_H

#include "base/buf.h"

enum { CMD_FINE = 0, CMD_FAILED = 1, CMD_USAGE = 2 /* or configuration */ };

struct cmd_option {
    const char *name; /* long, without dashes; NULL ends the table */
    int id;           /* the short letter; above 255 for an option without one */
    const char *arg;  /* what its argument is called in the help, "[=WORD]" if it may be left out;
                         NULL = it takes none */
    const char *help;
};

struct command {
    const char *name;
    const char *summary; /* one line for the list of commands */
    const char *usage;   /* what may follow the options: "[FILE]" */
    const char *about;   /* a paragraph for `rialto help COMMAND`, ready wrapped; may be NULL */
    const struct cmd_option *options;
    int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is its name */
};

/* In the order of the help; NULL at the end. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);
/* The name most like it; empty when none is. */
struct span command_nearest(const char *name);

/* --- messages, on the standard error --- */

/* "rialto check: TEXT". `who` may be NULL. */
void cmd_error(const struct command *who, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "hint: TEXT" */
void cmd_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- output --- */

/* What somebody else wrote, on one line: line ends and tabs become blanks, and characters that do
 * not show become escapes (see visible). */
void cmd_put_plain(struct buf *out, struct span text);
/*
 * Writes and frees it; says so if it could not. Whatever stands in it, no character that does not
 * show gets out: a terminal obeys some of them. JSON stays the same JSON.
 */
void cmd_print(struct buf *out);
/* The same for what people send into files and other programs: there it arrives byte for byte. */
void cmd_print_exact(struct buf *out);
/* For main: turns `code` into a failure when the standard output could not be written. */
int cmd_finish(int code);

#endif
