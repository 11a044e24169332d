/*
 * value: a configuration document as a tree, whatever it was written in.
 *
 * The readers (JSON, YAML, TOML) build the tree, the schema reads it. Every node knows its place in
 * the file, so that a problem can point at it. Nodes and texts live in the reader's arena; texts
 * are NUL-terminated behind their end, but may contain NULs of their own.
 */
#ifndef RIALTO_CONFIG_VALUE_H
#define RIALTO_CONFIG_VALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "config/problems.h"
#include "wire/json.h"

enum { VALUE_MAX_DEPTH = JSON_MAX_DEPTH, VALUE_MAX_NODES = 100000 };

enum value_type { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_type type;
    bool truth; /* VALUE_BOOL; map or list: made by a header of TOML, for a map the one at `at` */
    struct place at;
    struct span text; /* a string's content; the number or word as it was written */

    struct span key; /* in a map: as written */
    struct span as;  /* our key, as set by an importer; empty = `key` */
    struct place key_at;

    struct value *first, *last, *next; /* children of a list or map, in order; the next sibling */
    size_t n;                          /* how many children */
};

struct value *value_new(struct arena *a, enum value_type type, struct place at);
struct value *value_text(struct arena *a, enum value_type type, struct span text);
void value_append(struct value *parent, struct value *child);
/* `child` must be one of the parent's. */
void value_remove(struct value *parent, struct value *child);

/* The key by which the schema knows a member. */
static inline struct span value_key(const struct value *v)
{
    return v->as.n ? v->as : v->key;
}

/* Member of a map by value_key; NULL when absent or when `map` is no map. */
struct value *value_get(const struct value *map, const char *key);

/* A copy of the whole tree below `v`. Subtracts its nodes from *budget; NULL when that runs out. */
struct value *value_copy(struct arena *a, const struct value *v, size_t *budget);

/* Adds an error for every key that occurs twice in `map`. */
void value_check_keys(const struct value *map, struct problems *problems);

/* "PARENT.KEY" for messages about a member of a map. */
const char *value_path(struct arena *a, const char *parent, const struct value *member);
/* "a list", "text", ... for messages. */
const char *value_type_name(enum value_type type);

/* Is the text a number of the JSON grammar? */
bool value_is_number(struct span text);

/* --- writing --- */

/* As JSON without white space; with `indent`, one member a line. */
void value_put_json(struct buf *out, const struct value *v, bool indent);
/* As YAML in block style, which yaml_read reads back to the same tree. */
void value_put_yaml(struct buf *out, const struct value *v);
/* As a comment of YAML: one line that no text can break out of, whatever bytes it has. */
void value_put_comment(struct buf *out, struct span text);

#endif
