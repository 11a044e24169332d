/*
 * schema_leaf: reading the value of one key that has no keys of its own.
 *
 * Private to the schema. The value must not be VALUE_NULL, which means "not given".
 */
#ifndef RIALTO_CONFIG_SCHEMA_LEAF_H
#define RIALTO_CONFIG_SCHEMA_LEAF_H

#include "config/schema.h"

/* `shown` is the key's path for people; `base` the struct that row->offset counts from. */
void schema_leaf_read(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base);
/* The value that somebody who writes `text` for this row means. */
struct value *schema_leaf_text_value(struct arena *a, const struct schema_row *row,
                                     struct span text);

/* "expected TYPE, not ..." */
void schema_leaf_wrong_type(struct schema_read *r, const struct schema_row *row,
                            const struct value *v, const char *shown);
/* Lists of any kind lie as {items, n} at their offset. */
void schema_leaf_put_list(const struct schema_row *row, void *base, void *items, size_t n);
/* Adds an error when there are more than the row allows. */
bool schema_leaf_count_fits(struct schema_read *r, const struct schema_row *row,
                            const struct value *v, const char *shown);

#endif
