/*
 * content: what a server gave, in the shapes that agents on the bus know.
 *
 * Texts are joined into one `content`; what is no text stays in `contentBlocks`, or goes to the
 * attachments folder when it is large, with a small JSON description in its place.
 */
#ifndef RIALTO_ROCKBOT_CONTENT_H
#define RIALTO_ROCKBOT_CONTENT_H

#include "base/buf.h"

struct content_options {
    const char *attachments; /* NULL = there is no folder */
    size_t attach_limit;     /* base64 bytes of a block that may stay in the message */
    size_t inline_limit;     /* bytes of a text resource that may */
};

struct content {
    struct buf text;   /* plain; empty = null */
    struct buf blocks; /* JSON array; empty when everything is in `text` */
};

/* `result`: the raw result of a tool, validated. */
void content_read(struct content *c, struct span result, const struct content_options *options);
void content_fini(struct content *c);

/* Append the JSON array of McpReadResourceResponse's contents, from the raw result of a read. */
void content_put_resource(struct buf *out, struct span result,
                          const struct content_options *options);
/* Append the JSON array of McpGetPromptResponse's messages, from the raw result of a get. */
void content_put_messages(struct buf *out, struct span result);

/* At most `max` bytes of it, and never a part of a character. */
struct span content_cut(struct span text, size_t max);
/* On one line, control characters as blanks, secrets hidden, at most 2,000 bytes: a server's text
 * must not look like anything but a text. */
void content_put_line(struct buf *out, struct span text);

#endif
