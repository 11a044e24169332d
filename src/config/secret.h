/*
 * secret: ${NAME} in the configuration of a server, filled in.
 *
 * The value is looked up in this order: a file of that name in secrets.directory, one in systemd's
 * credentials directory, the output of secrets.command for the name, the environment. Every value
 * found is made known to the log's redactor before it can be printed.
 *
 * Nouns: secrets_.
 */
#ifndef RIALTO_CONFIG_SECRET_H
#define RIALTO_CONFIG_SECRET_H

#include "config/config.h"

struct secrets; /* with a cache: the command runs once per name */

struct secrets *secrets_new(const struct config *c);
void secrets_free(struct secrets *s);
/*
 * Append `text` with every ${NAME} (also ${env:NAME}) replaced. Names that are found nowhere are
 * appended to `missing`, separated by ", ". $${NAME} stands for a literal ${NAME}.
 */
void secrets_fill(struct secrets *s, const char *text, struct buf *out, struct buf *missing);
/* Append the value of one name, whatever its characters; nothing when there is none. */
void secrets_find(struct secrets *s, const char *name, struct buf *out);

#endif
