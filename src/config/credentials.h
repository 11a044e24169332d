/*
 * credentials: secrets in plain text in a configuration, made known to the log's redactor.
 *
 * ${NAME} is better for secrets (see secret), but files of other programs have them in env,
 * headers, arguments and URLs. A secret is recognised by its name, or by its place in a URL.
 */
#ifndef RIALTO_CONFIG_CREDENTIALS_H
#define RIALTO_CONFIG_CREDENTIALS_H

#include "config/config.h"

/* The value of a variable or header. In "Bearer abc", abc alone is a secret, too. */
void credentials_in_pair(struct span name, struct span value);
/* The parts of a URL or of a text like "host=db password=abc" that are secrets. */
void credentials_in_text(struct span text);
/* "--token=abc", "--token abc", "-p abc", "-u name:abc", "X-Key: abc"; `args` ends with NULL. */
void credentials_in_args(const char *const *args);
/* All secrets of a configuration, except in texts with a ${NAME} that is not filled in yet. */
void credentials_in_config(const struct config *c);

#endif
