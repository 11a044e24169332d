/*
 * secret: ${NAME} in the configuration of a server, filled in.
 *
 * The value is looked up in this order: a file of that name in secrets.directory, one in systemd's
 * credentials directory, the output of secrets.command for the name, the environment. Every value
 * found is made known to the log's redactor before it can be printed. If a caller brings variables
 * (config/variables.h), they are used instead of our environment. PROJECT is in none of these: it
 * is the project folder of the caller, or of the command that runs.
 *
 * Nouns: secrets_.
 */
#ifndef RIALTO_CONFIG_SECRET_H
#define RIALTO_CONFIG_SECRET_H

#include "config/config.h"
#include "config/variables.h"

#include <sys/types.h>

struct secrets; /* with a cache: the command runs once per name */

struct secrets *secrets_new(const struct config *c);
/* The same for one caller: files and the command as in `ours`, and `brought` instead of the
 * environment. Both must outlive the result. */
struct secrets *secrets_for_caller(struct secrets *ours, const struct variables *brought);
void secrets_free(struct secrets *s);
/* Append the names that were looked up, but not found in files or by the command: "A B". At most
 * VARIABLES_MAX, because a caller can bring no more. */
void secrets_put_open(const struct secrets *s, struct buf *out);
/* From now on a value of the environment is a secret only if its name says so. */
void secrets_set_plain(struct secrets *s);
/*
 * Append `text` with every ${NAME} (also ${env:NAME}) replaced, and ${NAME:-TEXT} by TEXT if NAME
 * has no value. Names that are found nowhere are appended to `missing`, separated by ", ". $${NAME}
 * stands for a literal ${NAME}.
 */
void secrets_fill(struct secrets *s, const char *text, struct buf *out, struct buf *missing);
/* Append the value of one name, whatever its characters; nothing when there is none. */
void secrets_find(struct secrets *s, const char *name, struct buf *out);

/*
 * The steps of a look-up, for callers that must not wait for the command. A secret that is found
 * replaces what is in `out`, and is made known to the redactor.
 */
bool secrets_in_files(const struct config_secrets *places, const char *name, struct buf *out);
bool secrets_in_environment(const char *name, struct buf *out);
/* Starts the command. Its output is read from the descriptor that is returned; negative when it
 * cannot be started. */
int secrets_start_command(const struct config_strings *command, const char *name, pid_t *pid);
/* 0: the command, whose whole output is in `out`, has succeeded. -EAGAIN: it has not ended. */
int secrets_end_command(pid_t pid, struct buf *out);

#endif
