/*
 * load: from a file to a checked configuration.
 *
 *     char *path = config_find(given);             NULL: there is none, use config_default
 *     struct config *c = config_load(path, &problems);
 *     config_environment(c, &problems);
 *
 * All errors and warnings are in `problems`. Warnings alone leave the configuration usable.
 */
#ifndef RIALTO_CONFIG_LOAD_H
#define RIALTO_CONFIG_LOAD_H

#include "base/err.h"
#include "config/config.h"
#include "config/problems.h"

struct host_program;

enum { CONFIG_MAX_BYTES = 4 * 1024 * 1024 };

/*
 * The file to read: `given` (from the command line, may be NULL), else $RIALTO_CONFIG, else the
 * first that exists of ./rialto.yaml, ./rialto.json, ./mcp.json, the user's and the system's. The
 * caller frees the path; NULL when there is no file.
 */
char *config_find(const char *given);
/* The same for programs that hosts start in any folder: files in the working folder are ignored,
 * because a cloned repository must not be able to start commands. */
char *config_find_outside(const char *given);
/* The user's own file, which may not exist; NULL without a home. The caller frees the path. */
char *config_user_file(void);
/* A variable of the environment; NULL when it is not set, or empty. */
const char *config_env(const char *name);
/* The n-th place where config_find looks when nothing is given, NULL past the end. The caller frees
 * the path. */
char *config_place(size_t n);
/* All these places, for messages: "$RIALTO_CONFIG, ./rialto.yaml, ..." */
void config_put_places(struct buf *out);

enum config_format { CONFIG_YAML, CONFIG_JSON, CONFIG_TOML };
/* By the extension of the path; for other extensions, by the first character of the text. */
enum config_format config_format_of(const char *path, struct span text);

/* Reads a file, or the standard input for "-"; false, with a problem added, if that fails. */
bool config_read_text(const char *path, struct buf *text, struct problems *problems);
/* NULL when there are errors. */
struct config *config_load(const char *path, struct problems *problems);
/* The same, with auth.tokens of the document `tokens` added; `path` NULL: added to the
 * configuration without a file. */
struct config *config_load_with(const char *path, struct span tokens, struct problems *problems);
/* The same from memory. */
struct config *config_parse(struct span text, enum config_format format, struct problems *problems);
/* The configuration without a file. */
struct config *config_default(void);
/*
 * Append the document of any known program (of `host`, if it is not NULL) as our own YAML. Comments
 * name the `source` and the members that could not be converted. False, with nothing appended, when
 * there are errors.
 */
bool config_convert(struct span text, enum config_format format, const struct host_program *host,
                    const char *source, struct buf *out, struct problems *problems);

/* Environment variables (schema_row.env) win over the file. Empty ones are ignored. */
void config_environment(struct config *c, struct problems *problems);
/* Set one key, as an option does: config_set(c, "listen", "127.0.0.1:0,unix:/run/x", &problems) */
void config_set(struct config *c, const char *key, const char *text, struct problems *problems);

#endif
