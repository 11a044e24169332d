/*
 * capture: saves a file that a tool returns in base64 inside of a JSON text, as servers of
 * repositories do, in the attachments folder. The configuration names the members that hold the
 * file (servers.*.attachments.capture_fields); the other members stay.
 */
#ifndef RIALTO_ROCKBOT_CAPTURE_H
#define RIALTO_ROCKBOT_CAPTURE_H

#include "base/buf.h"
#include "config/config_server.h"

#define CAPTURE_NOTE                                                                               \
    "The content is in this file of the shared folder. Give the path to a tool that reads files."

/* Replaces the file's bytes in `text` by its path, name, size and MIME type, or by a note if the
 * server has destroyed them. False, and the text is left as it is, when there is no binary file in
 * it, or the file cannot be saved. */
bool capture_text(struct buf *text, const struct config_capture *rule, const char *folder);

#endif
