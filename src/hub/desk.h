/*
 * desk: where agents are sent when nobody has signed in to a server.
 *
 * A provider of our own beside each server that people sign in to. While the server needs a
 * sign-in, the desk lists one tool, `sign_in`, and the core gives it the calls of the server's own
 * tools (struct provider.desk). Whoever calls is asked to sign in: an agent that can show an
 * address gets it as an elicitation, and its call goes on when the person is back; others get an
 * error with the address. The instance owns the desk.
 */
#ifndef RIALTO_HUB_DESK_H
#define RIALTO_HUB_DESK_H

#include "core/router.h"
#include "hub/signin.h"

struct desk;

/* For this server, whose views show the tool while it is needed (core/view.c). */
struct desk *desk_new(struct router *r, struct provider *server, struct identity *id);
/* In a later turn of the loop than calls through the desk, and before the server's end. */
void desk_free(struct desk *d);

#endif
