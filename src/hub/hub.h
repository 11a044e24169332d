/*
 * hub: everything that runs in a daemon: the bridge, the HTTP front door with the endpoints for
 * agents, web pages, the configuration file that is followed, and the message bus.
 *
 * `rialto serve` creates one, admin/ queries it. The order of start and end is decided here:
 * requests from the bus are answered before the servers stop.
 */
#ifndef RIALTO_HUB_HUB_H
#define RIALTO_HUB_HUB_H

#include "browser/browser.h"
#include "config/server_edit.h"
#include "hub/front.h"
#include "hub/graph/bridge.h"
#include "rockbot/report.h"

struct hub;

/* `c` must outlive the hub; `listen` is a command-line option that overrides the addresses, or
 * NULL. Nothing is started, and no agent can connect yet. */
struct hub *hub_new(struct loop *loop, const struct config *c, const char *listen);
/* Listen at the addresses of the configuration, and join its bus if there is one. 0, or negative
 * with a reason; then call hub_stop. Add other routes to the front before. */
MUST_CHECK int hub_open(struct hub *h, struct err *err);
/* Start the servers that are to run always. */
void hub_start(struct hub *h);
/* `stopped` is called from the loop when everything has ended; then call hub_free. */
void hub_stop(struct hub *h, void (*stopped)(void *arg), void *arg);
bool hub_is_stopping(const struct hub *h);
void hub_free(struct hub *h);

struct bridge *hub_bridge(const struct hub *h);
struct front *hub_front(const struct hub *h);
/* What the configured view of this name leaves; NULL when there is none, and for NULL. */
const struct narrowing *hub_narrowing(const struct hub *h, const char *view);
/*
 * The daemon was started by a shim: an address that another program has is left to that program,
 * and `over` is called from the loop when nobody has used the hub for `idle` ms (0: never). Before
 * hub_open.
 */
void hub_serve_on_demand(struct hub *h, uint64_t idle, void (*over)(void *arg), void *arg);
/* Change a server in the configuration file: follow_edit. */
MUST_CHECK int hub_edit(struct hub *h, const struct server_edit *e, struct err *err);
/* `read` is called after the configuration was read again, whether it was taken or not. */
void hub_on_config(struct hub *h, void (*read)(void *arg), void *arg);
/* The configuration file that is followed; NULL without one. */
const char *hub_file(const struct hub *h);
/* An MCP request of an operator, to all servers or to `server`: secrets are hidden in the answers,
 * and the calls belong to the token's owner or, without a token, to "operator". */
void hub_operate(struct hub *h, const struct caller *caller, struct http_exchange *x,
                 const struct http_request *req, struct span server);
/* --- for upgrade.h --- */
/* Another daemon has taken over: no call is opened here any more, streams that wait for nothing
 * end, and what only one daemon may do is left to the other. */
void hub_retire(struct hub *h);
/* Is everything that can be handed over gone from here? */
bool hub_is_quiet(const struct hub *h);
/* Close what could not be handed over: agents on WebSockets. `closed` is called from the loop. */
void hub_close_rest(struct hub *h, void (*closed)(void *arg), void *arg);
struct endpoints *hub_endpoints(const struct hub *h);
struct shims *hub_shim_list(const struct hub *h);
struct inherited *hub_inherited(const struct hub *h);

/* The number of agents' sessions: at all endpoints, of shims, and inherited ones. */
size_t hub_sessions(const struct hub *h);
/* The number of shims that are attached. */
size_t hub_shims(const struct hub *h);
void hub_count_pages(const struct hub *h, struct browser_numbers *out);
/* False: there is no bus. `out` is valid until the next turn of the loop. */
bool hub_look_at_bus(const struct hub *h, struct bus_report *out);
/* Read the configuration and the certificates again. 0, with the changes as a JSON object in
 * `report` unless that is NULL; or negative. */
int hub_reload(struct hub *h, struct buf *report, struct err *err);
/* Why the configuration file, as it is now, was not taken; empty when it was. */
const struct problems *hub_rejected(const struct hub *h);

#endif
