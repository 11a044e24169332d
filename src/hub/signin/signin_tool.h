/*
 * signin_tool: the provider of SERVER__sign_in, which takes the calls of a server that nobody has
 * signed in to.
 *
 * A provider of our own behind each server that people sign in to. While the server needs a
 * sign-in, views list this one tool instead of the server's tools, and the core gives the provider
 * the calls of the server's own tools (struct provider.sign_in). The caller is asked to sign in: an
 * agent that can show an address to a person gets it as an elicitation, and its call goes on after
 * the sign-in; other agents get an error with the address. The instance owns the struct.
 */
#ifndef RIALTO_HUB_SIGNIN_SIGNIN_TOOL_H
#define RIALTO_HUB_SIGNIN_SIGNIN_TOOL_H

#include "core/router.h"
#include "hub/signin/signin.h"

struct signin_tool;

/* For this server; views show the tool while the server needs a sign-in (core/view.c). */
struct signin_tool *signin_tool_new(struct router *r, struct provider *server, struct identity *id);
/* Call this in a later turn of the loop than any call of the tool, and before the server is
 * freed. */
void signin_tool_free(struct signin_tool *d);

#endif
