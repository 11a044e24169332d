/*
 * webform: application/x-www-form-urlencoded, the format of form bodies and queries of URLs.
 *
 * Written by us for token requests and addresses; read leniently for our own pages and commands
 * (webform_get), and strictly where something is decided by a parameter (webform_read): one that
 * occurs twice, or that readers may understand in two ways, is refused.
 */
#ifndef RIALTO_WIRE_WEBFORM_H
#define RIALTO_WIRE_WEBFORM_H

#include "base/buf.h"
#include "base/err.h"

/* Append the text with everything but letters, digits and "-._*" escaped; a blank is a plus. */
void webform_put_text(struct buf *out, struct span text);
/* Append NAME=VALUE, and an ampersand before unless the form or the query begins here. */
void webform_put(struct buf *out, const char *name, struct span value);

/* The value of the first parameter of this name, decoded into `scratch`; p == NULL when there is
 * none. A malformed escape stays as it is. */
struct span webform_get(struct span text, const char *name, struct buf *scratch);
/*
 * The values of `n` parameters, decoded into `scratch` (valid until that changes); p == NULL for
 * those that are absent. Other parameters are skipped. ERR_DUPLICATE: one of them occurs twice;
 * ERR_SYNTAX: a malformed escape, or a NUL. `values` are then not to be used.
 */
MUST_CHECK int webform_read(struct span text, const char *const *names, size_t n,
                            struct span *values, struct buf *scratch);

#endif
