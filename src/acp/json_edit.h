/*
 * json_edit: change one member deep inside a raw JSON object and leave every other byte as it is.
 */
#ifndef RIALTO_ACP_JSON_EDIT_H
#define RIALTO_ACP_JSON_EDIT_H

#include "wire/json.h"

/*
 * Append `object` with the member at `path` (NULL-terminated keys) set to the raw `value`. Objects
 * that are missing on the path are made; a value on the path that is no object is replaced by one.
 */
void json_edit_set(struct buf *out, struct span object, const char *const *path, struct span value);
/* Append `object` without the member at `path`; unchanged when there is no such member. */
void json_edit_remove(struct buf *out, struct span object, const char *const *path);
/* The value at `path`; JSON_NONE when there is none, or when `object` is not an object. */
struct json_slot json_edit_get(struct span object, const char *const *path);
/* Is there a value at `path` other than false or null? */
bool json_edit_truthy(struct span object, const char *const *path);

#define EDIT_PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
