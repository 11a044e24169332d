/*
 * profile: an auth profile of a server, which stands for a token that something else renews.
 *
 * RockBot's files name such profiles and never hold the token. Here the token of the profile
 * `workiq` is the secret WORKIQ_TOKEN, looked up where all secrets are: a file that another program
 * replaces, the output of secrets.command, the environment. It is read before the first request,
 * and again when the server has refused it.
 *
 * The plan of the server owns the struct; all links and requests to the server share it.
 */
#ifndef RIALTO_HUB_GRAPH_PROFILE_H
#define RIALTO_HUB_GRAPH_PROFILE_H

#include "config/config.h"
#include "io/loop.h"
#include "mcp/server/http_signer.h"

struct profile;

struct profile *profile_new(const struct config_secrets *places, const char *name);
/* No request may be waiting for a token. */
void profile_free(struct profile *p);
struct http_signer *profile_signer(struct profile *p, struct loop *loop);

#endif
