/*
 * convert: a document as a file of ours.
 *
 * After import has gone over it, a tree knows our keys. Written out with them, and without what the
 * schema does not know, it is a rialto.yaml that means the same.
 */
#ifndef RIALTO_CONFIG_CONVERT_H
#define RIALTO_CONFIG_CONVERT_H

#include "config/value.h"

/* Append the YAML; `problems` with the tree stand before it as comments. */
void convert_put(struct buf *out, const struct value *root, const char *source,
                 const struct problems *problems);

#endif
