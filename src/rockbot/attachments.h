/*
 * attachments: the folder that agents share with us, for files that go with calls, and for contents
 * that are too large for a message, or binary.
 *
 * Files get a name that is not taken, and mode 0600. Rialto never deletes them: that is left to the
 * operator who shares the folder with the agents. Only files inside the folder are read: no part of
 * a path may be a link or lead out of the folder.
 *
 * Nouns: attachment_.
 */
#ifndef RIALTO_ROCKBOT_ATTACHMENTS_H
#define RIALTO_ROCKBOT_ATTACHMENTS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum { ATTACHMENT_MAX = 32 * 1024 * 1024 }; /* bytes of a file that goes with a call */

struct attachment {
    char *path;       /* the caller frees it */
    const char *name; /* the last part of the path */
    uint64_t size;
};

/* Saves `text` as it is, under the name `wanted`. If that is empty, the name is random, with the
 * extension of the MIME type. */
MUST_CHECK int attachment_save(struct attachment *a, const char *folder, struct span text,
                               struct span mime, struct span wanted, struct err *err);
/* Saves the decoded `base64`, under a random name. */
MUST_CHECK int attachment_save_base64(struct attachment *a, const char *folder, struct span base64,
                                      struct span mime, struct err *err);
void attachment_fini(struct attachment *a);
/* Append path, name, size and mime, as members of an object. */
void attachment_put(struct buf *out, const struct attachment *a, struct span mime);

/* Opens a file of the folder, named by its absolute path or by its path relative to the folder.
 * Returns a descriptor and its size, or a negative code. */
MUST_CHECK int attachment_open(const char *folder, struct span path, uint64_t *size,
                               struct err *err);

/* About how many bytes a base64 text decodes to. */
size_t attachment_size(struct span base64);
/* Appends the bytes of a base64 text that may have white space in it. */
MUST_CHECK int attachment_decode(struct buf *out, struct span base64);

/* The MIME type for the extension of a file's name; NULL when it is not known. */
const char *attachment_mime(struct span name);
/* Is a file binary, by its type or, if that is not known, by its bytes? */
bool attachment_is_binary(struct span mime, struct span bytes);

#endif
