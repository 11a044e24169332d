/*
 * capture: a file that a tool returns in base64 inside of a JSON text, as servers of repositories
 * do, saved in the attachments folder. The members of the text that hold it are configured
 * (servers.*.attachments.capture_fields); the others stay.
 */
#ifndef RIALTO_ROCKBOT_CAPTURE_H
#define RIALTO_ROCKBOT_CAPTURE_H

#include "base/buf.h"
#include "config/config_server.h"

#define CAPTURE_NOTE                                                                               \
    "The content is in this file of the shared folder. Give the path to a tool that reads files."

/* Replaces the bytes in `text`. False, and the text is left as it is, when there is no binary file
 * in it, or the file cannot be saved. */
bool capture_text(struct buf *text, const struct config_capture *rule, const char *folder);

#endif
