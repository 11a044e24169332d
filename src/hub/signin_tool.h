/*
 * signin_tool: the provider of SERVER__sign_in, which takes the calls of a server that nobody has
 * signed in to.
 *
 * A provider of our own behind each server that people sign in to. While the server needs a
 * sign-in, views list this one tool in the place of the server's, and the core gives the provider
 * the calls of the server's own tools (struct provider.sign_in). Whoever calls is asked to sign in:
 * an agent that can show an address gets it as an elicitation, and its call goes on when the person
 * is back; others get an error with the address. The instance owns the struct.
 */
#ifndef RIALTO_HUB_SIGNIN_TOOL_H
#define RIALTO_HUB_SIGNIN_TOOL_H

#include "core/router.h"
#include "hub/signin.h"

struct signin_tool;

/* For this server, whose views show the tool while it is needed (core/view.c). */
struct signin_tool *signin_tool_new(struct router *r, struct provider *server, struct identity *id);
/* In a later turn of the loop than calls through it, and before the server's end. */
void signin_tool_free(struct signin_tool *d);

#endif
