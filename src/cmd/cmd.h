/*
 * cmd: a subcommand of the program, and the functions for output that all commands share.
 *
 * Each command lives in a file of its own that defines one const struct command; table.c lists
 * them. Help and option parsing are driven by the struct. Data goes to the standard output, errors
 * to the standard error: one line that says what is wrong, then perhaps a hint.
 */
#ifndef RIALTO_CMD_CMD_H
#define RIALTO_CMD_CMD_H

#include "base/buf.h"

enum { CMD_FINE = 0, CMD_FAILED = 1, CMD_USAGE = 2 /* wrong command line or configuration */ };

struct cmd_option {
    const char *name; /* long, without dashes; NULL ends the table */
    int id;           /* the short letter; above 255 for an option without one */
    const char *arg;  /* the argument's name in the help, "[=WORD]" if it may be left out;
                         NULL = the option takes none */
    const char *help;
};

struct command {
    const char *name;
    const char *summary; /* one line for the list of commands */
    const char *usage;   /* what may follow the options: "[FILE]" */
    const char *about;   /* a paragraph for `rialto help COMMAND`, ready wrapped; may be NULL */
    const struct cmd_option *options;
    int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is `name` */
};

/* In the order of the help; NULL at the end. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);
/* The command whose name is most like `name`; empty when none is. */
struct span command_nearest(const char *name);

/* --- messages, on the standard error --- */

/* "rialto check: TEXT". `who` may be NULL. */
void cmd_error(const struct command *who, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "hint: TEXT" */
void cmd_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- output --- */

/* Append a peer's text on one line: line ends and tabs become blanks, and invisible characters are
 * escaped (see base/visible.h). */
void cmd_put_plain(struct buf *out, struct span text);
/*
 * Writes and frees `out`, with a message on failure. Invisible characters are escaped, because a
 * terminal obeys some of them; JSON stays the same JSON.
 */
void cmd_print(struct buf *out);
/* The same, but byte for byte when the standard output is no terminal. */
void cmd_print_exact(struct buf *out);
/* For main: turns `code` into a failure when the standard output could not be written. */
int cmd_finish(int code);

#endif
