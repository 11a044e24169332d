/*
 * credentials: secrets that stand in a configuration in plain sight, told to the log's redactor.
 *
 * ${NAME} is the better place for them (see secret), but files of other programs have them in env,
 * headers, arguments and URLs. What is a secret is known by its name, or by where in a URL it is.
 */
#ifndef RIALTO_CONFIG_CREDENTIALS_H
#define RIALTO_CONFIG_CREDENTIALS_H

#include "config/config.h"

/* The value of a variable or header. "Bearer abc": abc alone is one, too. */
void credentials_in_pair(struct span name, struct span value);
/* The parts of a URL or of a text like "host=db password=abc": passwords and what is named so. */
void credentials_in_text(struct span text);
/* "--token=abc", "--token abc", "-p abc", "-u name:abc", "X-Key: abc"; `args` ends with NULL. */
void credentials_in_args(const char *const *args);
/* All of them in a configuration, but for texts in which a ${NAME} is still to be filled in. */
void credentials_in_config(const struct config *c);

#endif
