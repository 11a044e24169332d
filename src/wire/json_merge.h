/*
 * json_merge: one object over another, as pinned arguments over those that an agent gives.
 *
 * Members stay byte for byte as they were written; names are compared as readers understand them,
 * without their escapes.
 */
#ifndef RIALTO_WIRE_JSON_MERGE_H
#define RIALTO_WIRE_JSON_MERGE_H

#include "wire/json.h"

/* Compares a name as it was written with one that is read: json_string_is and its like. */
typedef bool json_merge_compare(struct span raw, struct span name);

/* Has the object a member with the name that `raw_key` is, by `compare`? */
bool json_merge_has(struct span object, struct span raw_key, json_merge_compare *compare);
/* Append an object: the members of `given` whose names `over` does not have, then those of `over`.
 * What is no object has no members. If `over` is empty (no object at all), append `given` as it is,
 * or {} if that is empty as well. */
void json_merge_put(struct buf *out, struct span given, struct span over);

#endif
