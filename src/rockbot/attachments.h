/*
 * attachments: a folder for what is too large, or of no use, in a message.
 *
 * Files get a random name that ends as their type does, mode 0600, and are never looked at again by
 * us: whoever shares the folder with the agents tidies it up.
 *
 * Nouns: attachment_.
 */
#ifndef RIALTO_ROCKBOT_ATTACHMENTS_H
#define RIALTO_ROCKBOT_ATTACHMENTS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct attachment {
    char *path;       /* the caller's to free */
    const char *name; /* the end of it */
    uint64_t size;
};

/* `text` as it is. */
MUST_CHECK int attachment_save(struct attachment *a, const char *folder, struct span text,
                               struct span mime, struct err *err);
/* What `base64` stands for. */
MUST_CHECK int attachment_save_base64(struct attachment *a, const char *folder, struct span base64,
                                      struct span mime, struct err *err);
void attachment_fini(struct attachment *a);

/* How many bytes a base64 text stands for, about. */
size_t attachment_size(struct span base64);

#endif
