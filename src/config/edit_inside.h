/*
 * edit_inside: what edit.c and its editors of JSON, YAML and TOML share.
 *
 * An editor appends the changed text to `out`. When it cannot make the change, it may append
 * nothing or a wrong text: edit.c reads the result again and refuses it.
 */
#ifndef RIALTO_CONFIG_EDIT_INSIDE_H
#define RIALTO_CONFIG_EDIT_INSIDE_H

#include "config/edit.h"
#include "config/value.h"

/* A document and the way to the place in it. */
struct edited {
    struct arena arena;
    const struct edit_place *place;
    struct span text;
    struct buf plain;                    /* JSON: with blanks for comments and trailing commas */
    struct value *chain[EDIT_DEPTH + 1]; /* the root, then what each key of the place leads to */
    size_t found;                        /* how many keys lead to something */
    size_t wanted;                       /* how many keys the place has */
};

/* A change of the text: `n` bytes at `at` become `with`. */
struct edited_cut {
    size_t at, n;
    struct span with;
};

/* The map or list at the place; NULL when the document has none there. */
static inline struct value *edit_all(const struct edited *d)
{
    return d->found == d->wanted ? d->chain[d->wanted] : NULL;
}

/* Append the text with these changes, which are in the order of the text. */
void edit_splice(struct buf *out, struct span text, const struct edited_cut *cuts, size_t n);
/* The line end that the text uses. */
struct span edit_newline(struct span text);
/* Where line number `line` begins, counted from 1. */
size_t edit_line(struct span text, unsigned line);
/* Where a place is in the text: its column counts characters. */
size_t edit_offset(struct span text, struct place at);

/* The four edits in each format. `v` is the entry; that of YAML has its name as its key, or as a
 * member. */
void edit_json_put(struct buf *out, const struct edited *d, struct span name, struct span entry);
void edit_json_take(struct buf *out, const struct edited *d, const struct value *v);
void edit_json_rename(struct buf *out, const struct edited *d, const struct value *v,
                      struct span fresh);
void edit_json_set(struct buf *out, const struct edited *d, const struct value *v,
                   struct span value);

void edit_yaml_put(struct buf *out, const struct edited *d, struct value *entry);
void edit_yaml_take(struct buf *out, const struct edited *d, const struct value *v);
void edit_yaml_rename(struct buf *out, const struct edited *d, const struct value *v,
                      struct span fresh);
void edit_yaml_set(struct buf *out, const struct edited *d, const struct value *v,
                   struct span value);

void edit_toml_put(struct buf *out, const struct edited *d, struct span name,
                   const struct value *entry);
void edit_toml_take(struct buf *out, const struct edited *d, const struct value *v);

#endif
