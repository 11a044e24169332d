/*
 * json_out: writes JSON of our own, member by member.
 *
 * Everything is appended to a buf. The last byte in the buf tells whether a comma is needed: before
 * every value except the first of an object, an array or the buf. `name` is the member's name,
 * plain ASCII; NULL in arrays. The caller opens and closes objects and arrays, e.g. with buf_char.
 * Not for the hot path, which writes whole pieces.
 */
#ifndef RIALTO_WIRE_JSON_OUT_H
#define RIALTO_WIRE_JSON_OUT_H

#include "base/buf.h"

/* Comma and name; the caller writes the value. */
void json_out(struct buf *out, const char *name);
void json_out_open(struct buf *out, const char *name, char bracket);
void json_out_text(struct buf *out, const char *name, struct span text);
/* null when the text is empty. */
void json_out_text_or_null(struct buf *out, const char *name, struct span text);
/* The same, with secrets hidden as the log hides them. */
void json_out_redacted(struct buf *out, const char *name, struct span text);
void json_out_str(struct buf *out, const char *name, const char *text);
void json_out_number(struct buf *out, const char *name, uint64_t number);
void json_out_bool(struct buf *out, const char *name, bool yes);
/* `json` is written as it is. */
void json_out_raw(struct buf *out, const char *name, struct span json);

/* A valid value on several lines, indented; numbers and strings stay as they were written. */
void json_out_pretty(struct buf *out, struct span json);

#endif
