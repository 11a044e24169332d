/*
 * token_file: tokens.yaml in the state folder, for tokens that were added where the configuration
 * could not be written ('rialto token').
 *
 * The file has the form of a configuration with nothing but `auth: {tokens: [...]}`. Its tokens
 * count like those of the configuration, whichever file that is.
 */
#ifndef RIALTO_HUB_AUTH_TOKEN_FILE_H
#define RIALTO_HUB_AUTH_TOKEN_FILE_H

#include "config/load.h"

/* The path of the file, which the caller frees; its folder is made. NULL when there is no home
 * folder. */
char *token_file_path(void);
bool token_file_exists(void);
/* Like config_load, with these tokens added; `path` NULL: the configuration without a file. */
struct config *token_file_load(const char *path, struct problems *problems);

#endif
