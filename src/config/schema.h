/*
 * schema: the one table of configuration keys.
 *
 * Each row has the name of a key, its type, its default, its place in struct config, and its
 * explanation for users. Reading, checking, defaults, the effective configuration,
 * `rialto config --explain`, the man page and the comparison of two servers all walk this table;
 * nothing else knows the keys.
 *
 * Paths are dotted; `*` stands for the name of a map's entry or for an element of a list.
 */
#ifndef RIALTO_CONFIG_SCHEMA_H
#define RIALTO_CONFIG_SCHEMA_H

#include "config/config.h"
#include "config/value.h"

enum schema_type {
    SCHEMA_STRING,   /* const char *, copied into the config's arena */
    SCHEMA_STRINGS,  /* struct config_strings */
    SCHEMA_PAIRS,    /* struct config_pairs */
    SCHEMA_BOOL,     /* bool */
    SCHEMA_NUMBER,   /* uint64_t */
    SCHEMA_SIZE,     /* uint64_t, bytes */
    SCHEMA_DURATION, /* uint64_t, ms */
    SCHEMA_WORD,     /* an enum: the word's place in `words` */
    SCHEMA_WORDS,    /* unsigned: a bit for each of `words` */
    SCHEMA_JSON,     /* const char *: a map as JSON text */
    SCHEMA_SCALARS,  /* const char *: a list of texts, numbers, true and false as JSON text */
    SCHEMA_SECTION,  /* has keys below it, which go to the same struct; with `words` it may be one
                        of these instead, and a map stands for the word after the last */
    SCHEMA_ENTRIES,  /* a map of names to structs; each starts with `const char *` for its name */
    SCHEMA_LIST,     /* a list of structs */
};

enum { SCHEMA_ROWS_MAX = 320 };

struct schema_word {
    const char *word; /* NULL ends the list */
    const char *help;
};

struct schema_read;

/* NULL when `text` is fine, else what is wrong with it. */
typedef const char *schema_check_fn(struct span text);
/* Checks one read entry as a whole; false leaves it out. `shown` is its path for people. */
typedef bool schema_entry_fn(struct schema_read *r, const struct value *v, const char *shown,
                             void *entry);

struct schema_row {
    const char *path;
    enum schema_type type;
    size_t offset;                   /* into struct config, or the struct of the entry around it */
    const char *preset;              /* the default, as written in a file */
    uint64_t min, max;               /* of amounts; of the number of entries; max 0 = no bound */
    const char *zero;                /* what 0 means; NULL: 0 is out of bounds.
                                        SCHEMA_STRINGS: the word that means [] */
    const struct schema_word *words; /* SCHEMA_WORD, SCHEMA_WORDS, SCHEMA_SECTION */
    schema_check_fn *check;          /* of a text, of each text in a list, of each entry's name */
    schema_check_fn *check_name;     /* SCHEMA_PAIRS: of each name */
    size_t entry_size;               /* SCHEMA_ENTRIES, SCHEMA_LIST */
    schema_entry_fn *check_entry;    /* may be NULL */
    const char *shorthand;           /* SCHEMA_LIST: key that is set by a plain text;
                                        SCHEMA_SECTION: key that is set by a value that is no map;
                                        SCHEMA_STRINGS: the word that means ["*"] */
    const char *also; /* other programs' names of the key, separated by blanks: for suggestions */
    const char *env;  /* environment variable that wins over the file */
    bool secret;      /* never shown */
    bool needs_value; /* the key keeps somebody out: without a value it is an error, where other
                         keys count as not given */
    bool literal;     /* text for people, in which ${NAME} stays as it is */
    const char *help;
};

extern const struct schema_row schema_rows[];
extern const size_t schema_rows_n;

/* One reading of a document into a config. */
struct schema_read {
    struct arena *arena; /* the config's */
    struct problems *problems;
    bool lenient; /* another program's format: unknown keys are warnings */

    /* Fills in ${NAME}, see secrets_fill; NULL: nothing is filled in. */
    void (*fill)(void *arg, const char *text, struct buf *out, struct buf *missing);
    void *fill_arg;
    bool unfilled;             /* without `fill`: values with ${NAME} are not checked */
    const struct value *entry; /* the outermost entry that is being read */
    bool open;                 /* ${NAME} may stand in the text that is being read */
    struct buf unset;          /* names without a value in the server that is being read */
};

/* Fill `c` from the map `root` and the defaults. Problems are added, nothing is returned. */
void schema_read(struct schema_read *r, const struct value *root, struct config *c);
/* Set one key by its path, as an option or environment variable does; lists are cut at commas. */
void schema_set(struct schema_read *r, struct config *c, const char *path, struct span text);

/* The value with ${NAME} filled in: a copy in `scratch`, or `v` itself if there is nothing to fill
 * in. NULL when the value cannot be read. */
const struct value *schema_fill(struct schema_read *r, const struct schema_row *row,
                                const struct value *v, const char *shown, struct arena *scratch);
/* The value that `text` means for this row, as written in an option or a variable. */
struct value *schema_text_value(struct arena *a, const struct schema_row *row, struct span text);
/* Is ${NAME} filled in only when the value is used? */
bool schema_is_late(const struct schema_row *row);

const struct schema_row *schema_find(const char *path);
/* Is `row` the key of a map at `parent` ("" for the top)? Its last name, or NULL. */
const char *schema_child(const struct schema_row *row, const char *parent);

/* The effective configuration as a tree that reads back to the same; secrets become "***". */
struct value *schema_dump(struct arena *a, const struct config *c);
/* The tree of one entry, such as a server below "servers.*". */
struct value *schema_dump_entry(struct arena *a, const char *parent, const void *entry);
/* Are two structs the same in every key below `parent`, such as "servers.*"? */
bool schema_equal(const char *parent, const void *a, const void *b);
/* Are two structs the same in one key, with all keys below it? */
bool schema_equal_row(const struct schema_row *row, const void *a, const void *b);

/* --- documentation --- */

/* The amount with its unit, if the row's amounts have one. */
void schema_put_amount(struct buf *out, const struct schema_row *row, uint64_t amount);
/* A word or two on what the key takes: "duration", "full or search", "list of text". */
void schema_put_type(struct buf *out, const struct schema_row *row);
/*
 * Explain what `key` names: a path with or without its stars filled in, a section, or a last name;
 * NULL for all. False, with `out` untouched, when there is no such key; *near is then the nearest
 * key or empty.
 */
bool schema_explain(struct buf *out, const char *key, bool json, struct span *near);
/* Text as roff shows it: no line may look like a request, no hyphen may become a dash. */
void schema_put_roff(struct buf *out, struct span text);
/* All keys as the section of a man page. */
void schema_put_man(struct buf *out);

#endif
