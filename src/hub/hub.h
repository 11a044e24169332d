/*
 * hub: what runs in a daemon, as one thing: the bridge, the HTTP front door with the endpoints that
 * agents come in by, web pages, the file that is followed, and the message bus.
 *
 * `rialto serve` makes one, admin/ looks into it. Its order of beginning and end is here: what came
 * over the bus is answered before the servers go.
 */
#ifndef RIALTO_HUB_HUB_H
#define RIALTO_HUB_HUB_H

#include "browser/browser.h"
#include "hub/bridge.h"
#include "hub/front.h"
#include "rockbot/report.h"

struct hub;

/* `c` must outlive it; `listen` is what an option put in the place of its addresses, or NULL.
 * Nothing is started, nobody can come in. */
struct hub *hub_new(struct loop *loop, const struct config *c, const char *listen);
/* Let agents in at the addresses of the configuration, and join its bus if it has one: 0, or
 * negative with a reason; then hub_stop. Other routes were added to the front before. */
MUST_CHECK int hub_open(struct hub *h, struct err *err);
/* Start the servers that are to run always. */
void hub_start(struct hub *h);
/* `stopped` is called from the loop when nothing is left; then hub_free. */
void hub_stop(struct hub *h, void (*stopped)(void *arg), void *arg);
bool hub_is_stopping(const struct hub *h);
void hub_free(struct hub *h);

struct bridge *hub_bridge(const struct hub *h);
struct front *hub_front(const struct hub *h);
/* Of agents, by whatever endpoint. */
size_t hub_sessions(const struct hub *h);
void hub_count_pages(const struct hub *h, struct browser_numbers *out);
/* false: there is no bus. Good until the next turn of the loop. */
bool hub_look_at_bus(const struct hub *h, struct bus_report *out);
/* Read the configuration and the certificates again: 0, with what changed as a JSON object in
 * `report` unless that is NULL; or negative. */
int hub_reload(struct hub *h, struct buf *report, struct err *err);

#endif
