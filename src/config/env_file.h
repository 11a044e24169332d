/*
 * env_file: variables in a file of lines NAME=VALUE, as many programs keep them (".env").
 *
 * Empty lines and lines that begin with # are comments; "export " may stand before a name, and a
 * value may have quotes around it, and a comment behind it (in a value without quotes, after a
 * blank). ${NAME} in a value is not filled in.
 */
#ifndef RIALTO_CONFIG_ENV_FILE_H
#define RIALTO_CONFIG_ENV_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "config/config_server.h"

/* Reads the file into pairs in the arena. */
MUST_CHECK int env_file_read(struct arena *a, const char *path, struct config_pairs *pairs,
                             struct err *err);

#endif
