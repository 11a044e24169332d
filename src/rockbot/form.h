/*
 * form: the form of a server's question (the requestedSchema of elicitation/create) and answers to
 * it.
 *
 * A form has plain fields only: texts, numbers, true or false, and choices. A form with anything
 * else is not shown to an agent.
 */
#ifndef RIALTO_ROCKBOT_FORM_H
#define RIALTO_ROCKBOT_FORM_H

#include "base/buf.h"
#include "base/err.h"

/* Names of fields that are never asked for, besides those that look like credentials. */
struct form_denied {
    const char *const *names;
    size_t n;
};

/* May an agent be asked this? Appends the fields, described on one line. `decides`: a field is a
 * yes or no. `schema` is a raw value. */
bool form_describe(struct buf *out, struct span schema, const struct form_denied *denied,
                   bool *decides);
/* Do the answers (a raw object) fit the form, as they are? 0, or negative with what is wrong. */
MUST_CHECK int form_check(struct span schema, struct span answers, struct err *err);

#endif
