/*
 * content: results of servers, in the shapes that agents on the bus know.
 *
 * Texts are joined into one `content`; other blocks stay in `contentBlocks`, or are saved in the
 * attachments folder when they are large, with a small JSON description in their place.
 */
#ifndef RIALTO_ROCKBOT_CONTENT_H
#define RIALTO_ROCKBOT_CONTENT_H

#include "base/buf.h"

struct config_capture;

struct content_options {
    const char *attachments; /* NULL = there is no folder */
    size_t attach_limit;     /* base64 bytes of a block that may stay in the message */
    size_t inline_limit;     /* bytes of a text resource that may stay in the message */
    const struct config_capture *capture; /* rule for files inside of texts; NULL = none */
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

/* The first `max` bytes at most, in whole characters. */
struct span content_cut(struct span text, size_t max);
/* Append `text` on one line, control characters as blanks, secrets hidden, at most 2,000 bytes: a
 * server's text must not look like a part of our message. */
void content_put_line(struct buf *out, struct span text);

#endif
