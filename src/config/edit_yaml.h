/*
 * edit_yaml: one server or token put into or taken out of a YAML file, comments and all other lines
 * kept.
 *
 * Whole lines are put in or taken out. The result is parsed again: if it differs from the old
 * document in more than that, the edit is refused and the user has to edit the file.
 */
#ifndef RIALTO_CONFIG_EDIT_YAML_H
#define RIALTO_CONFIG_EDIT_YAML_H

#include "base/buf.h"
#include "base/err.h"

/* As edit_add_server; `entry` is JSON, which is YAML as well. */
MUST_CHECK int edit_yaml_add(struct buf *out, struct span text, struct span name, struct span entry,
                             struct err *err);
/* As edit_remove_server. */
MUST_CHECK int edit_yaml_remove(struct buf *out, struct span text, struct span name,
                                struct err *err);
/* As edit_add_token and edit_remove_token. */
MUST_CHECK int edit_yaml_add_token(struct buf *out, struct span text, struct span entry,
                                   struct err *err);
MUST_CHECK int edit_yaml_remove_token(struct buf *out, struct span text, struct span name,
                                      struct err *err);

#endif
