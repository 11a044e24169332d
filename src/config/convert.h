/*
 * convert: a document of another program written as a rialto.yaml.
 *
 * import has marked the keys of the tree with ours. Written with our keys, and without members that
 * the schema does not know, the tree is a rialto.yaml that means the same.
 */
#ifndef RIALTO_CONFIG_CONVERT_H
#define RIALTO_CONFIG_CONVERT_H

#include "config/value.h"

/* Append the YAML, after the `problems` of the tree as comments. */
void convert_put(struct buf *out, const struct value *root, const char *source,
                 const struct problems *problems);

/* One server, whose keys import has marked, in our keys alone. */
struct value *convert_entry(struct arena *a, const struct value *server);

#endif
