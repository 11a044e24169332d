/*
 * edit: change one member deep inside a raw JSON object and leave every other byte as it is.
 */
#ifndef RIALTO_ACP_JSON_EDIT_H
#define RIALTO_ACP_JSON_EDIT_H

#include "wire/json.h"

/*
 * Append `object` with the member at `path` (NULL-terminated keys) set to the raw `value`. Objects
 * missing on the way, or that are something else than objects, are made.
 */
void json_edit_set(struct buf *out, struct span object, const char *const *path, struct span value);
/* Append `object` without the member at `path`; as it is when there is none. */
void json_edit_remove(struct buf *out, struct span object, const char *const *path);
/* The value at `path`; JSON_NONE when there is none, or when `object` is none. */
struct json_slot json_edit_get(struct span object, const char *const *path);
/* Is there a value, and is it neither false nor null? */
bool json_edit_truthy(struct span object, const char *const *path);

#define EDIT_PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
