/*
 * upgrade: another program takes over from this daemon, or this one from another
 * (docs/decisions/023-upgrade.md).
 *
 * `rialto upgrade` asks for it. The program is rehearsed first: it reads the configuration and says
 * that it would start. Then the daemon forks (io/successor.h): its process becomes the new program,
 * and the forked copy of the old program hands over what the daemon had. What is idle goes at once;
 * a connection, a shim or a server goes when the copy's calls there have ended, and the copy ends
 * after the last of them.
 *
 * cmd/serve.c owns the struct, and calls upgrade_run between two runs of the loop.
 */
#ifndef RIALTO_HUB_UPGRADE_H
#define RIALTO_HUB_UPGRADE_H

#include "core/caller.h"
#include "hub/hub.h"
#include "io/service.h"

struct upgrade;

/* What belongs to the daemon and not to its hub. */
struct upgrade_host {
    /* Give up what only one process may have; audit lines go to upgrade_send_line from now on. */
    void (*leave)(void *arg);
    /* The successor failed: take back what `leave` gave up. */
    void (*come_back)(void *arg);
    /* A line of the audit from the old daemon. */
    void (*line)(void *arg, struct span body);
    void *arg;
};

/* `program` is what the daemon was started from; copied. `host` is borrowed. */
struct upgrade *upgrade_new(struct hub *hub, struct loop *loop, struct service *service,
                            const char *program, const struct upgrade_host *host);
/* Call this after the hub is gone. Servers of the daemon before us that have not come are ended. */
void upgrade_free(struct upgrade *u);
/* POST {"program": PATH}: a route of the front. */
void upgrade_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span rest);

/* The daemon is to end: no successor is wanted any more. */
void upgrade_give_up(struct upgrade *u);
/* Is upgrade_run to be called? The loop has been stopped for it. */
bool upgrade_is_due(const struct upgrade *u);
/* Outside of the loop. Returns in the old daemon alone: run the loop again. */
void upgrade_run(struct upgrade *u);
void upgrade_send_line(struct upgrade *u, struct span body);

/* --- the new daemon --- */
/* Take over by this socket from the process `old`: sockets and sessions are here when this returns,
 * before anything listens. False: there is nobody to take over from. */
MUST_CHECK bool upgrade_inherit(struct upgrade *u, int handover, int old);
/* We serve: the old daemon may hand over the rest. */
void upgrade_serve(struct upgrade *u);

#endif
