/*
 * reader: from the bytes of a file to a value tree.
 *
 * Each reader returns the root, or NULL with the reasons added to `problems`. The text may be
 * anything: depth and number of nodes are bounded (aliases count with all they stand for), and a
 * key may stand only once in a map. A tree whose only fault is such a key is still returned, so
 * that the schema can report what else is wrong: the caller must look at problems->errors.
 *
 * Nouns: json_doc_, yaml_, toml_. Files: json_doc, yaml, toml.
 */
#ifndef RIALTO_CONFIG_READER_H
#define RIALTO_CONFIG_READER_H

#include "config/value.h"

struct value *json_doc_read(struct arena *a, struct span text, struct problems *problems);
/*
 * Append `text` with comments and the commas before closing brackets blanked out, so that every
 * other byte stays in its place. False, with unusable output, when the result is not JSON
 * either.
 */
bool json_doc_relax(struct buf *out, struct span text);
/* The end of the comment that begins at `at`; `at` when there is none. */
size_t json_doc_comment_end(struct span text, size_t at);
struct value *yaml_read(struct arena *a, struct span text, struct problems *problems);
struct value *toml_read(struct arena *a, struct span text, struct problems *problems);

#endif
