/*
 * attachments: a folder for contents that are too large for a message, or binary.
 *
 * Files get a random name with the extension of their type and mode 0600. Rialto never deletes
 * them: that is left to the operator who shares the folder with the agents.
 *
 * Nouns: attachment_.
 */
#ifndef RIALTO_ROCKBOT_ATTACHMENTS_H
#define RIALTO_ROCKBOT_ATTACHMENTS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct attachment {
    char *path;       /* the caller frees it */
    const char *name; /* the last part of the path */
    uint64_t size;
};

/* Saves `text` as it is. */
MUST_CHECK int attachment_save(struct attachment *a, const char *folder, struct span text,
                               struct span mime, struct err *err);
/* Saves the decoded `base64`. */
MUST_CHECK int attachment_save_base64(struct attachment *a, const char *folder, struct span base64,
                                      struct span mime, struct err *err);
void attachment_fini(struct attachment *a);

/* About how many bytes a base64 text decodes to. */
size_t attachment_size(struct span base64);

#endif
