/*
 * secret: ${NAME} in the configuration of a server, filled in.
 *
 * Looked for in this order: a file of that name in secrets.directory, one in systemd's credentials
 * directory, what secrets.command prints for the name, the environment. Every value found is made
 * known to the log's redactor before anybody can print it.
 *
 * Nouns: secrets_.
 */
#ifndef RIALTO_CONFIG_SECRET_H
#define RIALTO_CONFIG_SECRET_H

#include "config/config.h"

struct secrets; /* what was looked up already: a command is asked once per name */

struct secrets *secrets_new(const struct config *c);
void secrets_free(struct secrets *s);
/*
 * Append `text` with every ${NAME} (also ${env:NAME}) replaced. Names that are found nowhere are
 * appended to `missing`, separated by ", ". $${NAME} stands for a literal ${NAME}.
 */
void secrets_fill(struct secrets *s, const char *text, struct buf *out, struct buf *missing);

#endif
