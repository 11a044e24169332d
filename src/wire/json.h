/*
 * json: the one JSON reader in the process.
 *
 * It validates a whole text once (RFC 8259 grammar, UTF-8, depth) without building a tree, and
 * while doing so records where the members named by a *shape* are. Everything else in the program
 * works on those raw spans, so unknown members, key order and number lexemes survive. No other code
 * may decide where a member is.
 *
 * A shape is a static table that may nest: {"params" -> {"name", "_meta" -> {"progressToken"}}}.
 * Each row names a slot; rows that are not present leave their slot at JSON_NONE. Key names are
 * compared after unescaping. A member of the shape that occurs twice in one object is refused
 * (ERR_DUPLICATE): two readers of one message must never see two different members. For the same
 * reason a shape can name a slot for a *lookalike*: a member that is not in the shape, but would be
 * to a reader that ignores case or stops at a NUL, as JSON readers of some languages do.
 */
#ifndef RIALTO_WIRE_JSON_H
#define RIALTO_WIRE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

enum { JSON_MAX_DEPTH = 128 }; /* of all JSON that the program reads */
enum { JSON_MAX_ROWS = 64 };   /* of one shape */

enum json_type {
    JSON_NONE, /* not present */
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* Where a value is in the text. */
struct json_slot {
    enum json_type type;
    struct span value;  /* raw text of the value; for strings with the quotes */
    struct span member; /* from the key's opening quote to the end of the value */
};

struct json_shape_row {
    const char *key;                 /* plain ASCII */
    unsigned slot;                   /* index into the slots array */
    const struct json_shape *inside; /* applied when the value is an object; may be NULL */
};

struct json_shape {
    const struct json_shape_row *rows;
    size_t n;
    unsigned lookalike; /* slot for the last lookalike of a row; 0 = lookalikes are ignored */
};

/* Builds a shape out of a static array of rows. */
#define JSON_SHAPE(rows_array)                                                                     \
    {                                                                                              \
        .rows = (rows_array), .n = sizeof(rows_array) / sizeof((rows_array)[0])                    \
    }
/* The same for a shape on which a decision depends: `slot` is for lookalikes and must not be 0. */
#define JSON_SHAPE_GUARDED(rows_array, slot)                                                       \
    {                                                                                              \
        .rows = (rows_array), .n = sizeof(rows_array) / sizeof((rows_array)[0]),                   \
        .lookalike = (slot)                                                                        \
    }

/*
 * Validate all of `text` (one value, white space around it allowed) and fill `slots` (the caller
 * zeroes them) for the members of `shape`, which applies when the value is an object. `shape` may
 * be NULL. Returns the value's type through `type` (may be NULL). On failure: a negative ERR_ code,
 * with the byte offset of the error in *at (may be NULL).
 */
MUST_CHECK int json_skim(struct span text, const struct json_shape *shape, struct json_slot *slots,
                         enum json_type *type, size_t *at);
/*
 * The same, with two arrays of slots: members of `shape` itself go to `outer`, those of the shapes
 * inside it to `inner`. For a message whose envelope is read by one module and its contents by
 * another. `one_line`: the text has no CR and no LF (in valid JSON they are only between tokens).
 */
MUST_CHECK int json_skim_envelope(struct span text, const struct json_shape *shape,
                                  struct json_slot *outer, struct json_slot *inner,
                                  enum json_type *type, bool *one_line);

/* How many containers are open at once in an already validated value. */
unsigned json_depth(struct span value);
/* Type of an already validated value, by its first byte. */
enum json_type json_type_of(struct span value);

/*
 * Walk the members or elements of an already validated object or array, in order:
 *
 *     struct json_iter it = json_iter(value);
 *     while (json_next(&it))
 *         ... it.key (raw, with quotes; empty in arrays), it.value, it.type
 *
 * A value of another type is allowed: it has no elements.
 */
struct json_iter {
    struct span rest;
    struct span key;
    struct span value;
    struct span member; /* key to value in objects; the value in arrays */
    enum json_type type;
    bool first, object;
};
struct json_iter json_iter(struct span container);
bool json_next(struct json_iter *it);

/*
 * Member of an already validated object by (unescaped) key; JSON_NONE when absent. The first one
 * when the key occurs twice: where that matters, skim the object with a shape. In a text that
 * failed validation the result is a guess: skim it by itself, and do not trust it.
 */
struct json_slot json_get(struct span object, const char *key);

/* --- strings and numbers; `raw` is a validated value --- */

/* Is the raw string (with quotes) equal to `s` once unescaped? false for other types. */
bool json_string_is(struct span raw, struct span s);
/*
 * Would a lenient reader take the raw string for `s`? Ignores case, also of characters that Unicode
 * folds into ASCII (U+017F is an s, U+212A a k), and everything after a NUL. Any two other
 * characters beyond ASCII count as alike.
 */
bool json_string_resembles(struct span raw, struct span s);
/* Append the unescaped text. Lone surrogates become U+FFFD. */
void json_unescape(struct buf *out, struct span raw);
/*
 * The text of a raw string: a span into `raw` when nothing is escaped, else unescaped into
 * `scratch` (appended; the span points there until scratch changes).
 */
struct span json_text(struct span raw, struct buf *scratch);
/* Exact integers only (no fraction, no exponent, within int64); false otherwise. */
bool json_int(struct span raw, int64_t *out);
/* The value of a member that is a positive whole number, else 0. */
uint64_t json_count(struct span object, const char *key);
/* false also for numbers that a double cannot hold. */
bool json_double(struct span raw, double *out);

/* --- writing --- */

/* Append `s` as a JSON string, quotes included. `s` should be UTF-8; bad bytes become U+FFFD. */
void json_quote(struct buf *out, struct span s);
/*
 * Append a validated value without its raw CR and LF (legal between tokens), so that it fits a
 * line-framed link. Everything else is kept byte for byte.
 */
void json_one_line(struct buf *out, struct span value);
/* The same for the message in `out` that begins at `from`: what frames messages by lines calls this
 * at the end of each, so that no raw text of a peer can begin a line of its own. */
void json_join_lines(struct buf *out, size_t from);
/*
 * Append `object` (validated) with `members` ("\"k\":v" or "\"k\":v,\"l\":w", may be empty)
 * inserted right after the opening brace, with a comma where needed.
 */
void json_insert(struct buf *out, struct span object, struct span members);

#endif
