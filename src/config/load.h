/*
 * load: from a file to a checked configuration.
 *
 *     char *path = config_find(given);             NULL: there is none, use config_default
 *     struct config *c = config_load(path, &problems);
 *     config_environment(c, &problems);
 *
 * Whatever is wrong is in `problems`, all of it. Warnings alone leave the configuration usable.
 */
#ifndef RIALTO_CONFIG_LOAD_H
#define RIALTO_CONFIG_LOAD_H

#include "base/err.h"
#include "config/config.h"
#include "config/problems.h"

enum { CONFIG_MAX_BYTES = 4 * 1024 * 1024 };

/*
 * The file to read: `given` (from the command line, may be NULL), else $RIALTO_CONFIG, else the
 * first that exists of ./rialto.yaml, ./rialto.json, ./mcp.json, the user's and the system's. The
 * caller frees it; NULL when there is none.
 */
char *config_find(const char *given);
/* The n-th place where config_find looks when nothing is given, NULL past the end. The caller frees
 * it. */
char *config_place(size_t n);
/* All of them, for messages: "./rialto.yaml, ..." */
void config_put_places(struct buf *out);

enum config_format { CONFIG_YAML, CONFIG_JSON };
/* By the name's ending; when that says nothing, by the first character of the text. */
enum config_format config_format_of(const char *path, struct span text);

/* What stands in a file, "-" for the standard input; false, with a problem added, if it cannot be
 * read. */
bool config_read_text(const char *path, struct buf *text, struct problems *problems);
/* NULL when there are errors. */
struct config *config_load(const char *path, struct problems *problems);
/* The same from memory; `preview` takes keys of features that this version does not have yet. */
struct config *config_parse(struct span text, enum config_format format, bool preview,
                            struct problems *problems);
/* What holds without a file. */
struct config *config_default(void);
/*
 * Append the document, of whatever program it is, as our own YAML; what could not be carried over
 * stands in comments, which also name the `source`. False, with nothing appended, when there are
 * errors.
 */
bool config_convert(struct span text, enum config_format format, const char *source,
                    struct buf *out, struct problems *problems);

/* Environment variables (schema_row.env) win over the file. An empty one says nothing. */
void config_environment(struct config *c, struct problems *problems);
/* Set one key, as an option does: config_set(c, "listen", "127.0.0.1:0,unix:/run/x", &problems) */
void config_set(struct config *c, const char *key, const char *text, struct problems *problems);

#endif
