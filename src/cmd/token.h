/*
 * token: making a bearer token, for the command of that name and for `rialto config --new-token`.
 */
#ifndef RIALTO_CMD_TOKEN_H
#define RIALTO_CMD_TOKEN_H

#include "cmd/args.h"

/* What the new token is to be. */
struct token_options {
    const char *name, *view, *role; /* view and role may be NULL */
    struct buf expires;             /* a time, or empty */
    struct buf limits;              /* members of JSON, or empty */
};

/* Makes the token, prints it and adds it to the configuration; the exit code. */
int token_add(const struct args *a, const struct token_options *o);

#endif
