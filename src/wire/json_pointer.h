/*
 * json_pointer: one value inside of JSON, named by a pointer (RFC 6901) such as /options/path.
 *
 * For decisions about a value that others read after us: the value is found only if every reader
 * finds the same one. These mislead, and the look-up fails: a member on the way that occurs twice;
 * one that equals the pointer's name only for a reader that ignores case or stops at a NUL; a text
 * that holds an object or a list where the pointer goes on, because some servers unpack such texts.
 */
#ifndef RIALTO_WIRE_JSON_POINTER_H
#define RIALTO_WIRE_JSON_POINTER_H

#include "wire/json.h"

/* NULL when the text is a pointer, else what is wrong with it. */
const char *json_pointer_wrong(struct span pointer);
/*
 * Look the value up in `from`, which is validated; `out->type` is JSON_NONE when there is none.
 * False if another reader could find another value; `out->member` is then what misleads.
 */
bool json_pointer_find(struct span from, struct span pointer, struct json_slot *out);

#endif
